//! Text output of `mainstay rollout status`, `watch` and the actions.

use std::fmt::Write as _;

use mainstay_api::ConditionStatus;
use mainstay_api::delivery::{
    ApplicationDeployment, DeploymentPhase, DeploymentStatus, Direction, RouteShare, StrategyType,
};

use crate::ui::style::{ERROR, FRAME, GOOD, HINT, WARNING};
use crate::ui::table;

/// Name of the host cluster in output; it has no Cluster object.
pub(super) const HOST: &str = "(host)";

/// Returns the name of a cluster as it is printed.
pub(crate) fn cluster_name(name: &str) -> &str {
    if name.is_empty() { HOST } else { name }
}

/// Returns the type of the strategy.
pub(super) fn strategy_type(deployment: &ApplicationDeployment) -> StrategyType {
    let strategy = deployment.spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.kind).unwrap_or_default()
}

/// Returns the number of steps of the strategy.
pub(super) fn step_count(deployment: &ApplicationDeployment) -> usize {
    let strategy = deployment.spec.strategy.as_ref();
    strategy.map_or(0, |strategy| strategy.steps.len())
}

/// Formats the status of one deployment.
pub(crate) fn page(deployment: &ApplicationDeployment) -> String {
    let status = &deployment.status;
    let mut out = head(deployment);
    out.push_str(&placement(status));
    out.push_str(&traffic(status));
    out.push_str(&analysis(status));
    out.push_str(&conditions(status));
    if let Some(hint) = hint(deployment) {
        let _ = writeln!(out, "\n{HINT}hint:{HINT:#} {hint}");
    }
    out
}

