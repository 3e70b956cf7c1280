//! Observed state of the delivery controllers: a synchronous data structure that is updated by watch events
//! and by the responses to the controllers' own writes. It needs no async runtime.
//!
//! ```text
//! observe_host(), observe_object(), set_link() ──▶ Index ──start_next(), snapshot()──▶ plans
//! ```

mod backoff;
mod cluster;
mod snapshot;
mod store;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    ActionSpec, AnalysisTemplateSpec, ApplicationDeploymentSpec, ApplicationSpec, ClusterSpec, InventorySpec,
    Kind, RevisionSpec,
};
use mainstay_rollout::label_value;
use mainstay_rollout::manifest::ObjectKey;
use mainstay_rollout::plan::Plan;
use mainstay_rollout::snapshot::Measurement;
use serde_json::Value;

pub(crate) use cluster::{ClusterState, Link, Outage};
pub(crate) use store::{Store, Tombstones, is_older};

use super::names::{ClusterKey, Name, ObjectType, Subject};
use super::observed::object_key;
use super::queue::{Queue, backoff};
use crate::object::string_at;

/// A kind of the API group `delivery.mainstay.dev`. Its objects exist only in the host cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostKind {
    Application,
    Revision,
    Deployment,
    Cluster,
    Inventory,
    Template,
    Action,
}

impl HostKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Application,
        Self::Revision,
        Self::Deployment,
        Self::Cluster,
        Self::Inventory,
        Self::Template,
        Self::Action,
    ];

    /// Returns the plural that is used in URLs.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Application => ApplicationSpec::PLURAL,
            Self::Revision => RevisionSpec::PLURAL,
            Self::Deployment => ApplicationDeploymentSpec::PLURAL,
            Self::Cluster => ClusterSpec::PLURAL,
            Self::Inventory => InventorySpec::PLURAL,
            Self::Template => AnalysisTemplateSpec::PLURAL,
            Self::Action => ActionSpec::PLURAL,
        }
    }
}

/// Consecutive failures of the steps of one deployment in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StepFailures {
    count: u32,
    until: Timestamp,
    message: String,
}

/// Observed state of the delivery controllers.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) applications: Store<ApplicationSpec>,
    pub(crate) revisions: Store<RevisionSpec>,
    pub(crate) deployments: Store<ApplicationDeploymentSpec>,
    pub(crate) clusters: Store<ClusterSpec>,
    pub(crate) inventories: Store<InventorySpec>,
    pub(crate) templates: Store<AnalysisTemplateSpec>,
    pub(crate) actions: Store<ActionSpec>,
    listed: BTreeSet<HostKind>,
    links: BTreeMap<ClusterKey, ClusterState>,
    measurements: BTreeMap<Name, Vec<Measurement>>,
    failures: BTreeMap<(Name, String), StepFailures>,
    pub(crate) queue: Queue,
}

/// Due time of a subject that is planned without delay: a time in the past.
const IMMEDIATELY: Timestamp = Timestamp::UNIX_EPOCH;

/// Age at which measurements are dropped even if no status contains them.
const MAX_MEASUREMENT_AGE: SignedDuration = SignedDuration::from_mins(10);

