//! The cluster as plain data: takes an input and the operator's actions, moves pods and workloads on, tells the reconciler what watches would.

mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_api::{ObjectKind, names};
use mainstay_catalog::Catalog;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::plan::{Move, Plan, Relabel, Release, ReleaseKey};
use mainstay_mesh::references::{Referrer, ReferrerKey};
use mainstay_mesh::snapshot::{Deployment, ProbeResult, ReleaseFact, Source, SourceState, Webhook};
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use mainstay_mesh::{Action, ErrorClass, Observation, Subject};
use mainstay_operator::reconciler::{PlanOutcome, StepFailure};
use mainstay_operator::{Reconciler, Renderer};
use serde_json::Value;

use super::objects::Objects;
use crate::input::{Input, KINDS, at, text};
use crate::objects::SERVER;
use crate::recording::Recording;
use crate::scene::{Labels, Scene};
use crate::wish::Plot;
use unit::{Event, Unit};

/// The cluster.
pub(super) struct World<'a> {
    scene: &'a Scene,
    renderer: Renderer,
    objects: Objects,
    namespaces: BTreeMap<String, Namespace>,
    /// In the order of their keys; elsewhere a workload is known by its place here.
    units: Vec<Unit>,
    /// What will happen, in its order.
    alarms: BTreeMap<(Timestamp, u64), Alarm>,
    next: u64,
    pods: u64,
    /// Deployments of releases, by release.
    istiods: BTreeMap<ReleaseKey, Vec<(String, String)>>,
}

struct Namespace {
    labels: Labels,
    annotations: Labels,
    uid: String,
    terminating: bool,
}

enum Alarm {
    Unit(usize, Event),
    /// An istiod is ready: where, and how many pods.
    Istiod(String, String, i32),
}

impl<'a> World<'a> {
    pub(super) fn new(catalog: Arc<Catalog>, scene: &'a Scene) -> Self {
        Self {
            scene,
            renderer: Renderer::for_version(catalog, SERVER),
            objects: Objects::default(),
            namespaces: BTreeMap::new(),
            units: Vec::new(),
            alarms: BTreeMap::new(),
            next: 0,
            pods: 0,
            istiods: BTreeMap::new(),
        }
    }

    /// Tells the reconciler everything there is.
    pub(super) fn load(&mut self, input: &Input, plot: &Plot, reconciler: &mut Reconciler, now: Timestamp) {
        for kind in KINDS.iter().filter(|kind| is_loaded(kind.kind)) {
            for object in input.of_kind(kind.kind) {
                self.load_object(object, plot, reconciler);
            }
        }
        self.units.sort_by(|a, b| a.key.cmp(&b.key));
        for name in [mainstay_harness::OPERATOR_NAMESPACE, &plot.wanted.spec.namespace] {
            if !name.is_empty() && !self.namespaces.contains_key(name) {
                self.put_namespace(name, Labels::new(), Labels::new(), false);
            }
        }
        let names: Vec<String> = self.namespaces.keys().cloned().collect();
        for name in names {
            self.tell_namespace(&name, reconciler);
        }
        for source in Source::ALL.into_iter().chain([Source::Workloads]) {
            reconciler.set_source_state(source, SourceState::Ready);
        }
        self.load_pods(reconciler, now);
    }

