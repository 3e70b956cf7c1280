//! The cells of a pod. Its status is the most specific of several reasons.

use serde_json::Value;

use super::cells::{created, name, or_none};
use crate::state::State;
use crate::table::age;
use crate::tree;

pub(super) fn cells(pod: &Value, state: &State) -> Vec<Value> {
    let containers = tree::list(pod, &["spec", "containers"]);
    let statuses = tree::list(pod, &["status", "containerStatuses"]);
    let ready = statuses
        .iter()
        .filter(|one| tree::flag(one, &["ready"]) && one.pointer("/state/running").is_some())
        .count();
    let restarts: i64 = statuses
        .iter()
        .filter_map(|one| tree::int(one, &["restartCount"]))
        .sum();
    vec![
        name(pod),
        format!("{ready}/{}", containers.len()).into(),
        display_status(pod).into(),
        format_restarts(statuses, restarts, state).into(),
        created(pod, state),
        or_none(
            tree::list(pod, &["status", "podIPs"])
                .first()
                .map_or("", |ip| tree::text(ip, &["ip"])),
        ),
        or_none(tree::text(pod, &["spec", "nodeName"])),
        or_none(tree::text(pod, &["status", "nominatedNodeName"])),
        format_readiness_gates(pod).into(),
    ]
}

/// Returns the reason that is shown as the status.
fn display_status(pod: &Value) -> String {
    let mut reason = tree::text(pod, &["status", "phase"]).to_owned();
    let own = tree::text(pod, &["status", "reason"]);
    if !own.is_empty() {
        own.clone_into(&mut reason);
    }
    let gated = tree::list(pod, &["status", "conditions"])
        .iter()
        .any(|one| tree::text(one, &["reason"]) == "SchedulingGated");
    if gated {
        reason = "SchedulingGated".into();
    }
    let initializing = init_status(pod);
    if let Some(text) = &initializing {
        reason.clone_from(text);
    } else {
        let (mut running, statuses) = (false, tree::list(pod, &["status", "containerStatuses"]));
        for one in statuses.iter().rev() {
            match waiting_or_terminated_reason(one) {
                Some(text) => reason = text,
                None => running |= tree::flag(one, &["ready"]) && one.pointer("/state/running").is_some(),
            }
        }
        if reason == "Completed" && running {
            let ready = tree::list(pod, &["status", "conditions"])
                .iter()
                .any(|one| tree::text(one, &["type"]) == "Ready" && tree::text(one, &["status"]) == "True");
            reason = if ready {
                "Running".into()
            } else {
                "NotReady".into()
            };
        }
    }
    if tree::get(pod, &["metadata", "deletionTimestamp"]).is_some() {
        let finished = matches!(tree::text(pod, &["status", "phase"]), "Succeeded" | "Failed");
        if own == "NodeLost" {
            reason = "Unknown".into();
        } else if !finished {
            reason = "Terminating".into();
        }
    }
    reason
}

fn waiting_or_terminated_reason(status: &Value) -> Option<String> {
    let waiting = tree::text(status, &["state", "waiting", "reason"]);
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let ended = status.pointer("/state/terminated")?;
    let reason = tree::text(ended, &["reason"]);
    if !reason.is_empty() {
        return Some(reason.to_owned());
    }
    match tree::int(ended, &["signal"]).unwrap_or(0) {
        0 => Some(format!(
            "ExitCode:{}",
            tree::int(ended, &["exitCode"]).unwrap_or(0)
        )),
        signal => Some(format!("Signal:{signal}")),
    }
}

/// Returns the status of the first init container that has not completed.
fn init_status(pod: &Value) -> Option<String> {
    let statuses = tree::list(pod, &["status", "initContainerStatuses"]);
    let total = tree::list(pod, &["spec", "initContainers"]).len();
    for (at, one) in statuses.iter().enumerate() {
        let ended = one.pointer("/state/terminated");
        if ended.is_some_and(|ended| tree::int(ended, &["exitCode"]).unwrap_or(0) == 0)
            || tree::flag(one, &["started"])
        {
            continue;
        }
        let waiting = tree::text(one, &["state", "waiting", "reason"]);
        return Some(match waiting_or_terminated_reason(one) {
            Some(reason) if ended.is_some() || !matches!(waiting, "" | "PodInitializing") => {
                format!("Init:{reason}")
            }
            _ => format!("Init:{at}/{total}"),
        });
    }
    None
}

fn format_restarts(statuses: &[Value], restarts: i64, state: &State) -> String {
    let last = statuses
        .iter()
        .map(|one| tree::text(one, &["lastState", "terminated", "finishedAt"]))
        .max()
        .unwrap_or("");
    match (restarts, last) {
        (0, _) | (_, "") => restarts.to_string(),
        (_, last) => format!("{restarts} ({} ago)", age(last, state.now())),
    }
}

fn format_readiness_gates(pod: &Value) -> String {
    let gates = tree::list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".into();
    }
    let conditions = tree::list(pod, &["status", "conditions"]);
    let holds = |gate: &&Value| {
        let kind = tree::text(gate, &["conditionType"]);
        conditions
            .iter()
            .any(|one| tree::text(one, &["type"]) == kind && tree::text(one, &["status"]) == "True")
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}
