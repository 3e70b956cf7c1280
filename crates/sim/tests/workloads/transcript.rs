//! Formats a session as lines: writes of objects, and the trace of controllers.

use std::fmt::Write as _;

use mainstay_sim::store::{Event, EventKind};
use mainstay_sim::{Cluster, tree};
use serde_json::Value;

/// Returns the writes to tables since the start, one line per visible change.
pub(crate) fn transcript(cluster: &Cluster, tables: &[&str]) -> String {
    cluster.with(|state| {
        let mut events: Vec<(&str, &Event)> = Vec::new();
        for table in tables {
            if let Some(history) = state.store.history(table) {
                events.extend(history.after(0).unwrap().map(|event| (*table, event)));
            }
        }
        events.sort_by_key(|(_, event)| event.version);
        format_events(&events)
    })
}

fn format_events(events: &[(&str, &Event)]) -> String {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    for (table, event) in events {
        let value = event.object.value();
        let line = match event.kind {
            EventKind::Deleted => "gone".to_owned(),
            _ => format_object(table, &value),
        };
        let before = event
            .previous
            .as_ref()
            .map(|previous| format_object(table, &previous.value()));
        if before.as_ref() == Some(&line) {
            continue;
        }
        let name = event.object.meta().name.to_string();
        let at = names.iter().position(|have| *have == name).unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        });
        let shown = if *table == "pods" || *table == "replicasets.apps" {
            format!("#{at}")
        } else {
            name
        };
        let _ = writeln!(text, "{} {shown}: {line}", table.split('.').next().unwrap());
    }
    text
}

fn format_object(table: &str, value: &Value) -> String {
    let number = |path: &[&str]| tree::int(value, path).unwrap_or(0);
    let status = |field: &str| number(&["status", field]);
    match table {
        "deployments.apps" => {
            let conditions: Vec<String> = tree::list(value, &["status", "conditions"])
                .iter()
                .map(|one| {
                    let text = |key| tree::text(one, &[key]);
                    format!("{}={}/{}", text("type"), text("status"), text("reason"))
                })
                .collect();
            format!(
                "gen {}/{} want {} have {} updated {} ready {} available {} unavailable {} revision {} [{}]",
                status("observedGeneration"),
                number(&["metadata", "generation"]),
                number(&["spec", "replicas"]),
                status("replicas"),
                status("updatedReplicas"),
                status("readyReplicas"),
                status("availableReplicas"),
                status("unavailableReplicas"),
                tree::text(
                    value,
                    &["metadata", "annotations", "deployment.kubernetes.io/revision"]
                ),
                conditions.join(" ")
            )
        }
        "replicasets.apps" => format!(
            "want {} have {} ready {} available {} terminating {} desired {} max {}",
            number(&["spec", "replicas"]),
            status("replicas"),
            status("readyReplicas"),
            status("availableReplicas"),
            status("terminatingReplicas"),
            tree::text(
                value,
                &[
                    "metadata",
                    "annotations",
                    "deployment.kubernetes.io/desired-replicas"
                ]
            ),
            tree::text(
                value,
                &["metadata", "annotations", "deployment.kubernetes.io/max-replicas"]
            ),
        ),
        "pods" => {
            let containers: Vec<String> = tree::list(value, &["status", "containerStatuses"])
                .iter()
                .map(|one| {
                    let (kind, state) = one["state"].as_object().unwrap().iter().next().unwrap();
                    format!(
                        "{kind} {} x{}",
                        tree::text(state, &["reason"]),
                        one["restartCount"]
                    )
                })
                .collect();
            format!(
                "{} {} on {:?} {}{}",
                tree::text(value, &["status", "phase"]),
                if is_ready(value) { "ready" } else { "unready" },
                tree::text(value, &["spec", "nodeName"]),
                containers.join(","),
                if value["metadata"]["deletionTimestamp"].is_null() {
                    ""
                } else {
                    " deleting"
                },
            )
        }
        _ => value["status"].to_string(),
    }
}

pub(crate) fn check(name: &str, found: &str) {
    let path = format!("{}/tests/workloads/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, stored, "{name}");
}

/// Returns the trace lines of a controller without dates.
pub(crate) fn controller_trace(cluster: &Cluster, controller: &str) -> String {
    let trace = cluster.trace();
    let lines = trace.lines().filter(|line| line.contains(controller));
    lines.fold(String::new(), |text, line| text + &line[14..] + "\n")
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    tree::list(pod, &["status", "conditions"])
        .iter()
        .any(|one| tree::text(one, &["type"]) == "Ready" && tree::text(one, &["status"]) == "True")
}