impl Index {
    /// Stores an object of the host cluster. Older versions and objects that cannot be decoded are ignored.
    pub(crate) fn observe_host(&mut self, kind: HostKind, object: Value) {
        let name = Name::from_object(&object);
        let before = self.change_key(kind, &name);
        let stored = match kind {
            HostKind::Application => self.applications.observe(object),
            HostKind::Revision => self.revisions.observe(object),
            HostKind::Deployment => self.deployments.observe(object),
            HostKind::Cluster => self.clusters.observe(object),
            HostKind::Inventory => self.inventories.observe(object),
            HostKind::Template => self.templates.observe(object),
            HostKind::Action => self.actions.observe(object),
        };
        match stored {
            Ok(Some(name)) => {
                if self.change_key(kind, &name) != before {
                    self.reset_backoff(kind, &name);
                }
                self.host_changed(kind, &name);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(error = %error, "ignoring an object that cannot be decoded"),
        }
    }

    /// Removes a deleted object of the host cluster.
    pub(crate) fn remove_host(&mut self, kind: HostKind, object: &Value) {
        let name = Name::from_object(object);
        // Called before the removal, because the references of the object are needed.
        self.reset_backoff(kind, &name);
        self.host_changed(kind, &name);
        let uid = string_at(object, "/metadata/uid");
        match kind {
            HostKind::Application => self.applications.remove(&name, uid),
            HostKind::Revision => self.revisions.remove(&name, uid),
            HostKind::Deployment => self.deployments.remove(&name, uid),
            HostKind::Cluster => self.clusters.remove(&name, uid),
            HostKind::Inventory => self.inventories.remove(&name, uid),
            HostKind::Template => self.templates.remove(&name, uid),
            HostKind::Action => self.actions.remove(&name, uid),
        }
    }

    /// Completes the list of a kind: removes known objects that are not in `names`, unless they are newer
    /// than the list.
    pub(crate) fn finish_host_list(&mut self, kind: HostKind, names: &BTreeSet<Name>, version: &str) {
        let gone = match kind {
            HostKind::Application => self.applications.retain(names, version),
            HostKind::Revision => self.revisions.retain(names, version),
            HostKind::Deployment => self.deployments.retain(names, version),
            HostKind::Cluster => self.clusters.retain(names, version),
            HostKind::Inventory => self.inventories.retain(names, version),
            HostKind::Template => self.templates.retain(names, version),
            HostKind::Action => self.actions.retain(names, version),
        };
        for name in gone {
            self.reset_backoff(kind, &name);
            self.host_changed(kind, &name);
        }
        if self.listed.insert(kind) && self.is_host_listed() {
            self.enqueue_all();
        }
    }

    /// Whether every [`HostKind`] was listed.
    pub(crate) fn is_host_listed(&self) -> bool {
        self.listed.len() == HostKind::ALL.len()
    }

    /// Enqueues every subject.
    pub(crate) fn enqueue_all(&mut self) {
        let clusters = self.clusters.names().cloned().map(Subject::Cluster);
        let applications = self.applications.names().cloned().map(Subject::Application);
        let deployments = self.deployments.names().cloned().map(Subject::Deployment);
        let all: Vec<Subject> = clusters.chain(applications).chain(deployments).collect();
        for subject in all {
            self.enqueue(subject);
        }
    }

    pub(crate) fn enqueue(&mut self, subject: Subject) {
        self.queue.enqueue(subject, IMMEDIATELY);
    }

    fn enqueue_deployments(&mut self, namespace: &str) {
        let names: Vec<Name> = self
            .deployments
            .in_namespace(namespace)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.enqueue(Subject::Deployment(name));
        }
    }

    /// Enqueues the subjects that a change of an object of the host cluster affects.
    fn host_changed(&mut self, kind: HostKind, name: &Name) {
        let sibling = |other: &str| Name::new(&name.namespace, other);
        match kind {
            HostKind::Application => self.enqueue(Subject::Application(name.clone())),
            HostKind::Revision => {
                let owner = self
                    .revisions
                    .get(name)
                    .map(|revision| sibling(&revision.spec.application_name));
                if let Some(owner) = owner {
                    self.enqueue(Subject::Application(owner));
                }
                self.enqueue_deployments(&name.namespace);
            }
            HostKind::Deployment => {
                self.enqueue(Subject::Deployment(name.clone()));
                self.enqueue_applications(name);
            }
            HostKind::Cluster => {
                self.enqueue(Subject::Cluster(name.clone()));
                self.enqueue_deployments(&name.namespace);
            }
            HostKind::Inventory => {
                let owner = self
                    .inventories
                    .get(name)
                    .map(|inventory| sibling(&inventory.spec.deployment_name));
                if let Some(owner) = owner {
                    self.enqueue(Subject::Deployment(owner));
                }
            }
            HostKind::Template => self.enqueue_deployments(&name.namespace),
            HostKind::Action => {
                let owner = self
                    .actions
                    .get(name)
                    .map(|action| sibling(&action.spec.deployment_name));
                if let Some(owner) = owner {
                    self.enqueue(Subject::Deployment(owner));
                }
            }
        }
    }

