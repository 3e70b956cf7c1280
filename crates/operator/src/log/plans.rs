//! Logs one line per executed plan: subject, actions, reasons and duration.

use std::time::Duration;

use mainstay_mesh::plan::Action;
use mainstay_mesh::{Plan, Step};

use crate::report::{Observer, Outcome, Report};

/// An observer that logs the reports of the control loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanLog {
    /// Whether each enqueued object is logged with its cause.
    pub log_enqueues: bool,
}

impl Observer for PlanLog {
    fn report(&self, report: &Report<'_>) {
        match report {
            Report::Reconciled {
                plan,
                outcome,
                duration,
            } => log_plan(plan, *outcome, *duration),
            Report::InstallationReconciled { outcome, duration } => {
                let milliseconds = duration.as_secs_f64() * 1e3;
                tracing::debug!(
                    outcome = outcome.name(),
                    milliseconds,
                    "reconciled an IstioOperator"
                );
            }
            Report::Enqueued { subject, cause } if self.log_enqueues => {
                tracing::info!(object = %subject, cause, "Object queued for reconciliation due to event");
            }
            Report::Leading(true) => tracing::info!("became the leader"),
            Report::Leading(false) => tracing::info!("stopped leading"),
            Report::Synced(true) => tracing::info!("caches synced"),
            _ => {}
        }
    }
}

fn log_plan(plan: &Plan, outcome: Outcome<'_>, duration: Duration) {
    let subject = plan.subject.to_string();
    let milliseconds = duration.as_secs_f64() * 1e3;
    let (actions, reasons) = (actions(plan), reasons(plan));
    match outcome {
        Outcome::Noop => tracing::debug!(subject, milliseconds, "nothing to do"),
        Outcome::Succeeded => tracing::info!(subject, actions, reasons, milliseconds, "reconciled"),
        Outcome::Conflict => tracing::debug!(subject, actions, milliseconds, "conflict, planning again"),
        Outcome::Failed(error) => {
            tracing::error!(subject, actions, reasons, milliseconds, error, "reconcile failed");
        }
        Outcome::Panicked => tracing::error!(subject, actions, reasons, "reconcile panicked (a bug)"),
    }
}

fn actions(plan: &Plan) -> String {
    plan.actions().map(describe_action).collect::<Vec<_>>().join(", ")
}

/// Describes an action for the log. Leaves out the messages of events and probes, which may quote values.
pub(crate) fn describe_action(action: &Action) -> String {
    match action {
        Action::Event(event) => format!("event {}", event.reason),
        Action::AnnotateWebhook { ready, .. } => format!("annotate ready={ready}"),
        other => other.to_string(),
    }
}

/// Returns the distinct reasons of a plan in order of their first occurrence.
fn reasons(plan: &Plan) -> String {
    let mut unique = Vec::new();
    for Step { reason, .. } in &plan.steps {
        let reason = reason.to_string();
        if !unique.contains(&reason) {
            unique.push(reason);
        }
    }
    unique.join(", ")
}
