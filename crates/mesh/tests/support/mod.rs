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
    ObjectMeta, Resource, Status, Time, ZTunnel,
};
use mainstay_mesh::plan::NewStatus;
use mainstay_mesh::references::{Labels, ReferrerKey};
use mainstay_mesh::snapshot::{DaemonSet, Deployment, Objects, Source, SourceState};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{
    AffectedSubjects, Library, Observation, Plan, Resolution, Settings, Snapshot, Subject, plan,
};
use serde_json::{Value, json};

/// A cluster with everything that plans depend on.
#[derive(Clone, Debug)]
pub struct World {
    pub snapshot: Snapshot,
    pub queue: BTreeSet<Subject>,
    /// Executed actions, one line each.
    pub done: Vec<String>,
    /// Whether installed releases become ready immediately.
    pub ready: bool,
    serial: u64,
    /// Workloads as the API server holds them.
    pub workloads: BTreeMap<WorkloadKey, Value>,
    /// Last observation of everything that cannot be read back from a snapshot: namespaces, pods,
    /// Deployments, `DaemonSets`, webhooks and sources.
    last: BTreeMap<String, Observation>,
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
        library.put(version.parse().unwrap(), profiles.into());
    }
    library.name("v1.29-latest", Resolution::Installable("1.29.1".parse().unwrap()));
    library.name("v1.30.3", Resolution::NotHere("1.30.3".parse().unwrap()));
    library.name("v1.23.4", Resolution::EndOfLife);
    library
}

impl Default for World {
    fn default() -> Self {
        Self::with(Settings {
            operator_namespace: "sail-operator".into(),
            ..Settings::default()
        })
    }
}

impl World {
    /// Returns a world with these settings and four namespaces.
    pub fn with(settings: Settings) -> Self {
        let now = Timestamp::from_second(START).unwrap();
        let mut world = Self {
            snapshot: Snapshot::new(now, Arc::new(settings), Arc::new(library())),
            queue: BTreeSet::new(),
            done: Vec::new(),
            ready: true,
            serial: 0,
            workloads: BTreeMap::new(),
            last: BTreeMap::new(),
        };
        for source in Source::ALL {
            world.see(Observation::Source(source, SourceState::Ready));
        }
        for name in ["istio-system", "istio-cni", "ztunnel", "sail-operator"] {
            world.namespace(name, "");
        }
        world
    }

    /// Records an observation and enqueues the affected subjects.
    pub fn see(&mut self, observation: Observation) -> AffectedSubjects {
        self.remember(&observation);
        let affected = self.snapshot.observe(observation);
        self.queue.extend(affected.iter().cloned());
        affected
    }

