//! Records outcomes of executed plans: success, conflict, or failure with back-off. Failures are part of
//! the snapshot for the planner.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::plan::Plan;
use mainstay_mesh::snapshot::Failure;
use mainstay_mesh::{Action, ErrorClass, Observation, Subject};

use super::{FailedActions, Reconciler, add_delay};
use crate::log::redact;

/// Back-off delay from which a write without a response counts as rejected.
const UNANSWERED_LIMIT: Duration = Duration::from_secs(30);

/// Number of consecutive conflicts of a subject after which a conflict counts as a failure, because a
/// webhook may reject every write with 409.
const MAX_CONFLICTS: u32 = 10;

/// Outcome of an executed plan.
#[derive(Clone, Debug)]
pub enum PlanOutcome {
    /// Every step succeeded.
    Succeeded,
    /// A step failed. The steps before it succeeded; of the steps after it, only independent ones may have
    /// been executed.
    Failed(Box<StepFailure>),
    /// The execution was interrupted by a shutdown.
    Interrupted,
}

/// Failure of a step.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// Action of the step.
    pub action: Action,
    /// Class of the failure.
    pub class: ErrorClass,
    /// Message of the API server. It may quote chart values: it is written to the status of the object that
    /// contains these values, but not to logs.
    pub message: String,
    /// Minimum delay before a retry, if the server requested one.
    pub retry_after: Option<Duration>,
    /// Whether the step panicked.
    pub panicked: bool,
    /// Failures of later, independent steps.
    pub others: Vec<Self>,
}

impl StepFailure {
    /// Creates the failure of an action from the error of a write.
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

    /// Whether the write conflicted with a change by another client, because the plan was made from an
    /// outdated object.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.class == ErrorClass::Conflict
    }

    /// Returns the message for logs, with quoted values replaced.
    #[must_use]
    pub fn redacted(&self) -> Cow<'_, str> {
        redact(&self.message, &self.action)
    }
}

impl Reconciler {
    /// Replaces the values of failed actions in a text.
    #[must_use]
    pub fn redact_message(&self, text: &str) -> String {
        let actions = self.failed.values().flat_map(|failed| &failed.actions);
        actions.fold(text.to_owned(), |text, action| redact(&text, action).into_owned())
    }

    /// Records the outcome of a plan from [`Reconciler::next_plan`].
    pub fn finish_plan(&mut self, plan: &Plan, outcome: PlanOutcome, now: Timestamp) {
        self.snapshot.now = now;
        let subject = &plan.subject;
        self.queue.finish(subject);
        self.finish_migration(subject);
        let object_changed = self.changed_while_running.remove(subject);
        match outcome {
            PlanOutcome::Interrupted => {}
            PlanOutcome::Succeeded => {
                self.record_success(plan, now);
                self.last_steps.insert(subject.clone(), plan.steps.clone());
                self.queue.enqueue(subject.clone());
            }
            // The executor has read the object again, so that the next plan starts from its current version.
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

    /// Counts a conflict. Returns whether the maximum is not exceeded.
    fn count_conflict(&mut self, subject: &Subject) -> bool {
        let conflicts = self.conflicts.entry(subject.clone()).or_default();
        *conflicts = conflicts.saturating_add(1);
        *conflicts <= MAX_CONFLICTS
    }

    /// Resets failure and back-off of a subject because its object was changed. While a plan of the subject
    /// is executing, the reset is deferred until the plan is finished.
    pub(super) fn record_change(&mut self, subject: &Subject) {
        if self.queue.is_running(subject) {
            self.changed_while_running.insert(subject.clone());
        } else {
            self.reset_failure(subject);
        }
    }

    /// Resets failure, conflicts and back-off of a subject.
    fn reset_failure(&mut self, subject: &Subject) {
        self.last_steps.remove(subject);
        self.conflicts.remove(subject);
        self.queue.reset_backoff(subject);
        if self.failed.remove(subject).is_some() {
            self.observe(Observation::Succeeded(subject.clone()));
        }
    }

    /// Clears the failure of a subject, unless the failed actions are still in back-off and were not part
    /// of the plan.
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
        let retry_at = add_delay(now, delay);
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
                class: if failure.class == ErrorClass::Unavailable && is_rejected {
                    ErrorClass::Other
                } else {
                    failure.class
                },
                message: failure.message,
                retry_at,
            };
            self.observe(Observation::Failed(subject.clone(), failure));
        }
        // A first failure is reported in the status immediately. If writing the status fails too, the
        // subject is postponed, because otherwise one of the two failed actions would always be due.
        if !is_first {
            self.queue.postpone(subject, retry_at);
        }
    }
}
