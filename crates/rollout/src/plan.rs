//! Plans: ordered actions with reasons and preconditions. The executor makes no decisions.
//!
//! The executor runs `prepare` in order and stops at the first failure. It then runs the steps of each
//! cluster in order, clusters independently of each other: a failure ends the steps of that cluster only.
//! Finally, it runs `finish`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::delivery::{ActionStatus, DeploymentStatus};
use mainstay_api::{OwnerReference, Reason};

use crate::manifest::{Manifest, ObjectKey};
use crate::snapshot::{MeasurementKey, Version};

/// Plan of one deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Writes to the host cluster that must succeed before anything else.
    pub prepare: Vec<Step>,
    /// Writes to each cluster.
    pub clusters: BTreeMap<String, Vec<Step>>,
    /// Writes to the host cluster after all others.
    pub finish: Vec<Step>,
    /// Objects that should exist in each cluster, whether they are written or not. The executor compares
    /// live objects with them, see [`crate::snapshot::Observed::is_drifted`].
    pub desired: BTreeMap<String, Vec<Arc<Manifest>>>,
    /// Status after this plan, whether it is written or not.
    pub status: DeploymentStatus,
    /// Time at which the deployment is planned again without an event.
    pub requeue: Requeue,
}

impl Plan {
    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prepare.is_empty() && self.finish.is_empty() && self.clusters.values().all(Vec::is_empty)
    }

    /// Returns all steps in a possible order of execution.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.prepare
            .iter()
            .chain(self.clusters.values().flatten())
            .chain(&self.finish)
    }
}

/// An action and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: Reason,
}

/// Time at which a deployment is planned again without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Never: the deployment is planned again only on an event.
    OnEvent,
    /// At this time.
    At(Timestamp),
    /// Immediately.
    Immediately,
}

/// A write or a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add our finalizer to the deployment.
    AddFinalizer(Version),
    /// Remove our finalizer from the deployment.
    RemoveFinalizer(Version),
    /// Replace the inventory of a cluster, which is stored in the host cluster. An empty inventory is
    /// deleted.
    WriteInventory(InventoryWrite),
    /// Create a namespace unless it exists. Namespaces are never deleted.
    EnsureNamespace(String),
    /// Apply an object.
    Apply(Apply),
    /// Set `spec.replicas` of a workload.
    Scale(Scale),
    /// Delete an object.
    Delete(Delete),
    /// Remove the owner reference to the deployment from an object, so that the object is not deleted with
    /// the deployment.
    Release(Release),
    /// Replace the status of the deployment.
    WriteStatus(Version, Box<DeploymentStatus>),
    /// Replace the status of a `DeploymentAction`.
    CompleteAction {
        /// Name of the action.
        name: String,
        /// Version of the action.
        version: Version,
        /// Status of the action.
        status: ActionStatus,
    },
    /// Run a query. The result is part of the next snapshot.
    Measure(MeasureRequest),
    /// Record a Kubernetes event about the deployment.
    Event {
        /// Whether the event is a warning.
        is_warning: bool,
        /// Message of the event.
        message: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer(_) => f.write_str("add finalizer"),
            Self::RemoveFinalizer(_) => f.write_str("remove finalizer"),
            Self::WriteInventory(write) => {
                write!(
                    f,
                    "write inventory {} ({} objects)",
                    write.name,
                    write.objects.len()
                )
            }
            Self::EnsureNamespace(name) => write!(f, "create namespace {name} unless it exists"),
            Self::Apply(apply) => match apply.replicas {
                Some(replicas) => write!(f, "apply {} with {replicas} replicas", apply.manifest.key),
                None => write!(f, "apply {}", apply.manifest.key),
            },
            Self::Scale(scale) => write!(f, "scale {} to {}", scale.key, scale.replicas),
            Self::Delete(delete) => write!(f, "delete {}", delete.key),
            Self::Release(release) => write!(f, "release {}", release.key),
            Self::WriteStatus(..) => f.write_str("status"),
            Self::CompleteAction { name, .. } => write!(f, "complete action {name}"),
            Self::Measure(request) => {
                write!(f, "measure {}/{}", request.key.template, request.key.metric)
            }
            Self::Event { message, .. } => write!(f, "event {message}"),
        }
    }
}

/// A write of an inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryWrite {
    /// Name of the `ResourceInventory`.
    pub name: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Version to replace; `None` if the inventory must not exist.
    pub precondition: Option<Version>,
    /// Objects in the inventory.
    pub objects: BTreeSet<ObjectKey>,
}

/// A server-side apply with our field manager. Only objects of the deployment are replaced. Conflicts are
/// forced, because another client may own a field that it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// Object to apply.
    pub manifest: Arc<Manifest>,
    /// Value of `spec.replicas`, if this write sets it.
    pub replicas: Option<u32>,
    /// Owner of the object; set in the host cluster only.
    pub owner: Option<OwnerReference>,
    /// Version to replace; `None` if the object must not exist.
    pub precondition: Option<Version>,
}

/// A change of `spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Workload to scale.
    pub key: ObjectKey,
    /// New value of `spec.replicas`.
    pub replicas: u32,
    /// Version of the workload that may be changed.
    pub precondition: Version,
}

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Object to delete.
    pub key: ObjectKey,
    /// Version of the object that may be deleted.
    pub precondition: Version,
}

/// A removal of an owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Object to release.
    pub key: ObjectKey,
    /// UID of the owner.
    pub owner: String,
    /// Version of the object that may be changed.
    pub precondition: Version,
}

/// A query of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureRequest {
    /// Metric and template of the query.
    pub key: MeasurementKey,
    /// URL of the Prometheus server.
    pub address: String,
    /// Query with its variables replaced.
    pub query: String,
    /// Query of the number of samples.
    pub samples_query: Option<String>,
}
