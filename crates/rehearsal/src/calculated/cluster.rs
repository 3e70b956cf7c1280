//! The calculated cluster: executes the operator's actions on plain data, advances pods and workloads, and
//! notifies the reconciler as watches would.

mod workload;

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
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{Action, ErrorClass, Observation, Subject};
use mainstay_operator::reconciler::{PlanOutcome, StepFailure};
use mainstay_operator::{Reconciler, Renderer};
use serde_json::Value;

use super::objects::Objects;
use crate::cluster_model::{ClusterModel, Facts, Labels};
use crate::input::{Input, KINDS, at, text};
use crate::objects::SERVER;
use crate::recording::Recording;
use crate::request::PlannedUpgrade;
use workload::{Event, InitialReadiness, SimulatedWorkload};

pub(super) struct CalculatedCluster<'a> {
    model: &'a ClusterModel,
    renderer: Renderer,
    objects: Objects,
    namespaces: BTreeMap<String, Namespace>,
    /// Workloads, sorted by key. Other code refers to a workload by its index.
    workloads: Vec<SimulatedWorkload<'a>>,
    /// Scheduled events by time.
    timers: BTreeMap<(Timestamp, u64), Timer>,
    next: u64,
    pods: u64,
    /// Deployments of each release.
    istiods: BTreeMap<ReleaseKey, Vec<DeploymentKey>>,
}

/// Identity of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeploymentKey {
    namespace: String,
    name: String,
}

struct Namespace {
    labels: Labels,
    annotations: Labels,
    uid: String,
    terminating: bool,
}

enum Timer {
    Workload(usize, Event),
    /// An istiod becomes ready: namespace, name, number of pods.
    Istiod(String, String, i32),
}

impl<'a> CalculatedCluster<'a> {
    pub(super) fn new(catalog: Arc<Catalog>, model: &'a ClusterModel) -> Self {
        Self {
            model,
            renderer: Renderer::for_version(catalog, SERVER),
            objects: Objects::default(),
            namespaces: BTreeMap::new(),
            workloads: Vec::new(),
            timers: BTreeMap::new(),
            next: 0,
            pods: 0,
            istiods: BTreeMap::new(),
        }
    }

    /// Adds the workloads of the model.
    pub(super) fn add_workloads(&mut self, facts: Facts) {
        for (key, fact) in facts {
            if let Some(spec) = self.model.workloads.get(&key) {
                self.workloads.push(SimulatedWorkload::new(key, spec, fact));
            }
        }
        self.workloads.sort_by(|a, b| a.key.cmp(&b.key));
    }

    /// Loads the input and reports its objects to the reconciler.
    pub(super) fn load(
        &mut self,
        input: &Input,
        planned: &PlannedUpgrade,
        reconciler: &mut Reconciler,
        now: Timestamp,
    ) {
        for kind in KINDS.iter().filter(|kind| is_loaded(kind.kind)) {
            for object in input.of_kind(kind.kind) {
                self.load_object(object, planned, reconciler);
            }
        }
        for name in [
            mainstay_harness::OPERATOR_NAMESPACE,
            &planned.target.spec.namespace,
        ] {
            if !name.is_empty() && !self.namespaces.contains_key(name) {
                self.put_namespace(name, Labels::new(), Labels::new(), false);
            }
        }
        let names: Vec<String> = self.namespaces.keys().cloned().collect();
        for name in names {
            self.report_namespace(&name, reconciler);
        }
        for source in Source::ALL.into_iter().chain([Source::Workloads]) {
            reconciler.set_source_state(source, SourceState::Ready);
        }
        self.load_pods(reconciler, now);
    }