    fn load_object(&mut self, object: &Value, plot: &Plot, reconciler: &mut Reconciler) {
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        if let Some(own) = ObjectKind::ALL.into_iter().find(|own| own.name() == kind) {
            let mut object = object.clone();
            if let (ObjectKind::Istio, true, Value::Object(fields)) =
                (own, name == plot.istio.name(), &mut object)
            {
                fields.insert("spec".into(), plot.before.clone());
            }
            self.objects.put(own, object, reconciler);
        } else if kind == "Namespace" {
            let going = at(object, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
            let labels = crate::scene::labels(object, "/metadata/labels");
            let annotations = crate::scene::labels(object, "/metadata/annotations");
            self.put_namespace(name, labels, annotations, going);
        } else if let Some(kind) = WorkloadKind::from_name(kind)
            && let Some((key, fact)) = mainstay_mesh::workload::Workload::from_object(kind, object)
            && let Some(spec) = self.scene.workloads.get(&key)
        {
            self.units.push(Unit::new(key, spec.clone(), fact));
        }
    }

    fn place_of(&self, key: &WorkloadKey) -> Option<usize> {
        self.units.binary_search_by(|unit| unit.key.cmp(key)).ok()
    }

    fn put_namespace(&mut self, name: &str, labels: Labels, annotations: Labels, terminating: bool) {
        let namespace = Namespace {
            labels,
            annotations,
            uid: format!("namespace-{name}"),
            terminating,
        };
        self.namespaces.insert(name.to_owned(), namespace);
    }

    fn tell_namespace(&mut self, name: &str, reconciler: &mut Reconciler) {
        let version = self.objects.next_version();
        if let Some(namespace) = self.namespaces.get(name) {
            reconciler.observe(Observation::Namespace {
                name: name.to_owned(),
                uid: namespace.uid.clone(),
                resource_version: version,
                labels: namespace.labels.clone(),
                annotations: namespace.annotations.clone(),
                terminating: namespace.terminating,
            });
        }
    }

    /// Pods that are there, those that are missing, and how each workload stands.
    fn load_pods(&mut self, reconciler: &mut Reconciler, now: Timestamp) {
        let present = self.scene.present();
        for pod in self.scene.pods.iter().filter(|pod| !pod.finished) {
            reconciler.observe_referrer(Referrer::Pod {
                namespace: &pod.namespace,
                name: &pod.name,
                labels: &pod.labels,
                annotations: &pod.annotations,
                finished: false,
                leaving: pod.leaving,
                workload: pod.workload.as_ref(),
            });
            let at = pod.workload.as_ref().and_then(|key| self.place_of(key));
            let unit = at.and_then(|at| self.units.get_mut(at));
            if let Some(unit) = unit.filter(|_| !pod.leaving) {
                let ready = present.get(&unit.key).is_some_and(Option::is_some);
                unit.adopt(pod, ready);
            }
        }
        let absent = self.scene.absent();
        let units = self.units.iter().enumerate();
        let there = units.filter(|(_, unit)| !absent.contains(&unit.key));
        let there: Vec<(usize, bool)> = there
            .map(|(at, unit)| (at, present.get(&unit.key).is_some_and(Option::is_some)))
            .collect();
        for (at, ready) in &there {
            self.complete(*at, *ready, reconciler, now);
        }
        let there = there.iter().filter_map(|(at, _)| self.units.get(*at));
        for unit in there.filter(|unit| unit.key.name().starts_with("istiod")) {
            let (replicas, ready) = unit.counts();
            let fact = Deployment { replicas, ready };
            reconciler.observe(Observation::Deployment(
                unit.key.namespace().to_owned(),
                unit.key.name().to_owned(),
                Some(fact),
            ));
        }
    }

    /// Makes the pods of workloads that have none; says whether there are such.
    pub(super) fn load_absent(&mut self, reconciler: &mut Reconciler, now: Timestamp) -> bool {
        let absent = self.scene.absent();
        for key in &absent {
            if let Some(at) = self.place_of(key) {
                self.complete(at, true, reconciler, now);
            }
        }
        !absent.is_empty()
    }

    /// Makes what is missing of a workload's pods, as controllers do at once.
    fn complete(&mut self, at: usize, ready: bool, reconciler: &mut Reconciler, now: Timestamp) {
        let missing = self.units.get(at).map_or(0, Unit::missing);
        for _ in 0..missing {
            self.make_pod(at, true, ready.then_some(Duration::ZERO), reconciler, now);
        }
        if let Some(unit) = self.units.get_mut(at) {
            for name in unit.take_surplus() {
                reconciler.remove_referrer(ReferrerKey::Pod(unit.key.namespace().to_owned(), name));
            }
            unit.settle_first();
        }
        self.tell_unit(at, reconciler);
    }

    /// The first crews, once it has begun.
    pub(super) fn begin(&self, now: Timestamp, recording: &mut Recording) {
        for unit in &self.units {
            recording.crew(&unit.key, now, unit.serving());
        }
    }

    pub(super) fn set_spec(&mut self, plot: &Plot, reconciler: &mut Reconciler) {
        self.objects.set_spec(
            ObjectKind::Istio,
            plot.istio.name(),
            plot.after.clone(),
            reconciler,
        );
    }

    /// The next moment at which something happens.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.alarms.first_key_value().map(|((at, _), _)| *at)
    }

