//! The operator in a large cluster on a real API server, compared with the Sail Operator if its binary is
//! configured.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;
use serde::Deserialize;

use super::Bench;
use super::figure::{Figure, Goal, Peer, Sample};
use crate::build::{self, Profile};

/// Environment variable with the path of the Sail Operator's binary. The Sail Operator is not a pinned peer,
/// because the Go module proxy does not have its module.
const SAIL_OPERATOR: &str = "MAINSTAY_SAIL_OPERATOR";

/// A measurement of the example `bench` of the operator.
struct Measurement {
    /// Part of the subjects of the measured figures.
    subject: &'static str,
    argument: &'static str,
}

const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        subject: "operator: 20,000 pods in 2,000 namespaces",
        argument: "start",
    },
    Measurement {
        subject: "operator: 100,000 pods in 2,000 namespaces",
        argument: "events",
    },
];

/// A line `bench {…}` of the example.
#[derive(Deserialize)]
struct Line {
    subject: String,
    quantity: String,
    unit: String,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

/// Measures cold starts and the cost of watch events.
pub(super) fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    for measurement in MEASUREMENTS {
        if bench.selects(measurement.subject) {
            bench.attempt(measurement.subject, |bench| {
                let figures = measurement.run(bench.runs())?;
                bench.add(figures);
                Ok(())
            });
        }
    }
    Ok(())
}

impl Measurement {
    fn run(&self, runs: usize) -> anyhow::Result<Vec<Figure>> {
        // The example starts the binary in its own directory.
        build::mainstay_binary(Profile::Dist)?;
        let sail_operator = std::env::var_os(SAIL_OPERATOR).map(PathBuf::from);
        let output = build::cargo()
            .args(["run", "--quiet", "--profile", Profile::Dist.name()])
            .args(["--package", "mainstay-operator", "--example", "bench", "--"])
            .args([self.argument, &runs.to_string()])
            .args(sail_operator)
            .current_dir(repository_root())
            .stderr(Stdio::inherit())
            .output()
            .context("starting cargo run")?;
        ensure!(
            output.status.success(),
            "the example bench failed for {}",
            self.subject
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| line.strip_prefix("bench "));
        lines
            .map(|line| Ok(serde_json::from_str::<Line>(line)?.figure()))
            .collect()
    }
}

impl Line {
    fn figure(self) -> Figure {
        let is_compared = !self.theirs.is_empty();
        Figure {
            subject: self.subject,
            quantity: self.quantity,
            unit: self.unit,
            ours: Sample::from_runs(self.ours),
            peer: is_compared.then(|| Peer {
                name: "sail-operator".into(),
                sample: Sample::from_runs(self.theirs),
            }),
            goal: Goal::None,
        }
    }
}
