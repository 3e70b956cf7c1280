//! A model of clusters that executes plans in virtual time. Pods become available and routes take effect
//! after a delay.
//!
//! [`timeline()`] runs a rollout on it to predict the effects of a change. The planner's tests run the same
//! model with random delays and faults.

mod execute;
mod load;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::Time;
use mainstay_api::delivery::{
    ActionSpec, ActionVerb, AnalysisTemplate, ApplicationDeployment, ApplicationDeploymentSpec,
    ApplicationRevision, Cluster, DeploymentAction, Metric, Provider,
};
use serde_json::Value;

use crate::manifest::{ObjectKey, Role};
use crate::plan::MeasureRequest;
use crate::snapshot::{ClusterView, Inventory, Measurement, Observed, Snapshot};

pub use load::{Load, load};
pub use timeline::{End, Frame, Replicas, Timeline, TimelineOptions, Write, describe_step, timeline};

/// Behavior of clusters. The delays determine the duration of a rollout.
pub trait Behavior {
    /// Returns the time until a new pod is ready, or `None` if it never becomes ready. `revision` is the
    /// value of the pod's revision label.
    fn pod_delay(&mut self, cluster: &str, revision: &str) -> Option<SignedDuration>;

    /// Returns the time until a written route takes effect.
    fn route_delay(&mut self) -> SignedDuration;

    /// Returns the value of a metric, or `None` if there is no data.
    fn measure(&mut self, request: &MeasureRequest, metric: Option<&Metric>) -> Option<f64>;
}

/// Behavior with fixed delays and successful measurements.
#[derive(Clone, Debug, Default)]
pub struct FixedBehavior {
    /// Time until a new pod is ready.
    pub pod_delay: SignedDuration,
    /// Time until a written route takes effect.
    pub route_delay: SignedDuration,
    /// Revisions whose pods never become ready.
    pub never_ready: BTreeSet<String>,
    /// Templates for which measurements have no data.
    pub without_data: BTreeSet<String>,
    /// Templates for which measurements fail.
    pub failing: BTreeSet<String>,
}

impl Behavior for FixedBehavior {
    fn pod_delay(&mut self, _: &str, revision: &str) -> Option<SignedDuration> {
        (!self.never_ready.contains(revision)).then_some(self.pod_delay)
    }

    fn route_delay(&mut self) -> SignedDuration {
        self.route_delay
    }

    fn measure(&mut self, request: &MeasureRequest, metric: Option<&Metric>) -> Option<f64> {
        let template = &request.key.template;
        if self.without_data.contains(template) {
            return None;
        }
        let range = metric?.success;
        if self.failing.contains(template) {
            return range.min.map(|min| min - 1.0).or(range.max.map(|max| max + 1.0));
        }
        range.min.or(range.max)
    }
}

/// An object in a cluster.
#[derive(Clone, Debug, Default)]
pub struct ModelObject {
    /// State of the object as observed by a controller.
    pub observed: Observed,
    /// Applied manifest. Null for an object from a snapshot.
    pub manifest: Value,
    /// For a route: weights that are in effect.
    pub effective: BTreeMap<String, u32>,
    /// For a workload: times at which its pods become ready.
    pods: Vec<Timestamp>,
    accepted_at: Option<Timestamp>,
}

