//! Executes plans: runs the steps in order, stops after a failure except for independent steps, and passes
//! every response to the reconciler.

mod release;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use mainstay_api::{ObjectKind, names};
use mainstay_cluster::apply::Engine;
use mainstay_cluster::desired::ObjectId;
use mainstay_cluster::event::Events;
use mainstay_cluster::write::{WriteError, Writer};
use mainstay_mesh::plan::{Change, Event, Move, NewObject, Plan, Precondition, ProbeRequest, Relabel, Step};
use mainstay_mesh::snapshot::ProbeResult;
use mainstay_mesh::workload::Workload;
use mainstay_mesh::{Action, ErrorClass, Observation, Subject};
use serde::Serialize;
use serde_json::Value;

use crate::clock::Clock;
use crate::log::describe_action;
use crate::reconciler::{DecodeError, PlanOutcome, StepFailure};
use crate::render::Renderer;
use crate::report::Report;
use crate::run::Shared;
use crate::watch::all::Watches;
use crate::watch::partial_object::PartialObject;

/// Result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeOutcome {
    /// Whether the control plane is ready.
    pub ready: bool,
    /// Error of the probe; empty if there was a response.
    pub error: String,
}

/// A prober of remote control planes.
pub trait Prober: Send + Sync {
    /// Probes the control plane that serves a webhook.
    fn probe(&self, request: ProbeRequest) -> BoxFuture<'static, ProbeOutcome>;
}

/// Reports every control plane as not ready.
impl Prober for () {
    fn probe(&self, _: ProbeRequest) -> BoxFuture<'static, ProbeOutcome> {
        let outcome = ProbeOutcome {
            ready: false,
            error: "probing is not available".to_owned(),
        };
        async { outcome }.boxed()
    }
}

/// Whether the remaining steps of a plan are still valid after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The remaining steps are valid.
    Continue,
    /// The remaining steps must be planned again.
    Replan,
}

/// Executor of the plans of the mesh controllers.
pub(crate) struct Executor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) engine: Engine,
    pub(crate) events: Events,
    pub(crate) renderer: Arc<Renderer>,
    pub(crate) watches: Watches,
    pub(crate) prober: Arc<dyn Prober>,
    pub(crate) clock: Clock,
    pub(crate) stopping: AtomicBool,
}

impl Executor {
    /// Executes a plan and returns the number of executed steps with the outcome.
    ///
    /// After an install or uninstall that changed objects, the remaining steps are left to the next plan,
    /// because they were planned for the previous state. After the failure of an independent step, only
    /// independent steps are executed. After the failure of any other step, the execution ends.
    pub(crate) async fn execute(&self, plan: &Plan) -> (usize, PlanOutcome) {
        let mut failed: Option<(usize, Box<StepFailure>)> = None;
        for (done, step) in plan.steps.iter().enumerate() {
            if failed.is_some() && !step.action.is_independent() {
                continue;
            }
            if self.stopping.load(Ordering::Relaxed) {
                return (done, PlanOutcome::Interrupted);
            }
            tracing::debug!(subject = %plan.subject, reason = %step.reason, "{}", describe_action(&step.action));
            // After a panic, the next plan starts from the partial result in the cluster.
            let result = AssertUnwindSafe(self.execute_step(&plan.subject, step))
                .catch_unwind()
                .await;
            match result {
                Ok(Ok(Effect::Continue)) => {}
                Ok(Ok(Effect::Replan)) => return (done + 1, PlanOutcome::Succeeded),
                Err(_) => {
                    return (
                        done,
                        PlanOutcome::Failed(Box::new(StepFailure::panicked(step.action.clone()))),
                    );
                }
                Ok(Err(error)) => {
                    let failure = StepFailure::new(step.action.clone(), error);
                    match &mut failed {
                        Some((_, first)) => first.others.push(failure),
                        None if step.action.is_independent() => failed = Some((done, Box::new(failure))),
                        None => return (done, PlanOutcome::Failed(Box::new(failure))),
                    }
                }
            }
        }
        match failed {
            Some((done, failure)) => (done, PlanOutcome::Failed(failure)),
            None => (plan.steps.len(), PlanOutcome::Succeeded),
        }
    }

    async fn execute_step(&self, subject: &Subject, step: &Step) -> Result<Effect, WriteError> {
        if matches!(step.action, Action::DeleteRevision(_))
            && !self.is_deletion_confirmed(subject, &step.action).await
        {
            return Ok(Effect::Replan);
        }
        let result = self.execute_action(&step.action).await;
        if let Err(error) = &result
            && error.is_stale()
        {
            self.read_again(&step.action).await;
        }
        if result.is_ok()
            && let Some(action) = write_kind(&step.action)
        {
            let reason = step.reason.name();
            self.shared.observer.report(&Report::Written { action, reason });
        }
        result
    }

