//! One line per plan that does something: takes the loop's reports, says subject, actions, reasons and duration.

use std::time::Duration;

use mainstay_mesh::plan::Action;
use mainstay_mesh::{Plan, Step};

use crate::report::{Observer, Outcome, Report};

/// Says what the loop does.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanLog {
    /// Whether to say also what woke each object.
    pub log_enqueues: bool,
}

impl Observer for PlanLog {
    fn report(&self, report: &Report<'_>) {
        match report {
            Report::Reconciled { plan, outcome, took } => say(plan, *outcome, *took),
            Report::Enqueued { subject, cause } if self.log_enqueues => {
                tracing::info!(object = %subject, cause, "Object queued for reconciliation due to event");
            }
            Report::Leading(true) => tracing::info!("leading: this process changes the cluster from now on"),
            Report::Leading(false) => tracing::info!("not leading"),
            Report::Synced(true) => tracing::info!("everything was listed"),
            _ => {}
        }
    }
}

fn say(plan: &Plan, outcome: Outcome<'_>, took: Duration) {
    let subject = plan.subject.to_string();
    let milliseconds = took.as_secs_f64() * 1e3;
    let (actions, reasons) = (actions(plan), reasons(plan));
    match outcome {
        Outcome::Idle => tracing::debug!(subject, milliseconds, "nothing to do"),
        Outcome::Done => tracing::info!(subject, actions, reasons, milliseconds, "reconciled"),
        Outcome::Failed(error) => {
            tracing::error!(
                subject,
                actions,
                reasons,
                milliseconds,
                error,
                "reconciling failed"
            );
        }
        Outcome::Panicked => tracing::error!(subject, actions, reasons, "a bug: reconciling panicked"),
    }
}

fn actions(plan: &Plan) -> String {
    plan.actions().map(describe).collect::<Vec<_>>().join(", ")
}

/// An action for the log. What an event or a probe says may quote what somebody else said, so it is not shown.
pub(crate) fn describe(action: &Action) -> String {
    match action {
        Action::Event(event) => format!("event {}", event.reason),
        Action::AnnotateWebhook { ready, .. } => format!("annotate ready={ready}"),
        other => other.to_string(),
    }
}

/// Each once, in order.
fn reasons(plan: &Plan) -> String {
    let mut seen = Vec::new();
    for Step { reason, .. } in &plan.steps {
        let reason = reason.to_string();
        if !seen.contains(&reason) {
            seen.push(reason);
        }
    }
    seen.join(", ")
}
