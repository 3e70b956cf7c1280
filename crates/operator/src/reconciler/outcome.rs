//! How a plan ended, and what follows: takes the outcome, gives the next moment to try. The planner sees failures in its snapshot.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::plan::Plan;
use mainstay_mesh::snapshot::Failure;
use mainstay_mesh::{Action, ErrorClass, Observation};

use super::{Reconciler, later};
use crate::log::redact;

/// Whoever has not been answered for so long, and tries again only so much later, counts as refused.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a plan ended.
#[derive(Clone, Debug)]
pub enum PlanOutcome {
    /// All of it was done.
    Succeeded,
    /// A step failed; those before it were done, those after it not tried.
    Failed(Box<StepFailure>),
    /// It was broken off because the process ends.
    Interrupted,
}

/// Which step failed, and why.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The action of the step.
    pub action: Action,
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// In the words of whoever refused, values it quotes included: for the status of the object that holds them, not for logs.
    pub message: String,
    /// Not to be tried again before.
    pub retry_after: Option<Duration>,
    /// Whether it is our own fault: a panic, caught.
    pub panicked: bool,
}

impl StepFailure {
    /// This action was refused.
    #[must_use]
    pub fn new(action: Action, refused: WriteError) -> Self {
        Self {
            class: refused.class,
            message: refused.message,
            retry_after: refused.retry_after,
            panicked: false,
            action,
        }
    }

    /// This action panicked.
    #[must_use]
    pub fn panicked(action: Action) -> Self {
        Self {
            action,
            class: ErrorClass::Other,
            message: "internal error: the operator's own fault".into(),
            retry_after: None,
            panicked: true,
        }
    }
}

impl StepFailure {
    /// The words without values, for those who may not see the object.
    #[must_use]
    pub fn redacted(&self) -> Cow<'_, str> {
        redact(&self.message, &self.action)
    }
}

impl Reconciler {
    /// A text about something that failed, without the values it may quote.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        let actions = self.failed.values().map(|(action, _)| action);
        actions.fold(text.to_owned(), |text, action| redact(&text, action).into_owned())
    }

    /// A plan from [`Reconciler::next_plan`] was carried out, or not.
    pub fn finish_plan(&mut self, plan: &Plan, ended: PlanOutcome, now: Timestamp) {
        self.snapshot.now = now;
        let subject = &plan.subject;
        self.queue.done(subject);
        match ended {
            PlanOutcome::Interrupted => {}
            PlanOutcome::Succeeded => {
                self.got_through(plan, now);
                self.last.insert(subject.clone(), plan.steps.clone());
                self.queue.wake(subject.clone());
            }
            PlanOutcome::Failed(failed) => self.failed(plan, *failed, now),
        }
    }

    /// A plan that held something back because it failed a moment ago says nothing about it.
    fn got_through(&mut self, plan: &Plan, now: Timestamp) {
        let subject = &plan.subject;
        let Some((action, retry_at)) = self.failed.get(subject) else {
            return;
        };
        let is_held = *retry_at > now && !plan.actions().any(|done| done == action);
        if !is_held {
            self.failed.remove(subject);
            self.queue.forgive(subject);
            self.observe(Observation::Succeeded(subject.clone()));
        }
    }

    fn failed(&mut self, plan: &Plan, failed: StepFailure, now: Timestamp) {
        let subject = &plan.subject;
        let delay = self
            .queue
            .delay(subject)
            .max(failed.retry_after.unwrap_or_default());
        let retry_at = later(now, delay);
        let is_news = self
            .failed
            .get(subject)
            .is_none_or(|(_, retry_at)| *retry_at <= now);
        self.last.remove(subject);
        self.failed
            .insert(subject.clone(), (failed.action.clone(), retry_at));
        let failure = Failure {
            action: failed.action,
            class: if failed.class == ErrorClass::Unanswered && delay >= PATIENCE {
                ErrorClass::Other
            } else {
                failed.class
            },
            message: failed.message,
            retry_at,
        };
        self.observe(Observation::Failed(subject.clone(), failure));
        // A failure is told at once. When telling fails too, one of the two would always be due.
        if !is_news {
            self.queue.postpone(subject, retry_at);
        }
    }
}