    fn alarm(&mut self, at: Timestamp, alarm: Alarm) {
        self.next += 1;
        self.alarms.insert((at, self.next), alarm);
    }

    /// Lets everything happen that is due.
    pub(super) fn advance(&mut self, now: Timestamp, reconciler: &mut Reconciler, recording: &mut Recording) {
        let mut touched = BTreeSet::new();
        while self.due().is_some_and(|at| at <= now)
            && let Some((_, alarm)) = self.alarms.pop_first()
        {
            match alarm {
                Alarm::Unit(at, event) => {
                    let Some(unit) = self.units.get_mut(at) else {
                        continue;
                    };
                    unit.happen(&event);
                    touched.insert(at);
                    if let Event::Gone(name) = event {
                        reconciler.remove_referrer(ReferrerKey::Pod(unit.key.namespace().to_owned(), name));
                    }
                }
                Alarm::Istiod(namespace, name, replicas) => {
                    let fact = Deployment {
                        replicas,
                        ready: replicas,
                    };
                    reconciler.observe(Observation::Deployment(namespace, name, Some(fact)));
                }
            }
        }
        for at in touched {
            self.roll(at, now, reconciler, recording);
        }
    }

    /// Goes on with a workload's rollout as far as it can go now.
    fn roll(&mut self, at: usize, now: Timestamp, reconciler: &mut Reconciler, recording: &mut Recording) {
        while let Some(unit) = self.units.get_mut(at)
            && let Some(step) = unit.step()
        {
            let ready = unit.spec.pace.ready;
            for _ in 0..step.come {
                self.make_pod(at, false, ready, reconciler, now);
                recording.made += usize::from(recording.began.is_some());
            }
            for pod in step.go {
                self.pod_leaves(at, pod, reconciler, now);
            }
        }
        self.tell_unit(at, reconciler);
        if let Some(unit) = self.units.get(at) {
            recording.crew(&unit.key, now, unit.serving());
        }
    }

    fn make_pod(
        &mut self,
        at: usize,
        old: bool,
        ready: Option<Duration>,
        reconciler: &mut Reconciler,
        now: Timestamp,
    ) {
        let Some(unit) = self.units.get_mut(at) else {
            return;
        };
        self.pods += 1;
        let name = format!("{}-{}", unit.key.name(), self.pods);
        let revision = injector(reconciler, unit);
        unit.make(name.clone(), revision, (old, ready == Some(Duration::ZERO)));
        if let Some(pod) = unit.newest() {
            tell_pod(pod, &unit.key, false, reconciler);
        }
        let min_ready = unit.spec.min_ready;
        let Some(ready) = ready else {
            return;
        };
        let ready_at = super::later(now, ready);
        if !ready.is_zero() {
            self.alarm(ready_at, Alarm::Unit(at, Event::Ready(name.clone())));
        }
        if !min_ready.is_zero() {
            // The condition tells whole seconds, so that is what is waited for.
            let since = Timestamp::from_second(ready_at.as_second()).unwrap_or(ready_at);
            let moment = super::later(since, min_ready).max(ready_at);
            self.alarm(moment, Alarm::Unit(at, Event::Available(name)));
        }
    }

