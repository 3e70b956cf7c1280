//! A simulated cluster for tests: a snapshot, and a minimal executor that applies plans as an API server
//! would. Deterministic, with a manual clock.

#![allow(dead_code, reason = "no test file uses every helper")]
#![allow(unreachable_pub, reason = "a module of each test, not a crate")]
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a panic is how a test fails"
)]

mod executor;
pub mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    Condition, ConditionType, Conditions, Istio, IstioCni, IstioRevision, IstioRevisionTag, Kind, ObjectKind,
    ObjectMeta, Reason, Resource, Status, Time, ZTunnel,
};
use mainstay_mesh::plan::NewStatus;
use mainstay_mesh::references::{Labels, ReferrerKey};
use mainstay_mesh::snapshot::{DaemonSet, Deployment, Objects, Source, SourceState};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{
    AffectedSubjects, Library, Observation, Plan, Resolution, Settings, Snapshot, Subject, plan,
};
use serde_json::{Value, json};

/// A simulated cluster.
#[derive(Clone, Debug)]
pub struct World {
    pub snapshot: Snapshot,
    pub queue: BTreeSet<Subject>,
    /// Executed actions, one line each.
    pub executed: Vec<String>,
    /// Sent events, with the batch in the status at that time.
    pub events: Vec<SentEvent>,
    /// Whether installed releases become ready immediately.
    pub ready: bool,
    serial: u64,
    /// Workloads as stored by the API server.
    pub workloads: BTreeMap<WorkloadKey, Value>,
    /// Last observation of each object that cannot be read from a snapshot: namespaces, pods, Deployments,
    /// `DaemonSets`, webhooks and sources.
    last_observations: BTreeMap<String, Observation>,
}

/// An event, and current batch and number of batches in the status of the Istio `default` when it was sent.
#[derive(Clone, Debug)]
pub struct SentEvent {
    pub reason: Reason,
    pub message: String,
    pub current_batch: i32,
    pub total_batches: i32,
}

/// Start time of every world.
pub const START: i64 = 1_800_000_000;

pub fn library() -> Library {
    let mut library = Library::default();
    let profile = |json: Value| json.as_object().cloned().unwrap();
    for version in ["1.27.9", "1.28.2", "1.29.1"] {
        let profiles = [
            (
                "default",
                json!({"defaultRevision": "", "global": {"istioNamespace": "istio-system", "configValidation": true}, "ztunnel": {"resourceName": "ztunnel"}}),
            ),
            ("ambient", json!({"profile": "ambient"})),
            ("remote", json!({"profile": "remote"})),
            ("openshift", json!({"global": {"platform": "openshift"}})),
            ("empty", json!({})),
        ];
        let profiles = profiles.map(|(name, values)| (name.to_owned(), profile(values)));
        library.add_version(version.parse().unwrap(), profiles.into());
    }
    library.add_name("v1.29-latest", Resolution::Installable("1.29.1".parse().unwrap()));
    library.add_name(
        "v1.30.3",
        Resolution::ChartsUnavailable("1.30.3".parse().unwrap()),
    );
    library.add_name("v1.23.4", Resolution::EndOfLife);
    library
}

impl Default for World {
    fn default() -> Self {
        Self::with_settings(Settings {
            operator_namespace: "sail-operator".into(),
            ..Settings::default()
        })
    }
}

impl World {
    /// Returns a world with these settings and four namespaces.
    pub fn with_settings(settings: Settings) -> Self {
        let now = Timestamp::from_second(START).unwrap();
        let mut world = Self {
            snapshot: Snapshot::new(now, Arc::new(settings), Arc::new(library())),
            queue: BTreeSet::new(),
            executed: Vec::new(),
            events: Vec::new(),
            ready: true,
            serial: 0,
            workloads: BTreeMap::new(),
            last_observations: BTreeMap::new(),
        };
        for source in Source::ALL {
            world.observe(Observation::Source(source, SourceState::Ready));
        }
        for name in ["istio-system", "istio-cni", "ztunnel", "sail-operator"] {
            world.namespace(name, "");
        }
        world
    }

    /// Records an observation and enqueues the affected subjects.
    pub fn observe(&mut self, observation: Observation) -> AffectedSubjects {
        self.record_last_observation(&observation);
        let affected = self.snapshot.observe(observation);
        self.queue.extend(affected.iter().cloned());
        affected
    }