    /// Enqueues all applications in the namespace of a deployment, because it may refer to their revisions.
    fn enqueue_applications(&mut self, name: &Name) {
        let namespace = &name.namespace;
        let names: Vec<Name> = self
            .applications
            .in_namespace(namespace)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.enqueue(Subject::Application(name));
        }
    }

    // State of clusters.

    /// Returns the state of a cluster.
    pub(crate) fn cluster(&self, key: &ClusterKey) -> Option<&ClusterState> {
        self.links.get(key)
    }

    /// Returns the state of a cluster. Creates it if the cluster is not known.
    pub(crate) fn cluster_mut(&mut self, key: &ClusterKey) -> &mut ClusterState {
        self.links.entry(key.clone()).or_default()
    }

    /// Returns the number of known objects in all clusters.
    pub(crate) fn object_count(&self) -> usize {
        self.links.values().map(ClusterState::object_count).sum()
    }

    /// Sets the link of a cluster. If it changed, enqueues the affected subjects.
    pub(crate) fn set_link(&mut self, key: &ClusterKey, link: Link) {
        if !self.cluster_mut(key).set_link(link) {
            return;
        }
        match key {
            ClusterKey::Host => self.enqueue_all(),
            ClusterKey::Remote(name) => {
                self.enqueue(Subject::Cluster(name.clone()));
                self.enqueue_deployments(&name.namespace);
            }
        }
    }

    /// Removes the state of a cluster after its Cluster object was deleted.
    pub(crate) fn drop_link(&mut self, key: &ClusterKey) {
        self.links.remove(key);
        if let ClusterKey::Remote(name) = key {
            self.enqueue_deployments(&name.namespace);
        }
    }

    /// Stores an object of a cluster.
    pub(crate) fn observe_object(&mut self, cluster: &ClusterKey, kind: &ObjectType, object: Value) {
        let key = object_key(kind, &object);
        let changed = self.cluster_mut(cluster).observe(key.clone(), object);
        self.objects_changed(&key.namespace, changed);
    }

    /// Stores the response to an apply. Differences that the server made itself do not count as drift.
    pub(crate) fn observe_applied(&mut self, cluster: &ClusterKey, key: &ObjectKey, object: Value) {
        let changed = self.cluster_mut(cluster).observe_applied(key, object);
        self.objects_changed(&key.namespace, changed);
    }

    /// Removes a deleted object of a cluster.
    pub(crate) fn remove_object(&mut self, cluster: &ClusterKey, key: &ObjectKey, uid: &str) {
        let changed = self.cluster_mut(cluster).remove(key, uid);
        self.objects_changed(&key.namespace, changed);
    }

    /// Completes the list of a kind in a cluster: removes known objects that are not in `names`, unless
    /// they are newer than the list.
    pub(crate) fn finish_list(
        &mut self,
        cluster: &ClusterKey,
        kind: &ObjectType,
        names: &BTreeSet<ObjectKey>,
        version: &str,
    ) {
        let (gone, is_synced) = self.cluster_mut(cluster).finish_list(kind, names, version);
        for (namespace, label) in gone {
            self.objects_changed(&namespace, Some(label));
        }
        if is_synced {
            match cluster {
                ClusterKey::Host => self.enqueue_all(),
                ClusterKey::Remote(name) => self.enqueue_deployments(&name.namespace),
            }
        }
    }

    /// Enqueues the deployment with this label, or all deployments of the namespace if the label is empty.
    /// Does nothing if `label` is `None`.
    fn objects_changed(&mut self, namespace: &str, label: Option<String>) {
        let Some(label) = label else { return };
        let own = self.deployments.in_namespace(namespace);
        let own = own.filter(|(name, _)| label.is_empty() || label_value(&name.name) == label);
        let names: Vec<Name> = own.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.enqueue(Subject::Deployment(name));
        }
    }

    /// Adds the kinds of a plan's objects to the watched kinds, and compares known objects with the desired
    /// ones. Returns whether the deployment must be planned again, because a kind is not listed yet or
    /// drift was found.
    pub(crate) fn record_plan(&mut self, name: &Name, plan: &Plan) -> bool {
        let owner = self
            .deployments
            .get(name)
            .map(|deployment| deployment.owner_reference());
        let mut is_changed = false;
        for (cluster, manifests) in &plan.desired {
            let key = ClusterKey::for_name(&name.namespace, cluster);
            let owner = owner.clone().filter(|_| key == ClusterKey::Host);
            let state = self.cluster_mut(&key);
            for manifest in manifests {
                is_changed |= state.watch_type(ObjectType::from(&manifest.key));
                is_changed |= state.record_desired(manifest, owner.as_ref());
            }
        }
        is_changed
    }

    // Results of executed plans.

    /// Records whether the steps of a deployment in a cluster succeeded.
    pub(crate) fn record_step_result(
        &mut self,
        name: &Name,
        cluster: &str,
        error: Option<String>,
        now: Timestamp,
    ) {
        let key = (name.clone(), cluster.to_owned());
        let Some(message) = error else {
            self.failures.remove(&key);
            return;
        };
        let count = self.failures.get(&key).map_or(0, |failures| failures.count) + 1;
        let until = now.checked_add(backoff(count)).unwrap_or(Timestamp::MAX);
        self.failures.insert(
            key,
            StepFailures {
                count,
                until,
                message,
            },
        );
        self.queue.enqueue(Subject::Deployment(name.clone()), until);
    }

    /// Clears the failures in clusters that have no steps left: a write that was reported as failed may
    /// have been executed. Returns whether there were any.
    pub(crate) fn clear_resolved_failures(&mut self, name: &Name, plan: &Plan) -> bool {
        let before = self.failures.len();
        self.failures
            .retain(|(subject, cluster), _| subject != name || plan.clusters.contains_key(cluster));
        self.failures.len() != before
    }

    /// Removes the steps of clusters that are in back-off after a failure, and enqueues the deployment for
    /// the end of the back-off.
    pub(crate) fn drop_waiting_steps(&mut self, name: &Name, plan: &mut Plan, now: Timestamp) {
        let waits = |cluster: &String| {
            let failures = self.failures.get(&(name.clone(), cluster.clone()))?;
            Some(failures.until).filter(|until| *until > now)
        };
        let ends: Vec<Timestamp> = plan.clusters.keys().filter_map(waits).collect();
        plan.clusters.retain(|cluster, _| waits(cluster).is_none());
        for end in ends {
            self.queue.enqueue(Subject::Deployment(name.clone()), end);
        }
    }

    /// Adds the result of a query.
    pub(crate) fn add_measurement(&mut self, name: &Name, measurement: Measurement) {
        self.measurements
            .entry(name.clone())
            .or_default()
            .push(measurement);
        self.enqueue(Subject::Deployment(name.clone()));
    }

    /// Drops measurements that the status already contains, and old ones.
    fn prune_measurements(&mut self, name: &Name, now: Timestamp) {
        let runs = self
            .deployments
            .get(name)
            .map(|deployment| deployment.status.analysis.clone());
        let runs = runs.unwrap_or_default();
        let is_counted = |measurement: &Measurement| {
            runs.iter().any(|run| {
                run.template_name == measurement.key.template
                    && run.metric == measurement.key.metric
                    && run.step_hash == measurement.key.step_hash
                    && run
                        .measured_at
                        .is_some_and(|at| at >= mainstay_api::Time::from_timestamp(measurement.at))
            })
        };
        if let Some(list) = self.measurements.get_mut(name) {
            list.retain(|one| !is_counted(one) && now.duration_since(one.at) < MAX_MEASUREMENT_AGE);
        }
    }
}

#[cfg(test)]
mod tests;
