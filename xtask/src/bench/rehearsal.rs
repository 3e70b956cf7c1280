//! Rehearsal of a large upgrade: whole processes from the snapshot's file to the report.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::figure::Goal;
use super::process::{self, Goals};
use super::{Bench, Suite};
use crate::build::{Profile, example, mainstay_binary};
use crate::measure::cost_of;

const SUBJECT: &str = "rehearse: 10,000 workloads";
const WORKLOADS: &str = "10000";

/// Goal for the time from the snapshot's file to the report.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(1);

const GOALS: Goals = Goals {
    wall: Goal::AtMost(MAX_TIME.as_millis() as f64),
    cpu: Goal::None,
    memory: Goal::AtMost(200.0),
};

/// Programs of the area.
pub(super) struct Programs {
    mainstay: PathBuf,
    /// The example of the rehearsal, which writes snapshots.
    example: PathBuf,
}

impl Programs {
    pub(super) fn build() -> anyhow::Result<Self> {
        Ok(Self {
            mainstay: mainstay_binary(Profile::Dist)?,
            example: example("rehearse")?,
        })
    }

    /// Writes the snapshot of a cluster with 10,000 Deployments.
    fn write_snapshot(&self, path: &Path) -> anyhow::Result<()> {
        let status = Command::new(&self.example)
            .args(["--make", WORKLOADS])
            .arg(path)
            .status()
            .context("starting the example rehearse")?;
        ensure!(status.success(), "the example rehearse failed");
        Ok(())
    }
}

impl Suite for Programs {
    /// Measures the rehearsal of one snapshot.
    fn measure(&self, bench: &mut Bench) -> anyhow::Result<()> {
        if !bench.selects(SUBJECT) {
            return Ok(());
        }
        let scratch = tempfile::tempdir()?;
        let path = |name| scratch.path().join(name).display().to_string();
        let (snapshot, report) = (path("snapshot.yaml"), path("report.html"));
        self.write_snapshot(Path::new(&snapshot))?;
        let program = self.mainstay.display().to_string();
        let command = [
            program.as_str(),
            "rehearse",
            "--to=v1.29.1",
            "--fail-on=never",
            "--output=json",
            "--snapshot",
            &snapshot,
            "--report",
            &report,
        ];
        let costs = (0..bench.runs())
            .map(|_| cost_of(&command, scratch.path()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        bench.add(process::figures(SUBJECT, GOALS, &costs, None));
        Ok(())
    }
}