    fn record_last_observation(&mut self, observation: &Observation) {
        let key = match observation {
            Observation::Namespace { name, .. } | Observation::ReferrerGone(ReferrerKey::Namespace(name)) => {
                format!("namespace/{name}")
            }
            Observation::Pod { namespace, name, .. }
            | Observation::ReferrerGone(ReferrerKey::Pod(namespace, name)) => {
                format!("pod/{namespace}/{name}")
            }
            Observation::Deployment(namespace, name, _) => format!("deployment/{namespace}/{name}"),
            Observation::DaemonSet(namespace, name, _) => format!("daemonset/{namespace}/{name}"),
            Observation::Webhook(webhook) => format!("webhook/{}", webhook.metadata.name),
            Observation::Workload(key, _) => format!("workload/{key}"),
            Observation::Source(source, _) => format!("source/{source:?}"),
            _ => return,
        };
        self.last_observations.insert(key, observation.clone());
    }

    /// Returns the cluster as observed by an operator that has just started.
    pub fn with_restarted_operator(&self) -> Self {
        let (now, settings, library) = (
            self.snapshot.now,
            self.snapshot.settings.clone(),
            self.snapshot.library.clone(),
        );
        let mut restarted = Self {
            snapshot: Snapshot::new(now, settings, library),
            queue: BTreeSet::new(),
            ..self.clone()
        };
        for observation in self.last_observations.values() {
            restarted.snapshot.observe(observation.clone());
        }
        for istio in self.snapshot.istios().iter() {
            restarted.snapshot.observe(Observation::Istio(istio.clone()));
        }
        for revision in self.snapshot.revisions().iter() {
            restarted
                .snapshot
                .observe(Observation::Revision(revision.clone()));
        }
        for tag in self.snapshot.tags().iter() {
            restarted.snapshot.observe(Observation::Tag(tag.clone()));
        }
        for cni in self.snapshot.cnis().iter() {
            restarted.snapshot.observe(Observation::Cni(cni.clone()));
        }
        for ztunnel in self.snapshot.ztunnels().iter() {
            restarted.snapshot.observe(Observation::ZTunnel(ztunnel.clone()));
        }
        restarted
    }

    pub fn namespace(&mut self, name: &str, labels: &str) -> AffectedSubjects {
        self.put_namespace(name, pairs(labels), Labels::default())
    }

    pub fn put_namespace(&mut self, name: &str, labels: Labels, annotations: Labels) -> AffectedSubjects {
        let version = self.next_serial();
        self.observe(Observation::Namespace {
            name: name.into(),
            labels,
            terminating: false,
            uid: format!("uid-{name}"),
            resource_version: version.to_string(),
            annotations,
        })
    }

    pub fn pod(&mut self, namespace: &str, name: &str, labels: &str, annotations: &str) -> AffectedSubjects {
        self.observe(Observation::Pod {
            namespace: namespace.into(),
            name: name.into(),
            labels: pairs(labels),
            annotations: pairs(annotations),
            finished: false,
            terminating: false,
            workload: None,
        })
    }

    pub fn pod_gone(&mut self, namespace: &str, name: &str) -> AffectedSubjects {
        self.observe(Observation::ReferrerGone(ReferrerKey::Pod(
            namespace.into(),
            name.into(),
        )))
    }

    /// Makes a source unreadable.
    pub fn fail_source(&mut self, source: Source, error: &str) {
        self.observe(Observation::Source(source, SourceState::Failing(error.into())));
    }

