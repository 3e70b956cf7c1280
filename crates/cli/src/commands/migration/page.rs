//! Text and JSON output of `mainstay migration plan` and `status`.

use std::fmt::Write as _;

use jiff::SignedDuration;
use mainstay_api::{ConditionType, GoDuration, Istio, MigrationState};
use mainstay_mesh::Preview;
use mainstay_mesh::workload::WorkloadKey;
use serde_json::{Value, json};

use crate::ui::style::{ERROR, FRAME, GOOD, WARNING};
use crate::ui::table;

/// Estimates the duration if every workload is ready after `each`; batches run one after the other.
fn estimate(preview: &Preview, each: SignedDuration) -> SignedDuration {
    let batches = i32::try_from(preview.batches.len()).unwrap_or(i32::MAX);
    let running = each.saturating_mul(batches);
    running.saturating_add(preview.delay.saturating_mul((batches - 1).max(0)))
}

/// Formats a plan as text.
pub(crate) fn plan(preview: &Preview, notes: &[String], each: SignedDuration) -> String {
    let mut out = String::new();
    for note in notes {
        let _ = writeln!(out, "{WARNING}{note}{WARNING:#}");
    }
    if let Some((reason, message)) = &preview.held {
        let _ = writeln!(out, "{WARNING}on hold{WARNING:#} ({reason}): {message}");
    }
    let total: usize = preview.batches.iter().map(Vec::len).sum();
    let many = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let _ = writeln!(
        out,
        "{} to {FRAME}{}{FRAME:#} in {}, {} skipped, {} failed",
        many(total, "workload"),
        preview.target,
        if preview.batches.len() == 1 {
            "1 batch".to_owned()
        } else {
            format!("{} batches", preview.batches.len())
        },
        preview.skipped.len(),
        preview.failed.len()
    );
    if !preview.namespaces.is_empty() {
        let _ = write!(
            out,
            "\nNamespaces relabeled first: {}\n",
            preview.namespaces.join(", ")
        );
    }
    if !preview.batches.is_empty() {
        let mut rows = vec![vec!["BATCH".to_owned(), "WORKLOADS".to_owned()]];
        let batches = preview.batches.iter().enumerate();
        for (index, batch) in batches.filter(|(_, batch)| !batch.is_empty()) {
            let names: Vec<String> = batch.iter().map(WorkloadKey::to_string).collect();
            rows.push(vec![(index + 1).to_string(), names.join(" ")]);
        }
        let _ = write!(out, "\n{}", table::lines("", &rows));
    }
    out.push_str(&not_migrated(preview));
    if total > 0 {
        let span = GoDuration::from(estimate(preview, each));
        let (each, delay) = (GoDuration::from(each), GoDuration::from(preview.delay));
        let _ = write!(
            out,
            "\nAbout {span}, if every workload is ready after {each}; {delay} between batches\n"
        );
    }
    out
}

fn not_migrated(preview: &Preview) -> String {
    let mut rows = Vec::new();
    for (key, reason) in &preview.skipped {
        rows.push(vec![key.to_string(), reason.to_string()]);
    }
    for key in &preview.failed {
        rows.push(vec![
            key.to_string(),
            "failed; run `mainstay migration retry`".to_owned(),
        ]);
    }
    for (namespace, pod) in &preview.standalone {
        rows.push(vec![
            format!("Pod/{namespace}/{pod}"),
            "not managed by a workload; restart it manually".to_owned(),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\nNot migrated\n{}", table::lines("  ", &rows))
}

/// Returns a plan as JSON.
pub(crate) fn plan_data(preview: &Preview, notes: &[String], each: SignedDuration) -> Value {
    let name = |key: &WorkloadKey| json!({"kind": key.kind().name(), "namespace": key.namespace(), "name": key.name()});
    let with_reason = |(key, reason): &(WorkloadKey, mainstay_api::Reason)| json!({"kind": key.kind().name(), "namespace": key.namespace(), "name": key.name(), "reason": reason});
    json!({
        "targetRevision": preview.target,
        "namespaces": preview.namespaces,
        "batches": preview.batches.iter().map(|batch| batch.iter().map(name).collect()).collect::<Vec<Vec<Value>>>(),
        "moving": preview.moving.iter().map(name).collect::<Vec<_>>(),
        "migrated": preview.migrated,
        "failed": preview.failed.iter().map(name).collect::<Vec<_>>(),
        "skipped": preview.skipped.iter().map(with_reason).collect::<Vec<_>>(),
        "unmanagedPods": preview.standalone.iter().map(|(namespace, pod)| json!({"namespace": namespace, "name": pod})).collect::<Vec<_>>(),
        "held": preview.held.as_ref().map(|(reason, message)| json!({"reason": reason, "message": message})),
        "estimatedSeconds": estimate(preview, each).as_secs(),
        "notes": notes,
    })
}

/// Formats the progress as text.
pub(crate) fn status(istio: &Istio, preview: Option<&Preview>) -> String {
    let Some(status) = &istio.status.workload_migration else {
        return format!("Workload migration is not enabled for Istio {}\n", istio.name());
    };
    let style = match status.state {
        MigrationState::Completed => GOOD,
        MigrationState::Failed => ERROR,
        _ => WARNING,
    };
    let batched = status.batched.unwrap_or_default();
    let mut out = format!(
        "Istio {}  {style}{:?}{style:#}  to {}\n",
        istio.name(),
        status.state,
        if status.target_revision.is_empty() {
            "-"
        } else {
            &status.target_revision
        }
    );
    let rows = vec![
        [
            "MIGRATED", "FAILED", "SKIPPED", "TOTAL", "BATCH", "STARTED", "ENDED",
        ]
        .map(str::to_owned)
        .to_vec(),
        vec![
            status.migrated_workloads.to_string(),
            status.failed_workloads.to_string(),
            status.skipped_workloads.to_string(),
            status.total_workloads.to_string(),
            format!("{}/{}", batched.current_batch, batched.total_batches),
            status
                .start_time
                .map_or_else(|| "-".to_owned(), |time| time.to_string()),
            status
                .completion_time
                .map_or_else(|| "-".to_owned(), |time| time.to_string()),
        ],
    ];
    out.push_str(&table::lines("  ", &rows));
    let condition = istio.status.conditions.get(&ConditionType::WorkloadsMigrated);
    if !condition.message.is_empty() {
        let _ = writeln!(out, "  {}: {}", condition.reason, condition.message);
    }
    if let Some(next) = batched.next_batch_time {
        let _ = writeln!(out, "  next batch at {next}");
    }
    if let Some(preview) = preview.filter(|preview| !preview.moving.is_empty()) {
        let names: Vec<String> = preview.moving.iter().map(WorkloadKey::to_string).collect();
        let _ = writeln!(out, "  in progress: {}", names.join(" "));
    }
    if !status.failures.is_empty() {
        let rows: Vec<Vec<String>> = status
            .failures
            .iter()
            .map(|failure| {
                vec![
                    format!("{}/{}/{}", failure.kind, failure.namespace, failure.name),
                    failure.timestamp.to_string(),
                    failure.reason.clone(),
                ]
            })
            .collect();
        let _ = write!(out, "\nFailed\n{}", table::lines("  ", &rows));
    }
    out
}