impl ModelObject {
    /// Returns the number of pods that are ready at `now`.
    #[must_use]
    pub fn ready_pods(&self, now: Timestamp) -> u32 {
        let ready = self.pods.iter().filter(|ready_at| **ready_at <= now).count();
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    fn from_observed(observed: Observed, now: Timestamp) -> Self {
        let effective = if observed.is_accepted {
            observed.weights.clone()
        } else {
            BTreeMap::new()
        };
        Self {
            pods: vec![now; observed.available.min(observed.replicas) as usize],
            accepted_at: (!observed.is_accepted && !observed.weights.is_empty()).then_some(now),
            effective,
            observed,
            manifest: Value::Null,
        }
    }
}

/// A cluster.
#[derive(Clone, Debug, Default)]
pub struct ModelCluster {
    /// Labels of the Cluster object.
    pub labels: BTreeMap<String, String>,
    /// Whether new workloads must not be placed in the cluster.
    pub is_unschedulable: bool,
    /// Providers that the cluster supports.
    pub providers: BTreeSet<Provider>,
    /// Objects by key.
    pub objects: BTreeMap<ObjectKey, ModelObject>,
    /// Inventory of the deployment for this cluster.
    pub inventory: Inventory,
    /// Start of the period in which the cluster is unreachable.
    pub down_since: Option<Timestamp>,
    /// End of the period in which the cluster is unreachable.
    pub down_until: Option<Timestamp>,
    /// Objects as last observed by the controller.
    last_observed: BTreeMap<ObjectKey, Observed>,
    /// Whether the controller was restarted while the cluster was unreachable.
    is_unobserved: bool,
}

impl ModelCluster {
    /// Creates an empty cluster that supports one provider.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self {
            providers: BTreeSet::from([provider]),
            ..Self::default()
        }
    }

    /// Creates an empty cluster with the labels and the schedulability of a Cluster object.
    #[must_use]
    pub fn from_cluster(cluster: &Cluster) -> Self {
        Self {
            labels: cluster.metadata.labels.clone(),
            is_unschedulable: !cluster.spec.is_schedulable(),
            ..Self::default()
        }
    }

    fn from_view(view: ClusterView, now: Timestamp) -> Self {
        let object =
            |(key, observed): (ObjectKey, Observed)| (key, ModelObject::from_observed(observed, now));
        Self {
            labels: view.labels,
            is_unschedulable: !view.is_schedulable,
            providers: view.providers,
            last_observed: view.objects.clone(),
            objects: view.objects.into_iter().map(object).collect(),
            inventory: view.inventory,
            down_since: view.unreachable_since,
            down_until: None,
            is_unobserved: view.is_unobserved,
        }
    }
}

/// State of the clusters and the deployment that plans are executed on.
#[derive(Clone, Debug)]
pub struct Model {
    /// Current time.
    pub now: Timestamp,
    /// Deployment.
    pub deployment: ApplicationDeployment,
    /// Revisions by name.
    pub revisions: BTreeMap<String, Arc<ApplicationRevision>>,
    /// Clusters by name. The name of the host cluster is empty.
    pub clusters: BTreeMap<String, ModelCluster>,
    /// Analysis templates by name.
    pub templates: BTreeMap<String, AnalysisTemplate>,
    /// Actions in order of creation.
    pub actions: Vec<DeploymentAction>,
    /// Results of measurements since the last snapshot.
    pub measurements: Vec<Measurement>,
    versions: u64,
}

impl Model {
    /// Creates a model without revisions and clusters.
    #[must_use]
    pub fn new(now: Timestamp, deployment: ApplicationDeployment) -> Self {
        Self {
            now,
            deployment,
            revisions: BTreeMap::new(),
            clusters: BTreeMap::new(),
            templates: BTreeMap::new(),
            actions: Vec::new(),
            measurements: Vec::new(),
            versions: 0,
        }
    }

    /// Creates a model from an observed state. Existing pods that are not available are started again.
    #[must_use]
    pub fn from_snapshot(snapshot: Snapshot, behavior: &mut dyn Behavior) -> Self {
        let mut model = Self::new(snapshot.now, snapshot.deployment);
        model.revisions = snapshot.revisions;
        model.templates = snapshot.templates;
        model.actions = snapshot.actions;
        model.measurements = snapshot.measurements;
        let clusters = snapshot.clusters.into_iter();
        model.clusters = clusters
            .map(|(name, view)| (name, ModelCluster::from_view(view, snapshot.now)))
            .collect();
        model.adjust_pods(behavior);
        model
    }

    /// Replaces the spec of the deployment.
    pub fn set_spec(&mut self, spec: ApplicationDeploymentSpec) {
        self.deployment.spec = spec;
        self.deployment.metadata.generation += 1;
        self.deployment.metadata.resource_version = self.next_version();
    }

    /// Creates an action for the deployment.
    pub fn request(&mut self, verb: ActionVerb) {
        let uid = self.next_version();
        let spec = ActionSpec {
            deployment_name: self.deployment.name().to_owned(),
            verb,
            step_hash: None,
        };
        let name = format!("action-{uid}");
        let mut action = DeploymentAction::new(self.deployment.namespace(), &name, spec);
        action.metadata.uid = uid;
        self.actions.push(action);
    }

    /// Marks the deployment as deleted. It is kept by its finalizer.
    pub fn delete_deployment(&mut self) {
        self.deployment.metadata.deletion_timestamp = Some(Time::from_timestamp(self.now));
        self.deployment.metadata.resource_version = self.next_version();
    }

