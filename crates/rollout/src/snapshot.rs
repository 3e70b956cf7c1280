//! Observed state that plans are based on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::delivery::{
    AnalysisTemplate, ApplicationDeployment, ApplicationRevision, DeploymentAction, Provider,
};

use crate::manifest::ObjectKey;

/// All state that the plan of a deployment depends on.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Current time.
    pub now: Timestamp,
    /// The deployment with its status.
    pub deployment: ApplicationDeployment,
    /// Revisions in the namespace of the deployment, by name.
    pub revisions: BTreeMap<String, Arc<ApplicationRevision>>,
    /// Clusters in the namespace of the deployment, by name. The name of the host cluster is empty.
    pub clusters: BTreeMap<String, ClusterView>,
    /// Analysis templates in the namespace of the deployment, by name.
    pub templates: BTreeMap<String, AnalysisTemplate>,
    /// Actions for this deployment in order of creation.
    pub actions: Vec<DeploymentAction>,
    /// Results of measurements since the last plan.
    pub measurements: Vec<Measurement>,
}

/// Observed state of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    /// Labels of the Cluster object.
    pub labels: BTreeMap<String, String>,
    /// Whether new workloads may be placed in the cluster.
    pub is_schedulable: bool,
    /// Whether the Cluster object was deleted. In this case, no workloads are placed in the cluster, and
    /// objects in it are not deleted.
    pub is_deleted: bool,
    /// Time since which the cluster is unreachable; `None` if it is reachable. While it is unreachable,
    /// `objects` are those last observed.
    pub unreachable_since: Option<Timestamp>,
    /// Whether the controllers have not read the cluster since their start. `objects` is empty, although the
    /// cluster may contain objects of the deployment.
    pub is_unobserved: bool,
    /// Time until which the circuit breaker is open. No calls are made before that time.
    pub breaker_open_until: Option<Timestamp>,
    /// Providers that the cluster supports, excluding `Auto`.
    pub providers: BTreeSet<Provider>,
    /// Message of the last failed write; cleared by a successful write.
    pub last_error: Option<String>,
    /// Objects that have a label of this deployment or a name that the deployment needs.
    pub objects: BTreeMap<ObjectKey, Observed>,
    /// Inventory of this deployment for the cluster. It is stored in the host cluster.
    pub inventory: Inventory,
}

impl ClusterView {
    /// Whether API calls can be made at `now`.
    #[must_use]
    pub fn is_reachable(&self, now: Timestamp) -> bool {
        self.unreachable_since.is_none() && self.breaker_open_until.is_none_or(|until| until <= now)
    }
}

/// A stored inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Version of the inventory; `None` if it does not exist.
    pub version: Option<Version>,
    /// Objects in the inventory.
    pub objects: BTreeSet<ObjectKey>,
}

/// Version of an observed object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// UID of the object.
    pub uid: String,
    /// Resource version of the object.
    pub resource_version: String,
}

/// An observed object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Version of the object.
    pub version: Version,
    /// Label with the name of the deployment; `None` for foreign objects.
    pub deployment: Option<String>,
    /// Label with the name of the revision.
    pub revision: Option<String>,
    /// UIDs of the owners.
    pub owners: Vec<String>,
    /// Annotation with the hash of the applied manifest.
    pub hash: Option<String>,
    /// Whether another client changed an applied field.
    pub is_drifted: bool,
    /// Whether the object is being deleted.
    pub is_deleting: bool,
    /// For a workload: `spec.replicas`.
    pub replicas: u32,
    /// For a workload: number of pods.
    pub pods: u32,
    /// For a workload: number of available pods.
    pub available: u32,
    /// For a route: weights by Service, see [`crate::traffic::WEIGHTS`].
    pub weights: BTreeMap<String, u32>,
    /// For a route: whether its current generation is in effect.
    pub is_accepted: bool,
}

/// Identity of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasurementKey {
    /// Name of the template.
    pub template: String,
    /// Name of the metric.
    pub metric: String,
    /// Hash of the step; empty for a background run.
    pub step_hash: String,
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Metric and template of the measurement.
    pub key: MeasurementKey,
    /// Time of the measurement.
    pub at: Timestamp,
    /// Measured value; `None` if the query failed or had no result.
    pub value: Option<f64>,
    /// Number of samples, if it was queried.
    pub samples: Option<u64>,
}
