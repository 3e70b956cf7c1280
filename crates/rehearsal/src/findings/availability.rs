//! What users would feel: Services without endpoints, budgets that are broken, updates that take all pods at once.

use mainstay_sim::controllers::int_or_percent::{Rounding, scaled_value};

use super::finding;
use crate::compose::{Play, counted, services};
use crate::report::{Finding, FindingKind, Moment, Report, Severity, Span};
use crate::scene::{Budget, Update, Workload};

/// Findings about availability.
pub(super) fn find(play: &Play<'_>, report: &Report, found: &mut Vec<Finding>) {
    for service in report
        .services
        .iter()
        .filter(|service| service.interrupted > Moment(0))
    {
        let first = service
            .points
            .iter()
            .find(|point| point.ready == 0 && point.at > Moment(0));
        let from = first.map(|first| first.at).unwrap_or_default();
        found.push(finding(
            (Severity::Error, FindingKind::Interruption),
            format!("Service {}/{}", service.namespace, service.name),
            format!(
                "it has no ready endpoint for {}, first at {from}",
                service.interrupted
            ),
            "let a pod stay until the next one is ready: more replicas, or maxUnavailable 0",
        ));
    }
    for span in report
        .workloads
        .iter()
        .filter(|span| span.fewest_ready == 0 && span.replicas > 0)
    {
        found.extend(emptied(play, span));
    }
    for budget in &play.scene.budgets {
        judge(play, budget, found);
    }
}

fn workload<'a>(play: &'a Play<'_>, span: &Span) -> Option<&'a Workload> {
    let mut all = play.scene.workloads_in(&span.namespace);
    all.find(|(key, _)| key.name() == span.name && key.kind().name() == span.kind)
        .map(|(_, workload)| workload)
}

fn emptied(play: &Play<'_>, span: &Span) -> Option<Finding> {
    let workload = workload(play, span)?;
    let key = play
        .scene
        .workloads_in(&span.namespace)
        .find(|(key, _)| key.name() == span.name && key.kind().name() == span.kind)?
        .0;
    let steps = services::steps(play, key);
    // One that had no ready pod before loses none.
    services::least(&steps, Moment(0), Moment(0)).filter(|ready| *ready > 0)?;
    let why = match workload.update {
        Update::Recreate => "its strategy is Recreate: all pods go before the first new one comes".to_owned(),
        Update::Rolling { unavailable, .. } if unavailable >= workload.replicas => {
            format!(
                "maxUnavailable lets {unavailable} of {} go at once",
                counted(usize::try_from(workload.replicas).unwrap_or(0), "pod", "pods")
            )
        }
        _ => "no pod of it is ready for a while".to_owned(),
    };
    Some(finding(
        (Severity::Warning, FindingKind::UpdateStrategy),
        format!("{} {}/{}", span.kind, span.namespace, span.name),
        why,
        "strategy RollingUpdate with maxUnavailable 0 keeps a pod ready",
    ))
}

/// A restart asks no budget, so a budget cannot stop it: what can be said is whether it is kept, and whether it lets anything go at all.
fn judge(play: &Play<'_>, budget: &Budget, found: &mut Vec<Finding>) {
    let crew: Vec<_> = play.scene.selected(&budget.namespace, &budget.selector).collect();
    let moved = crew.iter().any(|(key, _)| play.recording.ends.contains_key(*key));
    if !moved {
        return;
    }
    let total: i64 = crew
        .iter()
        .map(|(_, workload)| i64::from(workload.replicas))
        .sum();
    let least = match (&budget.min_available, &budget.max_unavailable) {
        (Some(min), _) => scaled_value(Some(min), total, Rounding::Up),
        (None, Some(max)) => total - scaled_value(Some(max), total, Rounding::Up),
        (None, None) => return,
    };
    let steps: Vec<_> = crew.iter().map(|(key, _)| services::steps(play, key)).collect();
    let points = services::sum(&steps);
    let subject = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
    let before = points.first().map_or(0, |point| i64::from(point.ready));
    let fewest = points
        .iter()
        .map(|point| i64::from(point.ready))
        .min()
        .unwrap_or(0);
    if before >= least && fewest < least {
        found.push(finding(
            (Severity::Warning, FindingKind::DisruptionBudget),
            subject.clone(),
            format!(
                "a restart asks no budget: {} ready at the worst, the budget wants {least}",
                counted(usize::try_from(fewest).unwrap_or(0), "pod is", "pods are")
            ),
            "lower maxUnavailable of the workload, or raise maxSurge",
        ));
    }
    if total > 0 && least >= total {
        found.push(finding(
            (Severity::Info, FindingKind::DisruptionBudget),
            subject,
            format!("it lets none of {total} pods go: restarts do not ask it, but nodes cannot be drained"),
            "let at least one pod go",
        ));
    }
}
