//! Findings about availability: Services without endpoints, violated disruption budgets and update strategies
//! that stop all pods at once.

use mainstay_sim::controllers::int_or_percent::{Rounding, scaled_value};

use super::{Class, finding};
use crate::cluster_model::{Budget, Update, Workload};
use crate::compose::{Rehearsal, format_count, services};
use crate::report::{Elapsed, Finding, FindingKind, Report, WorkloadSpan};

pub(super) fn add_findings(rehearsal: &Rehearsal<'_>, report: &Report, found: &mut Vec<Finding>) {
    for service in report
        .services
        .iter()
        .filter(|service| service.interrupted > Elapsed(0))
    {
        let first = service
            .points
            .iter()
            .find(|point| point.ready == 0 && point.at > Elapsed(0));
        let from = first.map(|first| first.at).unwrap_or_default();
        found.push(finding(
            Class::error(FindingKind::Interruption),
            format!("Service {}/{}", service.namespace, service.name),
            format!("no ready endpoint for {}, first at {from}", service.interrupted),
            "add replicas, or set maxUnavailable 0 so that a pod stays until the next one is ready",
        ));
    }
    for span in report
        .workloads
        .iter()
        .filter(|span| span.fewest_ready == 0 && span.replicas > 0)
    {
        found.extend(check_update_strategy(rehearsal, span));
    }
    for budget in &rehearsal.model.budgets {
        check_budget(rehearsal, budget, found);
    }
}

fn find_workload<'a>(rehearsal: &'a Rehearsal<'_>, span: &WorkloadSpan) -> Option<&'a Workload> {
    let mut all = rehearsal.model.workloads_in(&span.namespace);
    all.find(|(key, _)| key.name() == span.name && key.kind().name() == span.kind)
        .map(|(_, workload)| workload)
}

fn check_update_strategy(rehearsal: &Rehearsal<'_>, span: &WorkloadSpan) -> Option<Finding> {
    let workload = find_workload(rehearsal, span)?;
    let key = rehearsal
        .model
        .workloads_in(&span.namespace)
        .find(|(key, _)| key.name() == span.name && key.kind().name() == span.kind)?
        .0;
    let steps = services::ready_pod_steps(rehearsal, key);
    // A workload without a ready pod before the upgrade cannot lose one.
    services::minimum(&steps, Elapsed(0), Elapsed(0)).filter(|ready| *ready > 0)?;
    let why = match workload.update {
        Update::Recreate => "strategy Recreate stops all pods before the first new one starts".to_owned(),
        Update::Rolling { unavailable, .. } if unavailable >= workload.replicas => {
            format!(
                "maxUnavailable allows {unavailable} of {} to stop at once",
                format_count(usize::try_from(workload.replicas).unwrap_or(0), "pod", "pods")
            )
        }
        _ => "no pod is ready for some time".to_owned(),
    };
    Some(finding(
        Class::warning(FindingKind::UpdateStrategy),
        format!("{} {}/{}", span.kind, span.namespace, span.name),
        why,
        "use strategy RollingUpdate with maxUnavailable 0 to keep a pod ready",
    ))
}

/// Adds findings about a disruption budget: whether it is violated, and whether it allows any disruption.
/// Restarts ignore budgets, so a budget cannot block the upgrade.
fn check_budget(rehearsal: &Rehearsal<'_>, budget: &Budget, found: &mut Vec<Finding>) {
    let selected: Vec<_> = rehearsal
        .model
        .selected(&budget.namespace, &budget.selector)
        .collect();
    let moved = selected
        .iter()
        .any(|(key, _)| rehearsal.recording.outcomes.contains_key(*key));
    if !moved {
        return;
    }
    let total: i64 = selected
        .iter()
        .map(|(_, workload)| i64::from(workload.replicas))
        .sum();
    let least = match (&budget.min_available, &budget.max_unavailable) {
        (Some(min), _) => scaled_value(Some(min), total, Rounding::Up),
        (None, Some(max)) => total - scaled_value(Some(max), total, Rounding::Up),
        (None, None) => return,
    };
    let steps: Vec<_> = selected
        .iter()
        .map(|(key, _)| services::ready_pod_steps(rehearsal, key))
        .collect();
    let points = services::sum_steps(&steps);
    let subject = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
    let before = points.first().map_or(0, |point| i64::from(point.ready));
    let fewest = points
        .iter()
        .map(|point| i64::from(point.ready))
        .min()
        .unwrap_or(0);
    if before >= least && fewest < least {
        found.push(finding(
            Class::warning(FindingKind::DisruptionBudget),
            subject.clone(),
            format!(
                "restarts ignore disruption budgets: {} ready at the minimum, the budget requires {least}",
                format_count(usize::try_from(fewest).unwrap_or(0), "pod is", "pods are")
            ),
            "lower maxUnavailable of the workload, or raise maxSurge",
        ));
    }
    if total > 0 && least >= total {
        found.push(finding(
            Class::info(FindingKind::DisruptionBudget),
            subject,
            format!(
                "allows no disruption of {total} pods: restarts ignore the budget, but nodes cannot be drained"
            ),
            "allow at least one unavailable pod",
        ));
    }
}
