//! A plan to calls: takes a plan, does its steps in order, stops at the first that fails, and tells the reconciler what each brought.
//! Chooses nothing.

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
use crate::log::describe;
use crate::reconciler::{DecodeError, PlanOutcome, StepFailure};
use crate::render::Renderer;
use crate::report::Report;
use crate::run::Shared;
use crate::watch::all::Watches;
use crate::watch::light::Light;

/// Asks remote control planes whether they are ready.
pub trait Prober: Send + Sync {
    /// Whether it is ready, and why it could not be asked; the latter is empty for any answer.
    fn probe(&self, request: ProbeRequest) -> BoxFuture<'static, (bool, String)>;
}

/// Nobody can be asked.
impl Prober for () {
    fn probe(&self, _: ProbeRequest) -> BoxFuture<'static, (bool, String)> {
        async { (false, "probing is not available".to_owned()) }.boxed()
    }
}

/// What a step did to what the steps after it were planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// They hold as they are.
    Small,
    /// They are to be planned anew.
    Large,
}

/// Everything a step may need.
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
    /// Carries out a plan, and says how many of its steps were done.
    ///
    /// What follows a release that changed was planned for what was there before: it is left to the next plan.
    pub(crate) async fn execute(&self, plan: &Plan) -> (usize, PlanOutcome) {
        for (done, step) in plan.steps.iter().enumerate() {
            if self.stopping.load(Ordering::Relaxed) {
                return (done, PlanOutcome::Interrupted);
            }
            tracing::debug!(subject = %plan.subject, reason = %step.reason, "{}", describe(&step.action));
            // What a step leaves half done is in the cluster, and the next plan starts from there.
            let result = AssertUnwindSafe(self.step(&plan.subject, step))
                .catch_unwind()
                .await;
            match result {
                Ok(Ok(Effect::Small)) => {}
                Ok(Ok(Effect::Large)) => return (done + 1, PlanOutcome::Succeeded),
                Err(_) => {
                    return (
                        done,
                        PlanOutcome::Failed(Box::new(StepFailure::panicked(step.action.clone()))),
                    );
                }
                Ok(Err(refused)) => {
                    let failed = StepFailure::new(step.action.clone(), refused);
                    return (done, PlanOutcome::Failed(Box::new(failed)));
                }
            }
        }
        (plan.steps.len(), PlanOutcome::Succeeded)
    }

    async fn step(&self, subject: &Subject, step: &Step) -> Result<Effect, WriteError> {
        if matches!(step.action, Action::DeleteRevision(_)) && !self.is_confirmed(subject, &step.action).await
        {
            return Ok(Effect::Large);
        }
        let done = self.act(&step.action).await;
        if let Err(refused) = &done
            && refused.is_stale()
        {
            self.look_again(&step.action).await;
        }
        if done.is_ok()
            && let Some(action) = verb(&step.action)
        {
            let reason = step.reason.name();
            self.shared.observer.report(&Report::Written { action, reason });
        }
        done
    }

    /// A control plane goes only if it is still to go once everything that could refer to it was listed anew: a watch may have
    /// missed the one event that counts.
    async fn is_confirmed(&self, subject: &Subject, action: &Action) -> bool {
        let is_listed = self.watches.relist_referrers().await;
        let now = self.clock.now();
        is_listed
            && self
                .shared
                .with(|reconciler| reconciler.still_plans(subject, action, now))
    }

    async fn act(&self, action: &Action) -> Result<Effect, WriteError> {
        match action {
            Action::Install(release) => return self.install(release).await,
            Action::Uninstall(key) => return self.uninstall(key).await,
            other => self.write(other).await?,
        }
        Ok(Effect::Small)
    }

    async fn write(&self, action: &Action) -> Result<(), WriteError> {
        match action {
            Action::CreateRevision(new) => self.create(ObjectKind::IstioRevision, new).await,
            Action::CreateTag(new) => self.create(ObjectKind::IstioRevisionTag, new).await,
            Action::UpdateRevision(change) => self.update(change).await,
            Action::UpdateTag(change) => self.update(change).await,
            Action::DeleteRevision(seen) | Action::DeleteTag(seen) => self.delete(seen).await,
            Action::AddFinalizer { object, finalizers } | Action::RemoveFinalizer { object, finalizers } => {
                let answer = self.writer.set_finalizers(object, finalizers).await;
                self.gone_is_fine(action, answer)
                    .map(|answer| self.seen(object, answer))
            }
            Action::WriteStatus { object, status } => {
                let status = status.to_json().map_err(own_fault)?;
                let answer = self.writer.set_status(object, status).await?;
                self.seen(object, Some(answer));
                Ok(())
            }
            Action::Install(_) | Action::Uninstall(_) => Ok(()),
            Action::Event(event) => {
                self.tell(event).await;
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

    /// News that cannot be told stop nothing.
    async fn tell(&self, event: &Event) {
        let mut event = event.clone();
        event.message = self.shared.with(|reconciler| reconciler.redacted(&event.message));
        match self.events.publish(&event, self.clock.now()).await {
            Ok(true) => self.shared.observer.report(&Report::Written {
                action: "event",
                reason: event.reason.name(),
            }),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "an Event was not written"),
        }
    }

    async fn create<S: Serialize>(&self, kind: ObjectKind, new: &NewObject<S>) -> Result<(), WriteError> {
        let spec = serde_json::to_value(&new.spec).map_err(own_fault)?;
        let answer = self
            .writer
            .create(kind, (&new.name, &new.owner, &new.finalizers), spec)
            .await?;
        self.observe(kind, answer);
        Ok(())
    }

    async fn update<S: Serialize>(&self, change: &Change<S>) -> Result<(), WriteError> {
        let spec = serde_json::to_value(&change.spec).map_err(own_fault)?;
        let answer = self
            .writer
            .update(&change.object, &change.owner_references, spec)
            .await?;
        self.seen(&change.object, Some(answer));
        Ok(())
    }

    async fn delete(&self, seen: &Precondition) -> Result<(), WriteError> {
        let answer = self.writer.delete(seen).await?;
        self.seen(seen, answer);
        Ok(())
    }

    /// An object that is gone needs no finalizer taken from it.
    #[allow(clippy::unused_self, reason = "reads as a step of the executor")]
    fn gone_is_fine(
        &self,
        action: &Action,
        answer: Result<Value, WriteError>,
    ) -> Result<Option<Value>, WriteError> {
        match answer {
            Err(refused) if refused.is_not_found() && matches!(action, Action::RemoveFinalizer { .. }) => {
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    async fn probe(&self, request: &ProbeRequest) -> Result<(), WriteError> {
        let (ready, reason) = self.prober.probe(request.clone()).await;
        let result = ProbeResult {
            at: self.clock.now(),
            ready,
            reason,
        };
        let seen = Observation::Probed(request.webhook.clone(), result);
        self.shared.with(|reconciler| reconciler.observe(seen));
        Ok(())
    }

    async fn annotate(&self, object: &Precondition, ready: bool, reason: &str) -> Result<(), WriteError> {
        let status = if ready { "true" } else { "false" };
        let annotations = [(names::PROBE_STATUS, status), (names::PROBE_REASON, reason)];
        let answer = self.writer.annotate_webhook(object, &annotations).await?;
        if let Ok(id) = ObjectId::from_object(&answer) {
            self.shared
                .with(|reconciler| reconciler.observe_managed(&id, answer));
        }
        Ok(())
    }

    async fn relabel(&self, relabel: &Relabel) -> Result<(), WriteError> {
        let answer = self
            .writer
            .merge(&relabel.object.subject, relabel.patch())
            .await?;
        let light: Light = serde_json::from_value(answer).map_err(own_fault)?;
        self.shared
            .with(|reconciler| reconciler.observe_written_namespace(light));
        Ok(())
    }

    async fn move_workload(&self, step: &Move) -> Result<(), WriteError> {
        let answer = self.writer.merge(&step.object.subject, step.patch()).await?;
        let Subject::Workload(key) = &step.object.subject else {
            return Ok(());
        };
        if let Some((key, workload)) = Workload::from_object(key.kind(), &answer) {
            self.shared
                .with(|reconciler| reconciler.observe_written_workload(key, workload));
        }
        Ok(())
    }

    /// What a write answered is what is there, until something newer is seen.
    fn seen(&self, object: &Precondition, answer: Option<Value>) {
        if let (Subject::Object(kind, _), Some(answer)) = (&object.subject, answer) {
            self.observe(*kind, answer);
        }
    }

    fn observe(&self, kind: ObjectKind, answer: Value) {
        readable(
            self.shared
                .with(|reconciler| reconciler.observe_object(kind, answer)),
        );
    }

    /// What we know of an object did not hold: a watch may have missed something, so it is read.
    async fn look_again(&self, action: &Action) {
        let Some((kind, name)) = target(action) else {
            return self.look_at_others(action).await;
        };
        let (before, grave) = self.shared.with(|reconciler| {
            (
                reconciler.known_version_of(kind, &name),
                reconciler.tombstone(kind, &name),
            )
        });
        match self.writer.get(kind, &name).await {
            Ok(Some(object)) => readable(
                self.shared
                    .with(|reconciler| reconciler.confirm_object(kind, object, grave)),
            ),
            Ok(None) => self
                .shared
                .with(|reconciler| reconciler.confirm_missing(kind, &name, before)),
            Err(error) => tracing::debug!(%error, "an object could not be read again"),
        }
    }
}

impl Executor {
    /// The same for what is not ours.
    async fn look_at_others(&self, action: &Action) {
        let Some(subject) = action.precondition().map(|seen| &seen.subject) else {
            return;
        };
        let (Subject::Namespace(_) | Subject::Workload(_)) = subject else {
            return;
        };
        match self.writer.find(subject).await {
            Ok(found) => self
                .shared
                .with(|reconciler| reconciler.observe_read(subject, found)),
            Err(error) => tracing::debug!(%error, "an object could not be read again"),
        }
    }
}

/// What cannot be read is told.
fn readable(read: Result<(), DecodeError>) {
    if let Err(error) = read {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "an answer cannot be read"
        );
    }
}

/// The object of ours that an action is about.
fn target(action: &Action) -> Option<(ObjectKind, String)> {
    match action {
        Action::CreateRevision(new) => Some((ObjectKind::IstioRevision, new.name.clone())),
        Action::CreateTag(new) => Some((ObjectKind::IstioRevisionTag, new.name.clone())),
        action => match &action.precondition()?.subject {
            Subject::Object(kind, name) => Some((*kind, name.clone())),
            _ => None,
        },
    }
}

/// What kind of write an action is. Releases tell each of theirs.
fn verb(action: &Action) -> Option<&'static str> {
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

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn own_fault(error: serde_json::Error) -> WriteError {
    WriteError::local(ErrorClass::Other, error.to_string())
}