    fn remember(&mut self, seen: &Observation) {
        let key = match seen {
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
        self.last.insert(key, seen.clone());
    }

    /// Returns the same cluster as observed by an operator that has just started.
    pub fn restarted(&self) -> Self {
        let (now, settings, library) = (
            self.snapshot.now,
            self.snapshot.settings.clone(),
            self.snapshot.library.clone(),
        );
        let mut fresh = Self {
            snapshot: Snapshot::new(now, settings, library),
            queue: BTreeSet::new(),
            ..self.clone()
        };
        for seen in self.last.values() {
            fresh.snapshot.observe(seen.clone());
        }
        for istio in self.snapshot.istios().iter() {
            fresh.snapshot.observe(Observation::Istio(istio.clone()));
        }
        for revision in self.snapshot.revisions().iter() {
            fresh.snapshot.observe(Observation::Revision(revision.clone()));
        }
        for tag in self.snapshot.tags().iter() {
            fresh.snapshot.observe(Observation::Tag(tag.clone()));
        }
        for cni in self.snapshot.cnis().iter() {
            fresh.snapshot.observe(Observation::Cni(cni.clone()));
        }
        for ztunnel in self.snapshot.ztunnels().iter() {
            fresh.snapshot.observe(Observation::ZTunnel(ztunnel.clone()));
        }
        fresh
    }

    pub fn namespace(&mut self, name: &str, labels: &str) -> AffectedSubjects {
        self.put_namespace(name, pairs(labels), Labels::default())
    }

    pub fn put_namespace(&mut self, name: &str, labels: Labels, annotations: Labels) -> AffectedSubjects {
        let version = self.fresh();
        self.see(Observation::Namespace {
            name: name.into(),
            labels,
            terminating: false,
            uid: format!("uid-{name}"),
            resource_version: version.to_string(),
            annotations,
        })
    }

    pub fn pod(&mut self, namespace: &str, name: &str, labels: &str, annotations: &str) -> AffectedSubjects {
        self.see(Observation::Pod {
            namespace: namespace.into(),
            name: name.into(),
            labels: pairs(labels),
            annotations: pairs(annotations),
            finished: false,
            leaving: false,
            workload: None,
        })
    }

    pub fn pod_gone(&mut self, namespace: &str, name: &str) -> AffectedSubjects {
        self.see(Observation::ReferrerGone(ReferrerKey::Pod(
            namespace.into(),
            name.into(),
        )))
    }

    /// Makes a source unreadable.
    pub fn blind(&mut self, source: Source, error: &str) {
        self.see(Observation::Source(source, SourceState::Failing(error.into())));
    }

    pub fn advance(&mut self, seconds: i64) {
        self.snapshot.now = self
            .snapshot
            .now
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap();
    }

    fn fresh(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Applies an object as a user would: an existing one keeps everything but its spec.
    pub fn put<S: Kind + Stored>(&mut self, name: &str, spec: Value) -> Resource<S> {
        let spec: S = serde_json::from_value(spec).unwrap();
        let version = self.fresh();
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

    /// Stores an object unchanged except for a new resource version.
    pub fn store<S: Kind + Stored>(&mut self, mut object: Resource<S>) -> Resource<S> {
        object.metadata.resource_version = self.fresh().to_string();
        self.see(S::seen(object.clone()));
        object
    }

    pub fn edit<S: Kind + Stored>(&mut self, name: &str, edit: impl FnOnce(&mut Resource<S>)) {
        let mut object = S::all(&self.snapshot)
            .get(name)
            .cloned()
            .unwrap_or_else(|| panic!("no {name}"));
        edit(&mut object);
        self.store(object);
    }

    /// Deletes an object as a user would: it remains while it has finalizers, and objects it owns are
    /// garbage-collected.
    pub fn delete<S: Kind + Stored>(&mut self, name: &str) {
        let Some(object) = S::all(&self.snapshot).get(name).cloned() else {
            return;
        };
        let now = self.snapshot.now;
        if object.metadata.finalizers.is_empty() {
            self.see(Observation::Gone(Subject::Object(S::KIND, name.into())));
            self.collect(&object.metadata.uid);
        } else if object.metadata.deletion_timestamp.is_none() {
            self.edit::<S>(name, |object| {
                object.metadata.deletion_timestamp = Some(Time::from_timestamp(now));
            });
        }
    }

    /// Deletes the objects whose owner was deleted, as the garbage collector does.
    fn collect(&mut self, uid: &str) {
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
        self.put(name, spec)
    }

    pub fn revision(&mut self, name: &str, spec: Value) -> IstioRevision {
        self.put(name, spec)
    }

    pub fn tag(&mut self, name: &str, kind: &str, target: &str) -> IstioRevisionTag {
        self.put(name, json!({"targetRef": {"kind": kind, "name": target}}))
    }

    pub fn cni(&mut self, spec: Value) -> IstioCni {
        self.put("default", spec)
    }

    pub fn ztunnel(&mut self, spec: Value) -> ZTunnel {
        self.put("default", spec)
    }

    pub fn plan(&self, subject: &Subject) -> Plan {
        plan(&self.snapshot, subject)
    }

    /// Plans and executes the queued subjects until the queue is empty. Returns the executed actions.
    pub fn settle(&mut self) -> Vec<String> {
        let before = self.done.len();
        for _ in 0..500 {
            let Some(subject) = self.queue.pop_first() else {
                return self.done.split_off(before);
            };
            let plan = self.plan(&subject);
            self.execute(&plan);
        }
        panic!(
            "does not converge: {:#?}",
            &self.done[self.done.len().saturating_sub(20)..]
        );
    }

    /// As [`World::settle`]; then plans every subject once more and asserts that no plan has steps.
    pub fn settle_for_good(&mut self) -> Vec<String> {
        let done = self.settle();
        for subject in self.snapshot.subjects() {
            let plan = self.plan(&subject);
            assert!(plan.is_empty(), "{subject} still has {:#?}", plan.steps);
        }
        done
    }

    pub fn deployment(&mut self, namespace: &str, name: &str, replicas: i32, ready: i32) {
        let fact = Deployment { replicas, ready };
        self.see(Observation::Deployment(namespace.into(), name.into(), Some(fact)));
    }

    pub fn no_deployment(&mut self, namespace: &str, name: &str) {
        self.see(Observation::Deployment(namespace.into(), name.into(), None));
    }

    pub fn daemonset(&mut self, namespace: &str, name: &str, scheduled: i32, ready: i32) {
        let fact = DaemonSet { scheduled, ready };
        self.see(Observation::DaemonSet(namespace.into(), name.into(), Some(fact)));
    }

    /// Returns the state and the conditions of an object, one per line.
    pub fn conditions(&self, subject: &Subject) -> Vec<String> {
        fn conditions_in<S: Kind>(objects: &Objects<S>, name: &str) -> Vec<String> {
            let status = &objects.get(name).unwrap_or_else(|| panic!("no {name}")).status;
            let state = format!("state={}", status.state());
            [state].into_iter().chain(shown(status.conditions())).collect()
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

/// Kinds of objects that a world stores.
pub trait Stored: Kind {
    fn all(snapshot: &Snapshot) -> &Objects<Self>;
    fn seen(object: Resource<Self>) -> Observation;
}

macro_rules! stored {
    ($($spec:ident $objects:ident $observation:ident;)*) => {$(
        impl Stored for mainstay_api::$spec {
            fn all(snapshot: &Snapshot) -> &Objects<Self> {
                snapshot.$objects()
            }
            fn seen(object: Resource<Self>) -> Observation {
                Observation::$observation(object)
            }
        }
    )*};
}

stored! {
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
pub fn shown(conditions: &Conditions) -> Vec<String> {
    conditions.0.iter().map(show).collect()
}

pub fn show(condition: &Condition) -> String {
    let head = format!("{}={:?}/{}", condition.kind, condition.status, condition.reason);
    if condition.message.is_empty() {
        head
    } else {
        format!("{head}: {}", condition.message)
    }
}

/// Returns a condition as the plan would write it, or the current one if the plan writes no status.
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
    show(&conditions.get(kind))
}

/// Returns the actions of a plan, one per line.
pub fn actions(plan: &Plan) -> Vec<String> {
    plan.actions().map(ToString::to_string).collect()
}

/// Returns the values that a revision of this name requires.
pub fn plane(name: &str) -> Value {
    let revision = if name == "default" { "" } else { name };
    json!({"version": "v1.29.1", "namespace": "istio-system", "values": {"revision": revision, "global": {"istioNamespace": "istio-system"}}})
}