    pub fn advance(&mut self, seconds: i64) {
        self.snapshot.now = self
            .snapshot
            .now
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap();
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Applies an object as a user would. Of an existing object, only the spec changes.
    pub fn apply<S: Kind + StoredKind>(&mut self, name: &str, spec: Value) -> Resource<S> {
        let spec: S = serde_json::from_value(spec).unwrap();
        let version = self.next_serial();
        let mut object = S::all(&self.snapshot)
            .get(name)
            .cloned()
            .unwrap_or_else(|| Resource {
                metadata: ObjectMeta {
                    name: name.into(),
                    uid: format!("uid-{version:04}"),
                    generation: 0,
                    creation_timestamp: Some(Time::from_timestamp(self.snapshot.now)),
                    ..ObjectMeta::default()
                },
                ..Resource::default()
            });
        if object.spec != spec || object.metadata.generation == 0 {
            object.metadata.generation += 1;
        }
        object.spec = spec;
        self.store(object)
    }

    /// Stores an object with a new resource version.
    pub fn store<S: Kind + StoredKind>(&mut self, mut object: Resource<S>) -> Resource<S> {
        object.metadata.resource_version = self.next_serial().to_string();
        self.observe(S::observation(object.clone()));
        object
    }

    pub fn edit<S: Kind + StoredKind>(&mut self, name: &str, edit: impl FnOnce(&mut Resource<S>)) {
        let mut object = S::all(&self.snapshot)
            .get(name)
            .cloned()
            .unwrap_or_else(|| panic!("no {name}"));
        edit(&mut object);
        self.store(object);
    }

    /// Deletes an object as a user would. It remains while it has finalizers; objects it owns are
    /// garbage-collected.
    pub fn delete<S: Kind + StoredKind>(&mut self, name: &str) {
        let Some(object) = S::all(&self.snapshot).get(name).cloned() else {
            return;
        };
        let now = self.snapshot.now;
        if object.metadata.finalizers.is_empty() {
            self.observe(Observation::Gone(Subject::Object(S::KIND, name.into())));
            self.collect_garbage(&object.metadata.uid);
        } else if object.metadata.deletion_timestamp.is_none() {
            self.edit::<S>(name, |object| {
                object.metadata.deletion_timestamp = Some(Time::from_timestamp(now));
            });
        }
    }

    /// Deletes the objects whose owner was deleted, as the garbage collector does.
    fn collect_garbage(&mut self, uid: &str) {
        let revisions: Vec<String> = self
            .snapshot
            .revisions()
            .owned_by(uid)
            .map(|one| one.name().to_owned())
            .collect();
        let tags: Vec<String> = self
            .snapshot
            .tags()
            .owned_by(uid)
            .map(|one| one.name().to_owned())
            .collect();
        for name in revisions {
            self.delete::<mainstay_api::RevisionSpec>(&name);
        }
        for name in tags {
            self.delete::<mainstay_api::TagSpec>(&name);
        }
    }

    pub fn istio(&mut self, name: &str, spec: Value) -> Istio {
        self.apply(name, spec)
    }

    pub fn revision(&mut self, name: &str, spec: Value) -> IstioRevision {
        self.apply(name, spec)
    }

    pub fn tag(&mut self, name: &str, kind: &str, target: &str) -> IstioRevisionTag {
        self.apply(name, json!({"targetRef": {"kind": kind, "name": target}}))
    }

    pub fn cni(&mut self, spec: Value) -> IstioCni {
        self.apply("default", spec)
    }

    pub fn ztunnel(&mut self, spec: Value) -> ZTunnel {
        self.apply("default", spec)
    }

    pub fn plan(&self, subject: &Subject) -> Plan {
        plan(&self.snapshot, subject)
    }

    /// Plans and executes the queued subjects until the queue is empty. Returns the executed actions.
    pub fn settle(&mut self) -> Vec<String> {
        let before = self.executed.len();
        for _ in 0..500 {
            let Some(subject) = self.queue.pop_first() else {
                return self.executed.split_off(before);
            };
            let plan = self.plan(&subject);
            self.execute(&plan);
        }
        panic!(
            "does not converge: {:#?}",
            &self.executed[self.executed.len().saturating_sub(20)..]
        );
    }

    /// Like [`World::settle`]. Then plans every subject again and asserts that no plan has steps.
    pub fn settle_and_check_idle(&mut self) -> Vec<String> {
        let executed = self.settle();
        for subject in self.snapshot.subjects() {
            let plan = self.plan(&subject);
            assert!(plan.is_empty(), "{subject} still has {:#?}", plan.steps);
        }
        executed
    }

    pub fn deployment(&mut self, namespace: &str, name: &str, replicas: i32, ready: i32) {
        let fact = Deployment { replicas, ready };
        self.observe(Observation::Deployment(namespace.into(), name.into(), Some(fact)));
    }

    pub fn delete_deployment(&mut self, namespace: &str, name: &str) {
        self.observe(Observation::Deployment(namespace.into(), name.into(), None));
    }

    pub fn daemonset(&mut self, namespace: &str, name: &str, scheduled: i32, ready: i32) {
        let fact = DaemonSet { scheduled, ready };
        self.observe(Observation::DaemonSet(namespace.into(), name.into(), Some(fact)));
    }

    /// Returns the state and the conditions of an object, one per line.
    pub fn conditions(&self, subject: &Subject) -> Vec<String> {
        fn conditions_in<S: Kind>(objects: &Objects<S>, name: &str) -> Vec<String> {
            let status = &objects.get(name).unwrap_or_else(|| panic!("no {name}")).status;
            let state = format!("state={}", status.state());
            [state]
                .into_iter()
                .chain(format_conditions(status.conditions()))
                .collect()
        }
        match subject {
            Subject::Object(ObjectKind::Istio, name) => conditions_in(self.snapshot.istios(), name),
            Subject::Object(ObjectKind::IstioRevision, name) => {
                conditions_in(self.snapshot.revisions(), name)
            }
            Subject::Object(ObjectKind::IstioRevisionTag, name) => conditions_in(self.snapshot.tags(), name),
            Subject::Object(ObjectKind::IstioCni, name) => conditions_in(self.snapshot.cnis(), name),
            Subject::Object(ObjectKind::ZTunnel, name) => conditions_in(self.snapshot.ztunnels(), name),
            Subject::Webhook(_) | Subject::Namespace(_) | Subject::Workload(_) => Vec::new(),
        }
    }

    pub fn revisions(&self) -> Vec<&str> {
        self.snapshot.revisions().iter().map(Resource::name).collect()
    }

    pub fn tags(&self) -> Vec<&str> {
        self.snapshot.tags().iter().map(Resource::name).collect()
    }
}

/// A kind of objects that a world stores.
pub trait StoredKind: Kind {
    fn all(snapshot: &Snapshot) -> &Objects<Self>;
    fn observation(object: Resource<Self>) -> Observation;
}

macro_rules! stored_kinds {
    ($($spec:ident $objects:ident $observation:ident;)*) => {$(
        impl StoredKind for mainstay_api::$spec {
            fn all(snapshot: &Snapshot) -> &Objects<Self> {
                snapshot.$objects()
            }
            fn observation(object: Resource<Self>) -> Observation {
                Observation::$observation(object)
            }
        }
    )*};
}

stored_kinds! {
    IstioSpec istios Istio;
    RevisionSpec revisions Revision;
    TagSpec tags Tag;
    CniSpec cnis Cni;
    ZTunnelSpec ztunnels ZTunnel;
}

/// Parses labels from `a=b c=d`.
pub fn pairs(text: &str) -> Labels {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

/// Formats conditions as `Ready=False/IstiodNotReady: message`.
pub fn format_conditions(conditions: &Conditions) -> Vec<String> {
    conditions.0.iter().map(format_condition).collect()
}

pub fn format_condition(condition: &Condition) -> String {
    let head = format!("{}={:?}/{}", condition.kind, condition.status, condition.reason);
    if condition.message.is_empty() {
        head
    } else {
        format!("{head}: {}", condition.message)
    }
}

/// Returns a condition of the status that the plan writes, or a description of the plan if it writes no
/// status.
pub fn condition(world: &World, subject: &Subject, kind: &ConditionType) -> String {
    let plan = world.plan(subject);
    let conditions = match plan.status() {
        Some(NewStatus::Istio(status)) => status.conditions.clone(),
        Some(NewStatus::Revision(status)) => status.conditions.clone(),
        Some(NewStatus::Tag(status)) => status.conditions.clone(),
        Some(NewStatus::Cni(status)) => status.conditions.clone(),
        Some(NewStatus::ZTunnel(status)) => status.conditions.clone(),
        None => return format!("no status in {plan:?}"),
    };
    format_condition(&conditions.get(kind))
}

/// Returns the actions of a plan, one per line.
pub fn actions(plan: &Plan) -> Vec<String> {
    plan.actions().map(ToString::to_string).collect()
}

/// Returns the smallest valid spec of a revision of this name.
pub fn revision_spec(name: &str) -> Value {
    let revision = if name == "default" { "" } else { name };
    json!({"version": "v1.29.1", "namespace": "istio-system", "values": {"revision": revision, "global": {"istioNamespace": "istio-system"}}})
}