    fn pod_leaves(&mut self, at: usize, name: String, reconciler: &mut Reconciler, now: Timestamp) {
        let Some(unit) = self.units.get_mut(at) else {
            return;
        };
        // Who leaves is no part of a crew any more, but its proxy still runs.
        if let Some(pod) = unit.leave(&name) {
            tell_pod(&pod, &unit.key, true, reconciler);
        }
        let gone = super::later(now, unit::STOP);
        self.alarm(gone, Alarm::Unit(at, Event::Gone(name)));
    }

    fn tell_unit(&mut self, at: usize, reconciler: &mut Reconciler) {
        let version = self.objects.next_version();
        if let Some(unit) = self.units.get_mut(at)
            && let Some(fact) = unit.news(version)
        {
            reconciler.observe(Observation::Workload(unit.key.clone(), Some(fact)));
        }
    }

    /// Carries out a plan, and says how many of its steps were done.
    pub(super) fn carry_out(
        &mut self,
        plan: &Plan,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) -> (usize, PlanOutcome) {
        for (done, action) in plan.actions().enumerate() {
            match self.act(action, now, reconciler, recording) {
                Ok(false) => {}
                Ok(true) => return (done + 1, PlanOutcome::Succeeded),
                Err(refused) => {
                    let failed = StepFailure::new(action.clone(), refused);
                    return (done, PlanOutcome::Failed(Box::new(failed)));
                }
            }
        }
        (plan.steps.len(), PlanOutcome::Succeeded)
    }

    /// Does one step; says whether those after it are to be planned anew.
    fn act(
        &mut self,
        action: &Action,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) -> Result<bool, WriteError> {
        match action {
            Action::CreateRevision(new) => {
                self.objects
                    .create(ObjectKind::IstioRevision, new, now, reconciler)
            }
            Action::CreateTag(new) => self
                .objects
                .create(ObjectKind::IstioRevisionTag, new, now, reconciler),
            Action::UpdateRevision(change) => self.objects.update(change, reconciler),
            Action::UpdateTag(change) => self.objects.update(change, reconciler),
            Action::DeleteRevision(seen) | Action::DeleteTag(seen) => {
                self.objects.delete(seen, now, reconciler)
            }
            Action::AddFinalizer { object, finalizers } | Action::RemoveFinalizer { object, finalizers } => {
                self.objects.set_finalizers(object, finalizers, reconciler);
            }
            Action::WriteStatus { object, status } => {
                let status = status.to_json().unwrap_or_default();
                self.objects.set_status(object, status, reconciler);
            }
            Action::Install(release) => {
                self.install(release, now, reconciler)?;
                return Ok(true);
            }
            Action::Uninstall(key) => self.uninstall(key, reconciler),
            Action::Event(_) | Action::AnnotateWebhook { .. } => {}
            Action::Probe(request) => {
                let result = ProbeResult {
                    at: now,
                    ready: false,
                    reason: "probing is not available".to_owned(),
                };
                reconciler.observe(Observation::Probed(request.webhook.clone(), result));
            }
            Action::RelabelNamespace(relabel) => self.relabel(relabel, reconciler),
            Action::MoveWorkload(step) => self.restart(step, now, reconciler, recording),
        }
        Ok(false)
    }

    /// Installs a release: its Deployments come up, its webhooks are there.
    fn install(
        &mut self,
        release: &Arc<Release>,
        now: Timestamp,
        reconciler: &mut Reconciler,
    ) -> Result<(), WriteError> {
        let objects = self.renderer.render(release);
        let objects = objects.map_err(|error| WriteError::local(ErrorClass::Other, error.to_string()))?;
        let known = self.istiods.entry(release.key.clone()).or_default().clone();
        let mut places = Vec::new();
        for object in &objects {
            match text(object, "/kind") {
                "Deployment" => {
                    let namespace = match text(object, "/metadata/namespace") {
                        "" => release.key.namespace.clone(),
                        namespace => namespace.to_owned(),
                    };
                    let place = (namespace, text(object, "/metadata/name").to_owned());
                    if !known.contains(&place)
                        && reconciler.snapshot().deployment(&place.0, &place.1).is_none()
                    {
                        self.raise(&place, object, now, reconciler);
                    }
                    places.push(place);
                }
                "MutatingWebhookConfiguration" => {
                    let metadata = object.get("metadata").cloned().unwrap_or_default();
                    let webhook = Webhook {
                        metadata: serde_json::from_value(metadata).unwrap_or_default(),
                        client: None,
                    };
                    reconciler.observe(Observation::Webhook(webhook));
                }
                _ => {}
            }
        }
        self.istiods.insert(release.key.clone(), places);
        let fact = ReleaseFact::Applied(release.clone());
        reconciler.observe(Observation::Release(release.key.clone(), fact));
        Ok(())
    }

