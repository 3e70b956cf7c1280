//! Observed state that a rollout is planned from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::delivery::{
    AnalysisTemplate, ApplicationDeployment, ApplicationRevision, DeploymentAction, Provider,
};

use crate::manifest::ObjectKey;

/// Everything that the plan of one deployment depends on.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time.
    pub now: Timestamp,
    /// The deployment with its status.
    pub deployment: ApplicationDeployment,
    /// Revisions in its namespace, by name.
    pub revisions: BTreeMap<String, Arc<ApplicationRevision>>,
    /// Clusters in its namespace by name; the empty name is the host cluster.
    pub clusters: BTreeMap<String, ClusterView>,
    /// Analysis templates in its namespace, by name.
    pub templates: BTreeMap<String, AnalysisTemplate>,
    /// Actions for this deployment, in order of their creation.
    pub actions: Vec<DeploymentAction>,
    /// Results of measurements since the last plan.
    pub measurements: Vec<Measurement>,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    /// Labels of the Cluster object.
    pub labels: BTreeMap<String, String>,
    /// Whether new workloads may be placed in it.
    pub is_schedulable: bool,
    /// Whether its Cluster object was deleted: no workloads are placed in it, and its objects are not
    /// deleted.
    pub is_deleted: bool,
    /// Since when it cannot be reached; `None` if it can. While it cannot, `objects` are those last seen.
    pub unreachable_since: Option<Timestamp>,
    /// Until when its circuit breaker is open: no calls are made before.
    pub breaker_open_until: Option<Timestamp>,
    /// Providers that the cluster supports, `Auto` excluded.
    pub providers: BTreeSet<Provider>,
    /// Message of the last failed write, until one succeeds.
    pub last_error: Option<String>,
    /// Objects with a label of this deployment or a name that it needs.
    pub objects: BTreeMap<ObjectKey, Observed>,
    /// The inventory of this deployment for the cluster, stored in the host cluster.
    pub inventory: Inventory,
}

impl ClusterView {
    /// Whether calls can be made at `now`.
    #[must_use]
    pub fn is_reachable(&self, now: Timestamp) -> bool {
        self.unreachable_since.is_none() && self.breaker_open_until.is_none_or(|until| until <= now)
    }
}

/// An inventory as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Its version; `None` if it does not exist.
    pub version: Option<Version>,
    /// Its objects.
    pub objects: BTreeSet<ObjectKey>,
}

/// The observed version of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// UID.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
}

/// An observed object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Its version.
    pub version: Version,
    /// Label: name of the deployment it belongs to; `None` for foreign objects.
    pub deployment: Option<String>,
    /// Label: name of the revision.
    pub revision: Option<String>,
    /// Annotation: hash of what was applied.
    pub hash: Option<String>,
    /// Whether another client changed a field that was applied.
    pub is_drifted: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Of a workload: `spec.replicas`.
    pub replicas: u32,
    /// Of a workload: pods that exist.
    pub pods: u32,
    /// Of a workload: available pods.
    pub available: u32,
    /// Of a route: weights by Service, see [`crate::traffic::WEIGHTS`].
    pub weights: BTreeMap<String, u32>,
    /// Of a route: whether its current generation is in effect.
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

/// The result of one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Metric and template of the measurement.
    pub key: MeasurementKey,
    /// Time of the measurement.
    pub at: Timestamp,
    /// The value; `None` if the query failed or returned nothing.
    pub value: Option<f64>,
    /// Number of samples, if it was queried.
    pub samples: Option<u64>,
}