    /// Lists all kinds that can refer to a revision again, and reports whether the plan still deletes the
    /// revision: a watch may have missed the event of its last referrer.
    async fn is_deletion_confirmed(&self, subject: &Subject, action: &Action) -> bool {
        let is_listed = self.watches.relist_referrers().await;
        let now = self.clock.now();
        is_listed
            && self
                .shared
                .with(|reconciler| reconciler.is_still_planned(subject, action, now))
    }

    async fn execute_action(&self, action: &Action) -> Result<Effect, WriteError> {
        match action {
            Action::Install(release) => return self.install(release).await,
            Action::Uninstall(key) => return self.uninstall(key).await,
            other => self.write(other).await?,
        }
        Ok(Effect::Continue)
    }

    async fn write(&self, action: &Action) -> Result<(), WriteError> {
        match action {
            Action::CreateRevision(new) => self.create(ObjectKind::IstioRevision, new).await,
            Action::CreateTag(new) => self.create(ObjectKind::IstioRevisionTag, new).await,
            Action::UpdateRevision(change) => self.update(change).await,
            Action::UpdateTag(change) => self.update(change).await,
            Action::DeleteRevision(seen) | Action::DeleteTag(seen) => self.delete(seen).await,
            Action::AddFinalizer { object, finalizers } | Action::RemoveFinalizer { object, finalizers } => {
                let response = self.writer.set_finalizers(object, finalizers).await;
                accept_missing(action, response).map(|response| self.observe_response(object, response))
            }
            Action::WriteStatus { object, status } => {
                let status = status.to_json().map_err(serialization_error)?;
                let response = self.writer.set_status(object, status).await?;
                self.observe_response(object, Some(response));
                Ok(())
            }
            Action::Install(_) | Action::Uninstall(_) => Ok(()),
            Action::Event(event) => {
                self.write_event(event).await;
                Ok(())
            }
            Action::Probe(request) => self.probe(request).await,
            Action::RelabelNamespace(relabel) => self.relabel(relabel).await,
            Action::MoveWorkload(step) => self.move_workload(step).await,
            Action::AnnotateWebhook {
                object,
                ready,
                reason,
            } => self.annotate(object, *ready, reason).await,
        }
    }

    /// Writes an Event. A failure does not fail the plan.
    async fn write_event(&self, event: &Event) {
        let mut event = event.clone();
        event.message = self
            .shared
            .with(|reconciler| reconciler.redact_message(&event.message));
        match self.events.publish(&event, self.clock.now()).await {
            Ok(true) => self.shared.observer.report(&Report::Written {
                action: "event",
                reason: event.reason.name(),
            }),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "cannot write an Event"),
        }
    }

    async fn create<S: Serialize>(&self, kind: ObjectKind, new: &NewObject<S>) -> Result<(), WriteError> {
        let response = self.writer.create(kind, new).await?;
        self.observe(kind, response);
        Ok(())
    }

    async fn update<S: Serialize>(&self, change: &Change<S>) -> Result<(), WriteError> {
        let spec = serde_json::to_value(&change.spec).map_err(serialization_error)?;
        let response = self
            .writer
            .update(&change.object, &change.owner_references, spec)
            .await?;
        self.observe_response(&change.object, Some(response));
        Ok(())
    }

    async fn delete(&self, object: &Precondition) -> Result<(), WriteError> {
        let response = self.writer.delete(object).await?;
        self.observe_response(object, response);
        Ok(())
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<(), WriteError> {
        let outcome = self.prober.probe(request.clone()).await;
        let result = ProbeResult {
            at: self.clock.now(),
            ready: outcome.ready,
            reason: outcome.error,
        };
        let probed = Observation::Probed(request.webhook.clone(), result);
        self.shared.with(|reconciler| reconciler.observe(probed));
        Ok(())
    }

    async fn annotate(&self, object: &Precondition, ready: bool, reason: &str) -> Result<(), WriteError> {
        let status = if ready { "true" } else { "false" };
        let annotations = [(names::PROBE_STATUS, status), (names::PROBE_REASON, reason)];
        let response = self.writer.annotate_webhook(object, &annotations).await?;
        if let Ok(id) = ObjectId::from_object(&response) {
            self.shared
                .with(|reconciler| reconciler.observe_managed(&id, response));
        }
        Ok(())
    }

    async fn relabel(&self, relabel: &Relabel) -> Result<(), WriteError> {
        let response = self
            .writer
            .merge(&relabel.object.subject, relabel.patch())
            .await?;
        let namespace: PartialObject = serde_json::from_value(response).map_err(serialization_error)?;
        self.shared
            .with(|reconciler| reconciler.observe_written_namespace(namespace));
        Ok(())
    }

    async fn move_workload(&self, step: &Move) -> Result<(), WriteError> {
        let response = self.writer.merge(&step.object.subject, step.patch()).await?;
        let Subject::Workload(key) = &step.object.subject else {
            return Ok(());
        };
        if let Some((key, workload)) = Workload::from_object(key.kind(), &response) {
            self.shared
                .with(|reconciler| reconciler.observe_written_workload(key, workload));
        }
        Ok(())
    }

    /// Passes the response of a write to the reconciler.
    fn observe_response(&self, object: &Precondition, response: Option<Value>) {
        if let (Subject::Object(kind, _), Some(response)) = (&object.subject, response) {
            self.observe(*kind, response);
        }
    }

    fn observe(&self, kind: ObjectKind, object: Value) {
        log_decode_error(
            self.shared
                .with(|reconciler| reconciler.observe_object(kind, object)),
        );
    }

    /// Reads the object of an action again after its precondition failed, because a watch may have missed
    /// an event.
    async fn read_again(&self, action: &Action) {
        let Some((kind, name)) = written_object(action) else {
            return self.read_user_object_again(action).await;
        };
        let (before, tombstone) = self.shared.with(|reconciler| {
            (
                reconciler.known_version(kind, &name),
                reconciler.tombstone(kind, &name),
            )
        });
        match self.writer.get(kind, &name).await {
            Ok(Some(object)) => log_decode_error(
                self.shared
                    .with(|reconciler| reconciler.confirm_object(kind, object, tombstone)),
            ),
            Ok(None) => self
                .shared
                .with(|reconciler| reconciler.confirm_missing(kind, &name, before)),
            Err(error) => tracing::debug!(%error, "cannot read an object again"),
        }
    }
}