    fn load_object(&mut self, mut object: Value, planned: &PlannedUpgrade, reconciler: &mut Reconciler) {
        let name = text(&object, "/metadata/name").to_owned();
        let kind = text(&object, "/kind");
        if let Some(own) = ObjectKind::ALL.into_iter().find(|own| own.name() == kind) {
            if let (ObjectKind::Istio, true, Value::Object(fields)) =
                (own, name == planned.istio.name(), &mut object)
            {
                fields.insert("spec".into(), planned.before.clone());
            }
            self.objects.put(own, object, reconciler);
        } else {
            let terminating = at(&object, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
            let labels = crate::cluster_model::labels(&object, "/metadata/labels");
            let annotations = crate::cluster_model::labels(&object, "/metadata/annotations");
            self.put_namespace(&name, labels, annotations, terminating);
        }
    }

    fn index_of(&self, key: &WorkloadKey) -> Option<usize> {
        self.workloads
            .binary_search_by(|workload| workload.key.cmp(key))
            .ok()
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

    fn report_namespace(&mut self, name: &str, reconciler: &mut Reconciler) {
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

    /// Loads the pods of the input and creates missing ones.
    fn load_pods(&mut self, reconciler: &mut Reconciler, now: Timestamp) {
        let present = self.model.current_readiness();
        for pod in self.model.pods.iter().filter(|pod| !pod.finished) {
            reconciler.observe_referrer(Referrer::Pod {
                namespace: &pod.namespace,
                name: &pod.name,
                labels: &pod.labels,
                annotations: &pod.annotations,
                finished: false,
                terminating: pod.terminating,
                workload: pod.workload.as_ref(),
            });
            let at = pod.workload.as_ref().and_then(|key| self.index_of(key));
            let workload = at.and_then(|at| self.workloads.get_mut(at));
            if let Some(workload) = workload.filter(|_| !pod.terminating) {
                let ready = present.get(&workload.key).is_some_and(Option::is_some);
                workload.add_existing_pod(pod, ready);
            }
        }
        let absent = self.model.workloads_without_pods();
        let workloads = self.workloads.iter().enumerate();
        let present_workloads = workloads.filter(|(_, workload)| !absent.contains(&workload.key));
        let present_workloads: Vec<(usize, bool)> = present_workloads
            .map(|(at, workload)| (at, present.get(&workload.key).is_some_and(Option::is_some)))
            .collect();
        for (at, ready) in &present_workloads {
            self.adjust_pods(*at, *ready, reconciler, now);
        }
        let present_workloads = present_workloads
            .iter()
            .filter_map(|(at, _)| self.workloads.get(*at));
        for workload in present_workloads.filter(|workload| workload.key.name().starts_with("istiod")) {
            let (replicas, ready) = workload.pod_counts();
            let fact = Deployment { replicas, ready };
            reconciler.observe(Observation::Deployment(
                workload.key.namespace().to_owned(),
                workload.key.name().to_owned(),
                Some(fact),
            ));
        }
    }

    /// Creates the pods of workloads without pods in the input. Returns whether there are such workloads.
    pub(super) fn create_missing_pods(&mut self, reconciler: &mut Reconciler, now: Timestamp) -> bool {
        let absent = self.model.workloads_without_pods();
        for key in &absent {
            if let Some(at) = self.index_of(key) {
                self.adjust_pods(at, true, reconciler, now);
            }
        }
        !absent.is_empty()
    }

    /// Creates the missing pods of a workload and removes surplus ones, as its controller would.
    fn adjust_pods(&mut self, at: usize, ready: bool, reconciler: &mut Reconciler, now: Timestamp) {
        let missing = self.workloads.get(at).map_or(0, SimulatedWorkload::missing_pods);
        for _ in 0..missing {
            self.create_pod(at, true, ready.then_some(Duration::ZERO), reconciler, now);
        }
        if let Some(workload) = self.workloads.get_mut(at) {
            for name in workload.take_surplus() {
                reconciler.remove_referrer(ReferrerKey::Pod(workload.key.namespace().to_owned(), name));
            }
            workload.mark_complete_if_ready();
        }
        self.report_workload(at, reconciler);
    }

    /// Records the initial number of ready pods of every workload.
    pub(super) fn record_ready_pods(&self, now: Timestamp, recording: &mut Recording) {
        for workload in &self.workloads {
            recording.record_ready_pods(&workload.key, now, workload.ready_pods());
        }
    }

    pub(super) fn set_spec(&mut self, planned: &PlannedUpgrade, reconciler: &mut Reconciler) {
        self.objects.set_spec(
            ObjectKind::Istio,
            planned.istio.name(),
            planned.after.clone(),
            reconciler,
        );
    }

    /// Returns the time of the next event, or `None` if no event is scheduled.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    fn schedule(&mut self, at: Timestamp, timer: Timer) {
        self.next += 1;
        self.timers.insert((at, self.next), timer);
    }

    /// Processes all events that are due.
    pub(super) fn advance(&mut self, now: Timestamp, reconciler: &mut Reconciler, recording: &mut Recording) {
        let mut touched = BTreeSet::new();
        while self.next_due().is_some_and(|at| at <= now)
            && let Some((_, timer)) = self.timers.pop_first()
        {
            match timer {
                Timer::Workload(at, event) => {
                    let Some(workload) = self.workloads.get_mut(at) else {
                        continue;
                    };
                    workload.apply_event(&event);
                    touched.insert(at);
                    if let Event::Stopped(name) = event {
                        reconciler
                            .remove_referrer(ReferrerKey::Pod(workload.key.namespace().to_owned(), name));
                    }
                }
                Timer::Istiod(namespace, name, replicas) => {
                    let fact = Deployment {
                        replicas,
                        ready: replicas,
                    };
                    reconciler.observe(Observation::Deployment(namespace, name, Some(fact)));
                }
            }
        }
        for at in touched {
            self.continue_rollout(at, now, reconciler, recording);
        }
    }

    /// Continues the rollout of a workload as far as possible at this instant.
    fn continue_rollout(
        &mut self,
        at: usize,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) {
        while let Some(workload) = self.workloads.get_mut(at)
            && let Some(step) = workload.next_step()
        {
            let ready = workload.spec.readiness.ready;
            for _ in 0..step.create {
                self.create_pod(at, false, ready, reconciler, now);
                recording.created_pods += usize::from(recording.started_at.is_some());
            }
            for pod in step.stop {
                self.stop_pod(at, pod, reconciler, now);
            }
        }
        self.report_workload(at, reconciler);
        if let Some(workload) = self.workloads.get(at) {
            recording.record_ready_pods(&workload.key, now, workload.ready_pods());
        }
    }

    fn create_pod(
        &mut self,
        at: usize,
        old: bool,
        ready: Option<Duration>,
        reconciler: &mut Reconciler,
        now: Timestamp,
    ) {
        let Some(workload) = self.workloads.get_mut(at) else {
            return;
        };
        self.pods += 1;
        let name = format!("{}-{}", workload.key.name(), self.pods);
        let revision = injecting_revision(reconciler, workload);
        let readiness = InitialReadiness {
            old,
            ready: ready == Some(Duration::ZERO),
        };
        workload.add_pod(name.clone(), revision, readiness);
        if let Some(pod) = workload.last_pod() {
            report_pod(pod, &workload.key, false, reconciler);
        }
        let min_ready = workload.spec.min_ready;
        let Some(ready) = ready else {
            return;
        };
        let ready_at = super::later(now, ready);
        if !ready.is_zero() {
            self.schedule(ready_at, Timer::Workload(at, Event::Ready(name.clone())));
        }
        if !min_ready.is_zero() {
            // The transition time of the condition has whole seconds, and `minReadySeconds` is counted from
            // it.
            let since = Timestamp::from_second(ready_at.as_second()).unwrap_or(ready_at);
            let available_at = super::later(since, min_ready).max(ready_at);
            self.schedule(available_at, Timer::Workload(at, Event::Available(name)));
        }
    }

    fn stop_pod(&mut self, at: usize, name: String, reconciler: &mut Reconciler, now: Timestamp) {
        let Some(workload) = self.workloads.get_mut(at) else {
            return;
        };
        // A terminating pod no longer counts as a pod of the workload, but its proxy is still running.
        if let Some(pod) = workload.stop_pod(&name) {
            report_pod(&pod, &workload.key, true, reconciler);
        }
        let gone = super::later(now, workload::STOP_DURATION);
        self.schedule(gone, Timer::Workload(at, Event::Stopped(name)));
    }

    fn report_workload(&mut self, at: usize, reconciler: &mut Reconciler) {
        let version = self.objects.next_version();
        if let Some(workload) = self.workloads.get_mut(at)
            && let Some(fact) = workload.changed_fact(version)
        {
            reconciler.observe(Observation::Workload(workload.key.clone(), Some(fact)));
        }
    }

    /// Executes the actions of a plan. Returns the number of completed steps and the outcome.
    pub(super) fn execute(
        &mut self,
        plan: &Plan,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) -> (usize, PlanOutcome) {
        for (done, action) in plan.actions().enumerate() {
            match self.execute_action(action, now, reconciler, recording) {
                Ok(false) => {}
                Ok(true) => return (done + 1, PlanOutcome::Succeeded),
                Err(error) => {
                    let failed = StepFailure::new(action.clone(), error);
                    return (done, PlanOutcome::Failed(Box::new(failed)));
                }
            }
        }
        (plan.steps.len(), PlanOutcome::Succeeded)
    }

    /// Executes an action. Returns whether the remaining steps must be planned again.
    fn execute_action(
        &mut self,
        action: &Action,
        now: Timestamp,
        reconciler: &mut Reconciler,
        recording: &mut Recording,
    ) -> Result<bool, WriteError> {
        match action {
            Action::CreateRevision(new) => {
                self.objects
                    .create(ObjectKind::IstioRevision, new, now, reconciler);
            }
            Action::CreateTag(new) => self
                .objects
                .create(ObjectKind::IstioRevisionTag, new, now, reconciler),
            Action::UpdateRevision(change) => self.objects.update(change, reconciler),
            Action::UpdateTag(change) => self.objects.update(change, reconciler),
            Action::DeleteRevision(seen) | Action::DeleteTag(seen) => {
                self.objects.delete(seen, now, reconciler);
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

    /// Installs a release: creates its Deployments and webhooks.
    fn install(
        &mut self,
        release: &Arc<Release>,
        now: Timestamp,
        reconciler: &mut Reconciler,
    ) -> Result<(), WriteError> {
        let objects = self.renderer.render(release);
        let objects = objects.map_err(|error| WriteError::local(ErrorClass::Other, error.to_string()))?;
        let known = self.istiods.entry(release.key.clone()).or_default().clone();
        let mut deployments = Vec::new();
        for object in &objects {
            match text(object, "/kind") {
                "Deployment" => {
                    let namespace = match text(object, "/metadata/namespace") {
                        "" => release.key.namespace.clone(),
                        namespace => namespace.to_owned(),
                    };
                    let key = DeploymentKey {
                        namespace,
                        name: text(object, "/metadata/name").to_owned(),
                    };
                    let live = reconciler.snapshot().deployment(&key.namespace, &key.name);
                    if !known.contains(&key) && live.is_none() {
                        self.start_deployment(&key, object, now, reconciler);
                    }
                    deployments.push(key);
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
        self.istiods.insert(release.key.clone(), deployments);
        let fact = ReleaseFact::Applied(release.clone());
        reconciler.observe(Observation::Release(release.key.clone(), fact));
        Ok(())
    }

    fn start_deployment(
        &mut self,
        key: &DeploymentKey,
        object: &Value,
        now: Timestamp,
        reconciler: &mut Reconciler,
    ) {
        let replicas = at(object, "/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        let fact = Deployment { replicas, ready: 0 };
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let observed = Observation::Deployment(namespace.clone(), name.clone(), Some(fact));
        reconciler.observe(observed);
        let ready = super::later(now, self.model.control_plane);
        self.schedule(ready, Timer::Istiod(namespace, name, replicas));
    }

    fn uninstall(&mut self, key: &ReleaseKey, reconciler: &mut Reconciler) {
        for DeploymentKey { namespace, name } in self.istiods.remove(key).unwrap_or_default() {
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
        self.report_namespace(&name, reconciler);
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
        let Some(at) = self.index_of(key) else {
            return;
        };
        if let Some(workload) = self.workloads.get_mut(at) {
            workload.restart(step);
        }
        self.report_workload(at, reconciler);
        self.continue_rollout(at, now, reconciler, recording);
    }
}

/// Whether objects of a kind are loaded from the input. Workloads and pods are loaded from the cluster model.
fn is_loaded(kind: &str) -> bool {
    kind == "Namespace" || ObjectKind::ALL.into_iter().any(|own| own.name() == kind)
}

/// Reports a pod to the reconciler.
fn report_pod(pod: &workload::Pod, key: &WorkloadKey, terminating: bool, reconciler: &mut Reconciler) {
    let revision = pod.revision.iter();
    let annotations = revision.map(|revision| (names::REVISION_LABEL.to_owned(), revision.clone()));
    reconciler.observe_referrer(Referrer::Pod {
        namespace: key.namespace(),
        name: &pod.name,
        labels: &pod.labels,
        annotations: &annotations.collect(),
        finished: false,
        terminating,
        workload: Some(key),
    });
}

/// Returns the revision that injects a new pod of a workload, or `None` if the pod is not injected. The
/// namespace or the template refers to the revision or to a tag.
fn injecting_revision(reconciler: &Reconciler, workload: &SimulatedWorkload<'_>) -> Option<String> {
    if workload.spec.host_network || workload.fact.is_opted_out() {
        return None;
    }
    let snapshot = reconciler.snapshot();
    let requested = snapshot
        .references()
        .selected_by_namespace(workload.key.namespace())
        .or(workload.fact.requested_revision())?;
    if let Some(revision) = snapshot.revisions().get(requested) {
        return Some(revision.name().to_owned());
    }
    let tag = snapshot.tags().get(requested)?;
    let revision = &tag.status.istio_revision;
    (!revision.is_empty()).then(|| revision.clone())
}
