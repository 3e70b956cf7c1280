//! The operator in a large cluster on a real API server, compared with the Sail Operator if its binary is
//! configured.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use mainstay_testkit::peer;
use serde::Deserialize;

use super::figure::{Figure, Goal, Peer, Sample};
use super::{Bench, Suite};
use crate::build::{Profile, example, mainstay_binary};

/// Parts of the cluster, which the example does not build.
const PARTS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// Environment variable with the path of the Sail Operator's binary. The Sail Operator is not a pinned peer,
/// because the Go module proxy does not have its module.
const SAIL_OPERATOR: &str = "MAINSTAY_SAIL_OPERATOR";
/// Environment variable with the directory of the Sail Operator's charts, for a binary that does not contain
/// them.
const SAIL_CHARTS: &str = "MAINSTAY_SAIL_OPERATOR_CHARTS";

/// Goal of all figures: at most the peer's.
const AS_THE_PEER: Goal = Goal::Ratio(1.0);

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

/// Programs of the area.
pub(super) struct Programs {
    mainstay: PathBuf,
    /// The example of the operator, which fills a cluster and starts the operators.
    example: PathBuf,
    /// Binary of the Sail Operator and the directory of its charts, as far as they are given.
    sail_operator: Vec<OsString>,
}

impl Programs {
    pub(super) fn build() -> anyhow::Result<Self> {
        for part in PARTS {
            peer(part)?;
        }
        Ok(Self {
            mainstay: mainstay_binary(Profile::Dist)?,
            example: example("bench")?,
            sail_operator: [SAIL_OPERATOR, SAIL_CHARTS]
                .into_iter()
                .map_while(std::env::var_os)
                .collect(),
        })
    }

    fn figures(&self, measurement: &Measurement, runs: usize) -> anyhow::Result<Vec<Figure>> {
        let output = Command::new(&self.example)
            .arg(&self.mainstay)
            .args([measurement.argument, &runs.to_string()])
            .args(&self.sail_operator)
            .stderr(Stdio::inherit())
            .output()
            .context("starting the example bench")?;
        ensure!(
            output.status.success(),
            "the example bench failed for {}",
            measurement.subject
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| line.strip_prefix("bench "));
        lines
            .map(|line| Ok(serde_json::from_str::<Line>(line)?.figure()))
            .collect()
    }
}

impl Suite for Programs {
    /// Measures cold starts and the cost of watch events.
    fn measure(&self, bench: &mut Bench) -> anyhow::Result<()> {
        for measurement in MEASUREMENTS {
            if bench.selects(measurement.subject) {
                bench.attempt(measurement.subject, |bench| {
                    let figures = self.figures(measurement, bench.runs())?;
                    bench.add(figures);
                    Ok(())
                });
            }
        }
        Ok(())
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
            goal: AS_THE_PEER,
        }
    }
}
