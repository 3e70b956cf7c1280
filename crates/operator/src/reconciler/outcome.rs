//! Outcomes of executed plans: success, failure with back-off, conflict. The planner sees failures in its
//! snapshot.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::plan::Plan;
use mainstay_mesh::snapshot::Failure;
use mainstay_mesh::{Action, ErrorClass, Observation, Subject};

use super::{FailedActions, Reconciler, later};
use crate::log::redact;

/// A write without a response counts as rejected once its back-off has reached this delay.
const UNANSWERED_LIMIT: Duration = Duration::from_secs(30);

/// Number of consecutive conflicts of a subject after which a conflict counts as a failure: a webhook may
/// reject a write with 409 forever.
const MAX_CONFLICTS: u32 = 10;

/// The outcome of an executed plan.
#[derive(Clone, Debug)]
pub enum PlanOutcome {
    /// Every step succeeded.
    Succeeded,
    /// A step failed; the steps before it succeeded, those after it were not tried.
    Failed(Box<StepFailure>),
    /// The execution was interrupted by a shutdown.
    Interrupted,
}

/// A step that failed.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The action of the step.
    pub action: Action,
    /// The class of the failure.
    pub class: ErrorClass,
    /// The server's message, which may quote values: for the status of the object that holds them, not for
    /// logs.
    pub message: String,
    /// Minimum delay before a retry, if the server requested one.
    pub retry_after: Option<Duration>,
    /// Whether the step panicked.
    pub panicked: bool,
    /// Failures of later steps, which were executed because they are independent of it.
    pub others: Vec<Self>,
}

impl StepFailure {
    /// Creates the failure of an action that was rejected.
    #[must_use]
    pub fn new(action: Action, error: WriteError) -> Self {
        Self {
            class: error.class,
            message: error.message,
            retry_after: error.retry_after,
            panicked: false,
            others: Vec::new(),
            action,
        }
    }

    /// Creates the failure of an action that panicked.
    #[must_use]
    pub fn panicked(action: Action) -> Self {
        Self {
            action,
            class: ErrorClass::Other,
            message: "internal error: a step of the operator panicked".into(),
            retry_after: None,
            panicked: true,
            others: Vec::new(),
        }
    }

    /// Whether the write conflicted with another writer: the plan was made from an outdated object.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.class == ErrorClass::Conflict
    }

    /// The message without quoted values, for logs.
    #[must_use]
    pub fn redacted(&self) -> Cow<'_, str> {
        redact(&self.message, &self.action)
    }
}

impl Reconciler {
    /// Removes values that failed actions may quote from a text.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        let actions = self.failed.values().flat_map(|failed| &failed.actions);
        actions.fold(text.to_owned(), |text, action| redact(&text, action).into_owned())
    }

    /// Records the outcome of a plan from [`Reconciler::next_plan`].
    pub fn finish_plan(&mut self, plan: &Plan, outcome: PlanOutcome, now: Timestamp) {
        self.snapshot.now = now;
        let subject = &plan.subject;
        self.queue.done(subject);
        self.release_migration(subject);
        let object_changed = self.changed_while_running.remove(subject);
        match outcome {
            PlanOutcome::Interrupted => {}
            PlanOutcome::Succeeded => {
                self.record_success(plan, now);
                self.last_steps.insert(subject.clone(), plan.steps.clone());
                self.queue.enqueue(subject.clone());
            }
            // The executor has read the object again: the next plan starts from its current version.
            PlanOutcome::Failed(failure) if failure.is_conflict() && self.count_conflict(subject) => {
                self.last_steps.remove(subject);
                self.queue.enqueue(subject.clone());
            }
            // The failed plan was made for an object that has changed since.
            PlanOutcome::Failed(_) if object_changed => {
                self.reset_failure(subject);
                self.queue.enqueue(subject.clone());
            }
            PlanOutcome::Failed(failure) => self.record_failure(plan, *failure, now),
        }
    }

    /// Counts a conflict; returns false once there were too many.
    fn count_conflict(&mut self, subject: &Subject) -> bool {
        let conflicts = self.conflicts.entry(subject.clone()).or_default();
        *conflicts = conflicts.saturating_add(1);
        *conflicts <= MAX_CONFLICTS
    }

    /// Resets the back-off of a subject because its object was changed. While a plan for it is executing, the
    /// reset is deferred until the plan has ended.
    pub(super) fn note_change(&mut self, subject: &Subject) {
        if self.queue.is_running(subject) {
            self.changed_while_running.insert(subject.clone());
        } else {
            self.reset_failure(subject);
        }
    }

    /// Clears the failure and the back-off of a subject whose object was changed.
    fn reset_failure(&mut self, subject: &Subject) {
        self.last_steps.remove(subject);
        self.conflicts.remove(subject);
        self.queue.reset_backoff(subject);
        if self.failed.remove(subject).is_some() {
            self.observe(Observation::Succeeded(subject.clone()));
        }
    }

    /// Clears the failure of a subject, unless the plan only left out the action that is backing off.
    fn record_success(&mut self, plan: &Plan, now: Timestamp) {
        let subject = &plan.subject;
        self.conflicts.remove(subject);
        let Some(failed) = self.failed.get(subject) else {
            return;
        };
        let is_backing_off =
            failed.retry_at > now && !plan.actions().any(|done| failed.actions.contains(done));
        if !is_backing_off {
            self.failed.remove(subject);
            self.queue.reset_backoff(subject);
            self.observe(Observation::Succeeded(subject.clone()));
        }
    }

    fn record_failure(&mut self, plan: &Plan, failure: StepFailure, now: Timestamp) {
        let subject = &plan.subject;
        let delay = self
            .queue
            .next_delay(subject)
            .max(failure.retry_after.unwrap_or_default());
        let retry_at = later(now, delay);
        let is_first = self
            .failed
            .get(subject)
            .is_none_or(|failed| failed.retry_at <= now);
        self.last_steps.remove(subject);
        let is_rejected = delay >= UNANSWERED_LIMIT;
        let mut failures = vec![failure];
        let others = failures
            .first_mut()
            .map(|first| std::mem::take(&mut first.others));
        failures.extend(others.into_iter().flatten());
        let failed = FailedActions {
            actions: failures.iter().map(|failure| failure.action.clone()).collect(),
            retry_at,
        };
        self.failed.insert(subject.clone(), failed);
        for failure in failures {
            let failure = Failure {
                action: failure.action,
                class: if failure.class == ErrorClass::Unanswered && is_rejected {
                    ErrorClass::Other
                } else {
                    failure.class
                },
                message: failure.message,
                retry_at,
            };
            self.observe(Observation::Failed(subject.clone(), failure));
        }
        // A failure is reported in the status at once. If writing the status fails too, both wait: otherwise
        // one of the two actions would always be due.
        if !is_first {
            self.queue.postpone(subject, retry_at);
        }
    }
}