impl Executor {
    /// Reads the namespace or workload of an action again after its precondition failed.
    async fn read_user_object_again(&self, action: &Action) {
        let Some(subject) = action.precondition().map(|object| &object.subject) else {
            return;
        };
        let (Subject::Namespace(_) | Subject::Workload(_)) = subject else {
            return;
        };
        match self.writer.find(subject).await {
            Ok(found) => self
                .shared
                .with(|reconciler| reconciler.observe_read(subject, found)),
            Err(error) => tracing::debug!(%error, "cannot read an object again"),
        }
    }
}

fn log_decode_error(result: Result<(), DecodeError>) {
    if let Err(error) = result {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "cannot decode a response"
        );
    }
}

/// Returns kind and name of the Mainstay object that an action writes, or `None` if it writes another object.
fn written_object(action: &Action) -> Option<(ObjectKind, String)> {
    match action {
        Action::CreateRevision(new) => Some((ObjectKind::IstioRevision, new.name.clone())),
        Action::CreateTag(new) => Some((ObjectKind::IstioRevisionTag, new.name.clone())),
        action => match &action.precondition()?.subject {
            Subject::Object(kind, name) => Some((*kind, name.clone())),
            _ => None,
        },
    }
}

/// Returns the name of the kind of write of an action. Returns `None` for actions that report their writes
/// themselves or write nothing.
fn write_kind(action: &Action) -> Option<&'static str> {
    Some(match action {
        Action::CreateRevision(_) | Action::CreateTag(_) => "create",
        Action::UpdateRevision(_)
        | Action::UpdateTag(_)
        | Action::RelabelNamespace(_)
        | Action::MoveWorkload(_) => "update",
        Action::DeleteRevision(_) | Action::DeleteTag(_) => "delete",
        Action::AddFinalizer { .. } | Action::RemoveFinalizer { .. } => "finalizer",
        Action::WriteStatus { .. } => "status",
        Action::AnnotateWebhook { .. } => "annotate",
        Action::Install(_) | Action::Uninstall(_) | Action::Event(_) | Action::Probe(_) => return None,
    })
}

/// Treats a missing object as success if the action removes a finalizer.
fn accept_missing(action: &Action, response: Result<Value, WriteError>) -> Result<Option<Value>, WriteError> {
    match response {
        Err(error) if error.is_not_found() && matches!(action, Action::RemoveFinalizer { .. }) => Ok(None),
        response => response.map(Some),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn serialization_error(error: serde_json::Error) -> WriteError {
    WriteError::local(ErrorClass::Other, error.to_string())
}
