//! Rows of large migrations and rehearsals, parsed from the output of examples.

use std::process::Stdio;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use super::super::row::{Outcome, Row, RowKind};
use crate::bench::MAX_REHEARSAL_TIME;
use crate::build;

const TEXT: &str = "a large migration in virtual time";
const GOAL: &str = "≤ 1.05 of ideal, 1 patch each, statuses ≤ 2 per batch + 1 per workload, no 429";

/// Returns the rows of a migration of 1,000 workloads (quick) or 10,000.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let size: [&str; 3] = if quick {
        ["100", "1000", "50"]
    } else {
        ["1000", "10000", "100"]
    };
    let profile: &[&str] = if quick { &[] } else { &["--profile", "dist"] };
    let mut rows = vec![match example("mainstay-operator", "migrate", profile, &size) {
        Err(error) => Row::not_measured(TEXT, GOAL, RowKind::Correctness, &error),
        Ok(text) => {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("migration scale "));
            Row::correct(TEXT, line.unwrap_or("no figure").to_owned(), GOAL, line.is_some())
        }
    }];
    rows.push(cost(quick));
    rows
}

const COST: &str = "memory and CPU time of the operator as a process, against a served simulator";
const COST_GOAL: &str =
    "memory flat (≤ 1.25 of before the upgrade); CPU time per workload independent of the mesh size";

/// Compares two sizes in separate runs: the cost per workload must not grow with the number of workloads.
fn cost(quick: bool) -> Row {
    let sizes = if quick {
        [("20", "200"), ("100", "1000")]
    } else {
        [("100", "1000"), ("1000", "10000")]
    };
    let profile: &[&str] = if quick { &[] } else { &["--profile", "dist"] };
    let mut figures = Vec::new();
    for (namespaces, workloads) in sizes {
        let arguments = ["--served", namespaces, workloads, "100"];
        match example("mainstay-operator", "migrate", profile, &arguments) {
            Err(error) => return Row::not_measured(COST, COST_GOAL, RowKind::Performance, &error),
            Ok(text) => figures.push(Cost::read(&text)),
        }
    }
    let texts: Vec<String> = figures.iter().map(Cost::text).collect();
    let holds = match figures.as_slice() {
        [small, large] => {
            large.per_workload <= small.per_workload * 1.5 && large.after <= large.before * 1.25
        }
        _ => false,
    };
    Row::fast(COST, texts.join("; "), COST_GOAL, holds)
}

/// `figure NAME VALUE` lines.
#[derive(Default)]
struct Cost {
    workloads: f64,
    before: f64,
    begun: f64,
    after: f64,
    peak: f64,
    per_workload: f64,
}

impl Cost {
    fn read(text: &str) -> Self {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix("figure "));
            let found = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            found.unwrap_or(f64::NAN)
        };
        Self {
            workloads: value("workloads "),
            before: value("memory_before "),
            begun: value("memory_begun "),
            after: value("memory_after "),
            peak: value("memory_peak "),
            per_workload: value("cpu_per_workload "),
        }
    }

    fn text(&self) -> String {
        format!(
            "{} workloads: {:.1} MiB before, {:.1} when the first had moved, {:.1} after the last, {:.1} at the peak, {:.2} ms per workload",
            self.workloads, self.before, self.begun, self.after, self.peak, self.per_workload
        )
    }
}

/// Returns the row of a rehearsal of 10,000 workloads.
pub(super) fn rehearsal(quick: bool) -> Row {
    let text = if quick {
        "rehearsal of 10,000 workloads, from the snapshot's file to the page, unoptimized build"
    } else {
        "rehearsal of 10,000 workloads, from the snapshot's file to the page"
    };
    let most = MAX_REHEARSAL_TIME.as_secs_f64();
    let goal = format!("≤ {most} s");
    let profile: &[&str] = if quick { &[] } else { &["--profile", "dist"] };
    match example("mainstay-rehearsal", "rehearse", profile, &[]) {
        Err(error) => Row::not_measured(text, &goal, RowKind::Performance, &error),
        Ok(output) => {
            let line = output
                .lines()
                .find_map(|line| line.strip_prefix("rehearse 10000 workloads: "));
            let seconds = line.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
            let busy = output.lines().find_map(|line| line.strip_prefix("CPU time: "));
            let figure = match (line, busy) {
                (Some(line), Some(busy)) => format!("{line}; {busy} of CPU time"),
                _ => "no figure".to_owned(),
            };
            let mut row = Row::fast(
                text,
                figure,
                &goal,
                seconds.is_some_and(|seconds| seconds <= most),
            );
            if seconds.is_none() {
                row.outcome = Outcome::NotMeasured;
            }
            row
        }
    }
}

fn example(package: &str, name: &str, profile: &[&str], arguments: &[&str]) -> anyhow::Result<String> {
    let base = ["run", "--quiet", "--package", package, "--example", name];
    let words = [&base, profile, &["--"], arguments].concat();
    println!("$ cargo {}", words.join(" "));
    let output = build::cargo()
        .args(&words)
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    if !output.status.success() {
        bail!("the example {name} failed");
    }
    Ok(text)
}