    fn raise(
        &mut self,
        place: &(String, String),
        object: &Value,
        now: Timestamp,
        reconciler: &mut Reconciler,
    ) {
        let replicas = at(object, "/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        let fact = Deployment { replicas, ready: 0 };
        reconciler.observe(Observation::Deployment(
            place.0.clone(),
            place.1.clone(),
            Some(fact),
        ));
        let ready = super::later(now, self.scene.control_plane);
        self.alarm(ready, Alarm::Istiod(place.0.clone(), place.1.clone(), replicas));
    }

    fn uninstall(&mut self, key: &ReleaseKey, reconciler: &mut Reconciler) {
        for (namespace, name) in self.istiods.remove(key).unwrap_or_default() {
            reconciler.observe(Observation::Deployment(namespace, name, None));
        }
        reconciler.observe(Observation::Release(key.clone(), ReleaseFact::Absent));
    }

    fn relabel(&mut self, relabel: &Relabel, reconciler: &mut Reconciler) {
        let name = relabel.object.name().to_owned();
        if let Some(namespace) = self.namespaces.get_mut(&name) {
            let label = names::REVISION_LABEL.to_owned();
            namespace.labels.insert(label, relabel.revision.clone());
            if relabel.drop_injection {
                namespace.labels.remove(names::INJECTION_LABEL);
            }
        }
        self.tell_namespace(&name, reconciler);
    }

    fn restart(
        &mut self,
        step: &Move,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) {
        let Subject::Workload(key) = &step.object.subject else {
            return;
        };
        let Some(at) = self.place_of(key) else {
            return;
        };
        if let Some(unit) = self.units.get_mut(at) {
            unit.restart(step);
        }
        self.tell_unit(at, reconciler);
        self.roll(at, now, reconciler, recording);
    }
}

/// Whether objects of a kind are told to the reconciler, or are workloads. Pods come from the scene.
fn is_loaded(kind: &str) -> bool {
    let own = ObjectKind::ALL.into_iter().any(|own| own.name() == kind);
    own || kind == "Namespace" || WorkloadKind::from_name(kind).is_some()
}

/// Tells the reconciler of a pod.
fn tell_pod(pod: &unit::Pod, key: &WorkloadKey, leaving: bool, reconciler: &mut Reconciler) {
    let revision = pod.revision.iter();
    let annotations = revision.map(|revision| (names::REVISION_LABEL.to_owned(), revision.clone()));
    reconciler.observe_referrer(Referrer::Pod {
        namespace: key.namespace(),
        name: &pod.name,
        labels: &pod.labels,
        annotations: &annotations.collect(),
        finished: false,
        leaving,
        workload: Some(key),
    });
}

/// Who injects a new pod of a workload: whoever its namespace or its template names, by itself or through a tag.
fn injector(reconciler: &Reconciler, unit: &Unit) -> Option<String> {
    if unit.spec.on_host || unit.fact.is_opted_out() {
        return None;
    }
    let snapshot = reconciler.snapshot();
    let asked = snapshot
        .references()
        .selected_by_namespace(unit.key.namespace())
        .or(unit.fact.requested_revision())?;
    if let Some(revision) = snapshot.revisions().get(asked) {
        return Some(revision.name().to_owned());
    }
    let tag = snapshot.tags().get(asked)?;
    let revision = &tag.status.istio_revision;
    (!revision.is_empty()).then(|| revision.clone())
}