    /// Returns a unique resource version.
    pub fn next_version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    /// Whether a cluster is reachable.
    #[must_use]
    pub fn is_up(&self, cluster: &str) -> bool {
        let cluster = self.clusters.get(cluster);
        cluster.is_some_and(|cluster| cluster.down_since.is_none())
    }

    /// Returns an object of a cluster, or `None` if it does not exist.
    #[must_use]
    pub fn object(&self, cluster: &str, key: &ObjectKey) -> Option<&ModelObject> {
        self.clusters.get(cluster)?.objects.get(key)
    }

    /// Returns the state that a controller observes. For an unreachable cluster, this is the last observed
    /// state.
    pub fn snapshot(&mut self) -> Snapshot {
        let mut clusters = BTreeMap::new();
        for (name, cluster) in &mut self.clusters {
            if cluster.down_since.is_none() {
                let observed =
                    |(key, object): (&ObjectKey, &ModelObject)| (key.clone(), object.observed.clone());
                cluster.last_observed = cluster.objects.iter().map(observed).collect();
                cluster.is_unobserved = false;
            }
            let view = ClusterView {
                labels: cluster.labels.clone(),
                is_schedulable: !cluster.is_unschedulable,
                is_deleted: false,
                last_error: None,
                unreachable_since: cluster.down_since,
                is_unobserved: cluster.is_unobserved,
                breaker_open_until: None,
                providers: cluster.providers.clone(),
                objects: cluster.last_observed.clone(),
                inventory: cluster.inventory.clone(),
            };
            clusters.insert(name.clone(), view);
        }
        Snapshot {
            now: self.now,
            deployment: self.deployment.clone(),
            revisions: self.revisions.clone(),
            clusters,
            templates: self.templates.clone(),
            actions: self.actions.clone(),
            measurements: std::mem::take(&mut self.measurements),
        }
    }

    /// Restarts the controller, which loses what it observed in clusters that are unreachable now.
    pub fn restart_controller(&mut self) {
        for cluster in self.clusters.values_mut() {
            if cluster.down_since.is_some() {
                cluster.last_observed.clear();
                cluster.is_unobserved = true;
            }
        }
    }

    /// Makes a cluster unreachable for some time.
    pub fn disconnect(&mut self, name: &str, length: SignedDuration) {
        let now = self.now;
        if let Some(cluster) = self.clusters.get_mut(name) {
            cluster.down_since = Some(now);
            cluster.down_until = Some(now.saturating_add(length).unwrap_or(Timestamp::MAX));
        }
    }

    /// Advances time: pods become ready, routes take effect, clusters become reachable.
    pub fn advance(&mut self, by: SignedDuration) {
        self.now = self.now.saturating_add(by).unwrap_or(Timestamp::MAX);
        let now = self.now;
        for cluster in self.clusters.values_mut() {
            if cluster.down_until.is_some_and(|until| until <= now) {
                (cluster.down_since, cluster.down_until) = (None, None);
            }
            for (key, object) in &mut cluster.objects {
                if Role::for_kind(&key.kind) == Role::Workload {
                    object.observed.pods = u32::try_from(object.pods.len()).unwrap_or(u32::MAX);
                    object.observed.available = object.ready_pods(now);
                }
                if object.accepted_at.is_some_and(|at| at <= now) {
                    object.observed.is_accepted = true;
                    object.effective = object.observed.weights.clone();
                    object.accepted_at = None;
                }
            }
        }
    }

    /// Returns the time of the next change that requires no write: a pod becomes ready, a route takes
    /// effect, or a cluster becomes reachable. If there is a change that a controller has not observed,
    /// returns the current time.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        let object = |(key, object): (&ObjectKey, &ModelObject)| {
            let is_workload = Role::for_kind(&key.kind) == Role::Workload;
            let is_outdated = is_workload
                && (object.observed.pods as usize != object.pods.len()
                    || object.observed.available != object.ready_pods(self.now));
            let starting = object
                .pods
                .iter()
                .filter(|at| **at > self.now && **at < Timestamp::MAX);
            let next = starting.chain(&object.accepted_at).min().copied();
            if is_outdated { Some(self.now) } else { next }
        };
        let clusters = self.clusters.values();
        clusters
            .filter_map(|cluster| {
                let objects = cluster.objects.iter().filter_map(object);
                objects.chain(cluster.down_until).min()
            })
            .min()
            .map(|at| at.max(self.now))
    }
}
