//! Rehearsal of a large upgrade: whole processes from the snapshot's file to the report.

use std::path::Path;

use super::Bench;
use super::figure::Goal;
use super::process::{self, Goals};
use crate::build::{Profile, mainstay_binary, run_cargo};
use crate::measure::cost_of;

const SUBJECT: &str = "rehearse: 10,000 workloads";
const WORKLOADS: &str = "10000";

const GOALS: Goals = Goals {
    wall: Goal::AtMost(1_000.0),
    cpu: Goal::None,
    memory: Goal::AtMost(200.0),
};

/// Measures the rehearsal of one snapshot.
pub(super) fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    if !bench.selects(SUBJECT) {
        return Ok(());
    }
    let scratch = tempfile::tempdir()?;
    let snapshot = scratch.path().join("snapshot.yaml");
    write_snapshot(&snapshot)?;
    let program = mainstay_binary(Profile::Dist)?.display().to_string();
    let report = scratch.path().join("report.html").display().to_string();
    let command = [
        program.as_str(),
        "rehearse",
        "--to=v1.29.1",
        "--fail-on=never",
        "--output=json",
        "--snapshot",
        &snapshot.display().to_string(),
        "--report",
        &report,
    ];
    let costs = (0..bench.runs())
        .map(|_| cost_of(&command, scratch.path()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    bench.add(process::figures(SUBJECT, GOALS, &costs, None));
    Ok(())
}

/// Writes the snapshot of a cluster with 10,000 Deployments.
fn write_snapshot(path: &Path) -> anyhow::Result<()> {
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "mainstay-rehearsal",
        "--example",
        "rehearse",
    ];
    let path = path.display().to_string();
    run_cargo(&[&example[..], &["--", "--make", WORKLOADS, &path]].concat())
}
