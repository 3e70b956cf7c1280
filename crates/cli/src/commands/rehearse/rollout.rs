//! `mainstay rehearse rollout`: runs a rollout on the model of clusters and shows the requests that each
//! revision would receive per second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::SignedDuration;
use mainstay_rollout::model::{Frame, Load, load};
use serde_json::{Value, json};

use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::commands::rollout::documents::FileFlags;
use crate::commands::rollout::plan::data::Report;
use crate::commands::rollout::plan::page::{length, outcome, step};
use crate::commands::rollout::plan::report;
use crate::commands::rollout::plan::scenario::{Assumptions, Scenario};
use crate::error::{CliError, Kind};
use crate::ui::style::{ERROR, GOOD};
use crate::ui::table;

/// Arguments of `rehearse rollout`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rehearse rollout -f new.yaml --from deployed.yaml
  mainstay rehearse rollout -f new.yaml --from deployed.yaml --rate 1000 -o json | jq '.load[60]'
  mainstay rehearse rollout -f new.yaml --from deployed.yaml --never-ready shop-v2
  mainstay rehearse rollout -f new.yaml --from deployed.yaml --unreachable prod-2

Works without a cluster. The requests are divided over the clusters by their replicas in the target.

Exit codes: 0 the rollout completes and every request is served, 2 it does not, 1 the documents are invalid.")]
pub(crate) struct Args {
    /// Name of the deployment, if the documents contain several
    name: Option<String>,

    #[command(flatten)]
    files: FileFlags,

    /// Documents that are deployed now; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    from: Vec<String>,

    /// Requests per second over all clusters
    #[arg(long, value_name = "N", default_value_t = 100)]
    rate: u32,

    #[command(flatten)]
    assumptions: Assumptions,

    /// Output format; `json` and `yaml` contain every second
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let scenario = Scenario::from_files(&args.files, &args.from, args.name.as_deref())?;
    let report = report(scenario, &args.assumptions);
    let rows = load(&report.timeline, &rates(&report, args.rate));
    print_styled(&match args.output {
        Format::Text | Format::Wide => page(&report, &rows, args.rate),
        other => structured(&data(&report, &rows, args.rate), other)?,
    })?;
    let is_served = rows.iter().all(|row| row.unserved == 0.0);
    // Before a first deployment, no revision can serve requests.
    if report.is_complete() && (is_served || args.from.is_empty()) {
        Ok(())
    } else {
        Err(CliError::new(Kind::Attention, ""))
    }
}

/// Divides the requests over the clusters by their replicas in the target.
fn rates(report: &Report, rate: u32) -> BTreeMap<String, f64> {
    let rollout = report.deployment.status.rollout.as_ref();
    let placement = rollout
        .map(|rollout| rollout.target.placement.as_slice())
        .unwrap_or_default();
    let mut replicas: BTreeMap<String, f64> = BTreeMap::new();
    for cluster in placement.iter().flat_map(|revision| &revision.clusters) {
        let count = f64::from(cluster.replicas.unwrap_or(1));
        *replicas.entry(cluster.cluster_name.clone()).or_default() += count;
    }
    let total: f64 = replicas.values().sum();
    let share = |count: f64| {
        if total > 0.0 {
            f64::from(rate) * count / total
        } else {
            0.0
        }
    };
    replicas
        .into_iter()
        .map(|(name, count)| (name, share(count)))
        .collect()
}

fn data(report: &Report, rows: &[Load], rate: u32) -> Value {
    let row = |row: &Load| json!({"second": row.second, "requestsPerSecond": row.requests, "unserved": row.unserved});
    let mut value = report.to_json();
    if let Value::Object(map) = &mut value {
        map.insert("rate".to_owned(), json!(rate));
        map.insert("load".to_owned(), rows.iter().map(row).collect());
    }
    value
}

fn page(report: &Report, rows: &[Load], rate: u32) -> String {
    let deployment = &report.deployment;
    let mut out = format!(
        "Rehearsal of {}/{} with {rate} requests per second\n",
        deployment.namespace(),
        deployment.name()
    );
    for note in &report.notes {
        let _ = writeln!(out, "{note}");
    }
    let _ = write!(
        out,
        "\nRequests per second\n{}",
        table::lines("  ", &changes(report, rows))
    );
    out.push_str(&capacity(&report.timeline.frames));
    out.push_str(&served(rows));
    out.push_str(&outcome(report));
    out
}

/// Returns one row for each second in which the distribution changes.
fn changes(report: &Report, rows: &[Load]) -> Vec<Vec<String>> {
    let revisions: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.requests.keys())
        .map(String::as_str)
        .collect();
    let mut head = vec!["TIME".to_owned(), "STEP".to_owned()];
    head.extend(revisions.iter().map(|name| (*name).to_owned()));
    head.push("UNSERVED".to_owned());
    let mut lines = vec![head];
    let mut last: Option<(&BTreeMap<String, f64>, f64)> = None;
    for row in rows {
        if last == Some((&row.requests, row.unserved)) {
            continue;
        }
        last = Some((&row.requests, row.unserved));
        let at = SignedDuration::from_secs(i64::try_from(row.second).unwrap_or(i64::MAX));
        let frame = report.timeline.frames.iter().rev().find(|frame| frame.at <= at);
        let mut line = vec![length(at), frame.map(step).unwrap_or_default()];
        let number = |rate: f64| format!("{rate:.1}");
        line.extend(
            revisions
                .iter()
                .map(|name| number(row.requests.get(*name).copied().unwrap_or_default())),
        );
        line.push(number(row.unserved));
        lines.push(line);
    }
    lines
}

/// Returns the fewest available and the most desired replicas during the rollout.
fn capacity(frames: &[Frame]) -> String {
    let sum = |frame: &Frame, count: fn(&mainstay_rollout::model::Replicas) -> u32| -> u32 {
        frame.replicas.values().map(count).sum()
    };
    let fewest = frames
        .iter()
        .map(|frame| sum(frame, |count| count.available))
        .min();
    let most = frames.iter().map(|frame| sum(frame, |count| count.desired)).max();
    format!(
        "\nReplicas: at least {} available, at most {} desired\n",
        fewest.unwrap_or_default(),
        most.unwrap_or_default()
    )
}

fn served(rows: &[Load]) -> String {
    let lost: f64 = rows.iter().map(|row| row.unserved).sum();
    let total: f64 = rows.iter().map(|row| row.requests.values().sum::<f64>()).sum();
    if lost == 0.0 {
        format!("{GOOD}Requests: {total:.0} served, none unserved{GOOD:#}\n")
    } else {
        format!("{ERROR}Requests: {total:.0} served, {lost:.0} unserved{ERROR:#}\n")
    }
}
