//! Compares `mainstay manifest generate` with the real istioctl, object for object.

use anyhow::{Context, ensure};

use crate::programs::{self, ProgramName};

/// The test program that runs both commands on all inputs.
const PROGRAM: ProgramName = ProgramName {
    package: "mainstay-manifest",
    target: "istioctl",
};
/// Mark of the count of inputs whose objects must be equal.
const INPUTS: &str = "differential manifest generate and istioctl: ";
/// Mark of the count of inputs with listed differences.
const DEVIATIONS: &str = "deviations from istioctl: ";

/// Runs the comparison and prints the numbers of inputs; fails if one differs.
pub(super) fn run() -> anyhow::Result<()> {
    let runs = programs::build()?.run(&[PROGRAM], |command| {
        command.arg("--nocapture");
    })?;
    let run = runs.first().context("the comparison did not run")?;
    let (inputs, equal) = run.counts(INPUTS)?;
    let (deviations, listed) = run.counts(DEVIATIONS)?;
    println!(
        "manifest generate and istioctl: {inputs} inputs, {} different",
        inputs - equal
    );
    println!(
        "with deviations: {deviations} inputs, {} different from the listed differences",
        deviations - listed
    );
    ensure!(run.passed, "the objects differ from those of istioctl");
    Ok(())
}
