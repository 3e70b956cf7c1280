//! Text output of `mainstay rollout plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::SignedDuration;
use mainstay_api::delivery::DeploymentPhase;
use mainstay_api::{ConditionStatus, GoDuration};
use mainstay_rollout::model::{End, Frame};

use super::data::Report;
use crate::commands::rollout::page::{cluster_name, strategy_type};
use crate::ui::style::{ERROR, GOOD, WARNING};
use crate::ui::table;

/// Formats a report; the wide format adds every write.
pub(super) fn page(report: &Report, wide: bool) -> String {
    let deployment = &report.deployment;
    let mut out = format!(
        "Plan of {}/{}: strategy {:?}\n",
        deployment.namespace(),
        deployment.name(),
        strategy_type(deployment)
    );
    for note in report.warnings().iter().chain(&report.notes) {
        let _ = writeln!(out, "{WARNING}{note}{WARNING:#}");
    }
    out.push_str(&changes(report));
    out.push_str(&tables(&report.timeline.frames));
    if wide {
        out.push_str(&writes(&report.timeline.frames));
    }
    out.push_str(&outcome(report));
    out
}

fn changes(report: &Report) -> String {
    if report.changes.is_empty() {
        return "\nNo objects change\n".to_owned();
    }
    let mut rows = vec![
        ["CLUSTER", "CHANGE", "OBJECT", "REPLICAS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for change in &report.changes {
        let replicas = change
            .replicas
            .map(|(before, after)| format!("{before} -> {after}"));
        rows.push(vec![
            cluster_name(&change.cluster).to_owned(),
            change.word.to_owned(),
            format!("{} {}", change.key.kind, change.key.name),
            replicas.unwrap_or_default(),
        ]);
    }
    format!("\n{}", table::lines("", &rows))
}

/// Rows of one cluster: time, step and one cell per revision.
type Rows = Vec<Vec<String>>;

/// Returns one table for each group of clusters with equal rows.
fn tables(frames: &[Frame]) -> String {
    let clusters: BTreeSet<&str> = frames
        .iter()
        .flat_map(|frame| frame.replicas.keys())
        .map(|(cluster, _)| cluster.as_str())
        .collect();
    let mut groups: Vec<(Vec<&str>, Rows)> = Vec::new();
    for cluster in clusters {
        let rows = cluster_rows(frames, cluster);
        match groups.iter_mut().find(|(_, known)| *known == rows) {
            Some((names, _)) => names.push(cluster_name(cluster)),
            None => groups.push((vec![cluster_name(cluster)], rows)),
        }
    }
    let mut out = String::new();
    for (names, rows) in groups {
        let word = if names.len() == 1 { "cluster" } else { "clusters" };
        let _ = write!(
            out,
            "\nAvailable/desired replicas and weight in {word} {}\n{}",
            names.join(", "),
            table::lines("  ", &rows)
        );
    }
    out
}

fn cluster_rows(frames: &[Frame], cluster: &str) -> Rows {
    let revisions: BTreeSet<&str> = frames
        .iter()
        .flat_map(|frame| frame.replicas.keys())
        .filter(|(name, _)| name == cluster)
        .map(|(_, revision)| revision.as_str())
        .collect();
    let mut head = vec!["TIME".to_owned(), "STEP".to_owned()];
    head.extend(revisions.iter().map(|revision| (*revision).to_owned()));
    let mut rows: Rows = vec![head];
    let mut last: Option<(String, Vec<String>)> = None;
    for (index, frame) in frames.iter().enumerate() {
        let cells: Vec<String> = revisions
            .iter()
            .map(|revision| cell(frame, cluster, revision))
            .collect();
        let word = if index == 0 { "now".to_owned() } else { step(frame) };
        let row = (word, cells);
        if last.as_ref() == Some(&row) || row.1.iter().all(|cell| cell == "-") && last.is_none() {
            continue;
        }
        let time = length(frame.at);
        // Several states of one second: the last counts.
        let is_same = |known: &Vec<String>| known.first() == Some(&time) && known.get(1) == Some(&row.0);
        if rows.len() > 1 && rows.last().is_some_and(is_same) {
            rows.pop();
        }
        rows.push([time, row.0.clone()].into_iter().chain(row.1.clone()).collect());
        last = Some(row);
    }
    rows
}

/// Returns the current step, or the phase outside steps.
pub(crate) fn step(frame: &Frame) -> String {
    let step = match frame.phase {
        DeploymentPhase::Progressing | DeploymentPhase::Paused if !frame.step.is_empty() => {
            frame.step.clone()
        }
        DeploymentPhase::Progressing | DeploymentPhase::Pending => "-".to_owned(),
        phase => format!("{phase:?}"),
    };
    if frame.wave.is_empty() {
        step
    } else {
        format!("{}: {step}", frame.wave)
    }
}

/// Formats replicas and weights, such as `3/5 20%`; several rules with different weights are joined.
fn cell(frame: &Frame, cluster: &str, revision: &str) -> String {
    let key = (cluster.to_owned(), revision.to_owned());
    let Some(count) = frame.replicas.get(&key) else {
        return "-".to_owned();
    };
    let rules = frame.shares(cluster);
    let shares = rules.iter().map(|(_, shares)| percent(shares, revision));
    let mut weights: Vec<String> = shares.collect();
    weights.dedup();
    let weights = weights.join("/");
    format!("{}/{} {weights}", count.available, count.desired)
        .trim_end()
        .to_owned()
}

fn percent(shares: &BTreeMap<String, f64>, revision: &str) -> String {
    let share = shares.get(revision).copied().unwrap_or_default();
    format!("{:.0}%", share * 100.0)
}

fn writes(frames: &[Frame]) -> String {
    let mut rows = vec![["TIME", "CLUSTER", "WRITE", "REASON"].map(str::to_owned).to_vec()];
    for frame in frames {
        for write in &frame.writes {
            rows.push(vec![
                length(frame.at),
                cluster_name(&write.cluster).to_owned(),
                write.action.clone(),
                write.reason.to_string(),
            ]);
        }
    }
    format!("\nWrites\n{}", table::lines("  ", &rows))
}

/// Formats a length of time.
pub(crate) fn length(time: SignedDuration) -> String {
    GoDuration::from(time).0
}

/// Describes how the rollout ends, with the conditions that do not hold.
pub(crate) fn outcome(report: &Report) -> String {
    let time = length(report.duration());
    let promotions = match report.promotions() {
        0 => String::new(),
        1 => ", with 1 promotion".to_owned(),
        count => format!(", with {count} promotions"),
    };
    if report.is_complete() {
        return format!("\n{GOOD}Completes after {time}{GOOD:#}{promotions}\n");
    }
    let status = &report.deployment.status;
    let mut out = match report.timeline.end {
        End::Waiting => format!("\n{WARNING}Waits after {time}{WARNING:#}{promotions}\n"),
        End::Limit => format!("\n{ERROR}Does not complete within {time}{ERROR:#}{promotions}\n"),
        End::Settled => format!(
            "\n{ERROR}Ends {:?} after {time}{ERROR:#}{promotions}\n",
            status.phase
        ),
    };
    for condition in &status.conditions.0 {
        if condition.status != ConditionStatus::True {
            let message = table::one_line(&condition.message);
            let _ = writeln!(out, "  {} {}: {message}", condition.kind, condition.reason);
        }
    }
    out.replace(": \n", "\n")
}