fn head(deployment: &ApplicationDeployment) -> String {
    let status = &deployment.status;
    let mut out = format!(
        "ApplicationDeployment {}/{}  {:?}  {}\n",
        deployment.namespace(),
        deployment.name(),
        strategy_type(deployment),
        colored(status.phase)
    );
    let is_old = status.observed_generation != deployment.metadata.generation;
    if is_old && status.observed_generation != 0 {
        let _ = writeln!(
            out,
            "{WARNING}the status describes generation {}, the spec is {}{WARNING:#}",
            status.observed_generation, deployment.metadata.generation
        );
    }
    if let Some(line) = progress(deployment) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Describes the progress of a rollout; `None` if there is none.
pub(super) fn progress(deployment: &ApplicationDeployment) -> Option<String> {
    let rollout = deployment.status.rollout.as_ref()?;
    let mut parts = Vec::new();
    if let Some(at) = rollout.completed_at {
        let word = match rollout.direction {
            Direction::Forward => "completed",
            Direction::Back => "returned to the stable state",
        };
        parts.push(format!("{word} at {at}"));
    } else if rollout.direction == Direction::Back {
        parts.push("returning to the stable state".to_owned());
    } else {
        let total = step_count(deployment);
        if total > 0 && !rollout.full {
            let step = (rollout.step as usize + 1).min(total);
            let is_done = rollout.step as usize >= total;
            parts.push(if is_done {
                format!("all {total} steps done")
            } else {
                format!("step {step} of {total}")
            });
        }
        if !rollout.wave.is_empty() {
            parts.push(format!("wave {}", rollout.wave));
        }
    }
    let diff = rollout.diff;
    let is_undone = rollout.completed_at.is_some() && rollout.direction == Direction::Back;
    if !is_undone {
        parts.push(format!(
            "{} added, {} changed, {} removed",
            diff.add, diff.modify, diff.del
        ));
    }
    if !rollout.failure.is_empty() {
        parts.push(format!("failure {}", rollout.failure));
    }
    Some(parts.join(", "))
}

fn placement(status: &DeploymentStatus) -> String {
    if status.placement.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["REVISION", "CLUSTER", "REPLICAS", "AVAILABLE", "ERROR"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    for revision in &status.placement {
        for cluster in &revision.clusters {
            rows.push(vec![
                revision.revision_name.clone(),
                cluster_name(&cluster.cluster_name).to_owned(),
                number(cluster.replicas),
                number(cluster.available),
                cluster.last_error.clone(),
            ]);
        }
    }
    format!("\n{}", table::lines("", &rows))
}

fn traffic(status: &DeploymentStatus) -> String {
    if status.traffic.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["CLUSTERS", "RULE", "WEIGHTS", "VERIFIED"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for group in &status.traffic {
        let names: Vec<&str> = group
            .cluster_names
            .iter()
            .map(|name| cluster_name(name))
            .collect();
        for route in &group.routes {
            rows.push(vec![
                names.join(", "),
                route.rule.clone(),
                shares(&route.shares),
                if group.verified { "yes" } else { "no" }.to_owned(),
            ]);
        }
    }
    format!("\n{}", table::lines("", &rows))
}

/// Formats the weights of one rule.
pub(super) fn shares(shares: &[RouteShare]) -> String {
    let share = |share: &RouteShare| {
        let weight = share
            .weight
            .map_or_else(|| "by replicas".to_owned(), |weight| format!("{weight}%"));
        format!("{} {weight}", share.revision_name)
    };
    shares.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn analysis(status: &DeploymentStatus) -> String {
    if status.analysis.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["ANALYSIS", "METRIC", "SUCCESSFUL", "FAILED", "NO DATA"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for run in &status.analysis {
        rows.push(vec![
            run.template_name.clone(),
            run.metric.clone(),
            run.successful.to_string(),
            run.failed.to_string(),
            run.no_data.to_string(),
        ]);
    }
    format!("\n{}", table::lines("", &rows))
}

/// Formats the conditions with their types, reasons and messages, unchanged.
fn conditions(status: &DeploymentStatus) -> String {
    if status.conditions.is_empty() {
        return "\nNo conditions: the deployment is not reconciled yet.\n".to_owned();
    }
    let mut rows = vec![
        ["CONDITION", "STATUS", "REASON", "MESSAGE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for condition in &status.conditions.0 {
        rows.push(vec![
            condition.kind.to_string(),
            status_word(condition.status).to_owned(),
            condition.reason.to_string(),
            condition.message.clone(),
        ]);
    }
    format!("\n{}", table::lines("", &rows))
}

pub(crate) fn status_word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// Returns a hint about the next command, if the rollout waits or was aborted.
fn hint(deployment: &ApplicationDeployment) -> Option<String> {
    let status = &deployment.status;
    let (name, namespace) = (deployment.name(), deployment.namespace());
    let rollout = status.rollout.as_ref()?;
    match status.phase {
        DeploymentPhase::Paused if rollout.paused.is_some() => Some(format!(
            "run `mainstay rollout resume {name} -n {namespace}` to continue"
        )),
        DeploymentPhase::Paused => Some(format!(
            "run `mainstay rollout promote {name} -n {namespace}` to continue, or `abort` to return"
        )),
        DeploymentPhase::Aborted => Some(format!(
            "change the spec, or run `mainstay rollout retry {name} -n {namespace}` to start again"
        )),
        _ => None,
    }
}

/// Returns the phase in its color.
pub(super) fn colored(phase: DeploymentPhase) -> String {
    let style = match phase {
        DeploymentPhase::Healthy => GOOD,
        DeploymentPhase::Pending | DeploymentPhase::Progressing | DeploymentPhase::Deleting => FRAME,
        DeploymentPhase::Paused => WARNING,
        DeploymentPhase::Degraded | DeploymentPhase::Aborted => ERROR,
    };
    format!("{style}{phase:?}{style:#}")
}

/// Formats a table of deployments.
pub(super) fn list(deployments: &[ApplicationDeployment], all_namespaces: bool) -> String {
    if deployments.is_empty() {
        return "No deployments found\n".to_owned();
    }
    let mut head = vec!["NAME", "STRATEGY", "PHASE", "STEP", "AVAILABLE", "READY"];
    if all_namespaces {
        head.insert(0, "NAMESPACE");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for deployment in deployments {
        let mut row = row(deployment);
        if all_namespaces {
            row.insert(0, deployment.namespace().to_owned());
        }
        rows.push(row);
    }
    table::lines("", &rows)
}

fn row(deployment: &ApplicationDeployment) -> Vec<String> {
    let status = &deployment.status;
    let running = status
        .rollout
        .as_ref()
        .filter(|rollout| rollout.completed_at.is_none());
    let total = step_count(deployment);
    let step = running.filter(|_| total > 0).map_or_else(
        || "-".to_owned(),
        |rollout| format!("{}/{total}", (rollout.step as usize + 1).min(total)),
    );
    let clusters = || status.placement.iter().flat_map(|revision| &revision.clusters);
    let sum = |count: fn(&mainstay_api::delivery::ClusterPlacement) -> Option<u32>| -> u32 {
        clusters().filter_map(count).sum()
    };
    let ready = status.conditions.find(&mainstay_api::ConditionType::Ready);
    vec![
        deployment.name().to_owned(),
        format!("{:?}", strategy_type(deployment)),
        format!("{:?}", status.phase),
        step,
        format!(
            "{}/{}",
            sum(|cluster| cluster.available),
            sum(|cluster| cluster.replicas)
        ),
        ready
            .map_or("Unknown", |ready| status_word(ready.status))
            .to_owned(),
    ]
}
