//! Rendering compared with Helm: whole processes, the engines in process, and instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use mainstay_testkit::{peer, repository_root};
use serde::Deserialize;

use super::charts::BenchChart;
use super::figure::{Figure, Goal, Peer, Sample};
use super::process::{self, Goals, PeerRuns};
use super::{Bench, Suite};
use crate::build::{Profile, executable, mainstay_binary};
use crate::measure::cost_of;

/// Goal for wall and CPU time: the peer's time must be at least this multiple of ours.
const TIME: Goal = Goal::Ratio(10.0);

const GOALS: Goals = Goals {
    wall: TIME,
    cpu: TIME,
    memory: Goal::Ratio(8.0),
};

/// Programs of the area.
pub(super) struct Programs {
    mainstay: String,
    helm: String,
    /// The bench of `mainstay-chart`, which measures the engines.
    engines: PathBuf,
}

impl Programs {
    pub(super) fn build() -> anyhow::Result<Self> {
        let engines = [
            "bench",
            "--no-run",
            "--package",
            "mainstay-chart",
            "--bench",
            "render",
        ];
        peer("oracle")?;
        Ok(Self {
            mainstay: mainstay_binary(Profile::Dist)?.display().to_string(),
            helm: peer("helm4")?.display().to_string(),
            engines: executable(&engines, "render")?,
        })
    }

    fn measure_chart(&self, bench: &mut Bench, chart: &BenchChart, scratch: &Path) -> anyhow::Result<()> {
        bench.compared(chart.name, self.prints_the_same(chart)?);
        bench.add(self.whole_process(chart, bench.runs(), scratch)?);
        bench.add(self.instructions(chart));
        bench.add(self.in_process(chart, bench.runs())?);
        Ok(())
    }

    /// Whether both programs succeed with the same output.
    fn prints_the_same(&self, chart: &BenchChart) -> anyhow::Result<bool> {
        let path = chart.path.display().to_string();
        let mut texts = Vec::new();
        for program in [&self.mainstay, &self.helm] {
            let [program, rest @ ..] = arguments(program, &path);
            let output = Command::new(program)
                .args(rest)
                .output()
                .context("starting a program")?;
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.success(), "{program} fails: {stderr}");
            texts.push(if chart.repeatable {
                output.stdout
            } else {
                without_random_content(&output.stdout)
            });
        }
        Ok(texts.first() == texts.last() && texts.first().is_some_and(|text| !text.is_empty()))
    }

    /// Alternates the programs, so that other load affects both.
    fn whole_process(&self, chart: &BenchChart, runs: usize, scratch: &Path) -> anyhow::Result<Vec<Figure>> {
        let path = chart.path.display().to_string();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            ours.push(cost_of(&arguments(&self.mainstay, &path), scratch)?);
            theirs.push(cost_of(&arguments(&self.helm, &path), scratch)?);
        }
        let peer = PeerRuns {
            name: "helm",
            costs: &theirs,
        };
        Ok(process::figures(chart.name, GOALS, &ours, Some(peer)))
    }

    /// Measures the engines without process start-up.
    fn in_process(&self, chart: &BenchChart, runs: usize) -> anyhow::Result<Vec<Figure>> {
        let mut command = Command::new(&self.engines);
        if !chart.repeatable {
            command.env("MAINSTAY_BENCH_RANDOM", "1");
        }
        let output = command
            .env("MAINSTAY_BENCH_CHART", &chart.path)
            .env("MAINSTAY_BENCH_RUNS", runs.to_string())
            .stderr(Stdio::inherit())
            .output()
            .context("starting the bench of the engines")?;
        ensure!(output.status.success(), "the bench of the engines failed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| line.strip_prefix("bench "));
        lines
            .map(|line| Ok(engine_figure(chart, serde_json::from_str(line)?)))
            .collect()
    }

    /// Counts our instructions, which do not depend on other load; omitted without valgrind.
    fn instructions(&self, chart: &BenchChart) -> Option<Figure> {
        let count = count_instructions(&self.mainstay, &chart.path.display().to_string())?;
        Some(Figure {
            subject: chart.name.into(),
            quantity: "whole process, instructions".into(),
            unit: "million".into(),
            ours: Sample::from_runs(vec![count]),
            peer: None,
            goal: Goal::None,
        })
    }
}

impl Suite for Programs {
    /// Measures all charts; compares the output of both programs first.
    fn measure(&self, bench: &mut Bench) -> anyhow::Result<()> {
        let scratch = tempfile::tempdir()?;
        let catalog = repository_root().join("resources/1.29.1/installer/charts");
        if !catalog.is_dir() {
            bail!("no charts in resources/: run `cargo xtask charts` first");
        }
        for chart in super::charts::write(&scratch.path().join("charts"), &catalog)? {
            if bench.selects(chart.name) {
                bench.attempt(chart.name, |bench| {
                    self.measure_chart(bench, &chart, scratch.path())
                });
            }
        }
        Ok(())
    }
}

fn arguments<'a>(program: &'a str, chart: &'a str) -> [&'a str; 6] {
    [
        program,
        "template",
        "istiod",
        chart,
        "--namespace",
        "istio-system",
    ]
}

/// Removes words of base64 that are too long for names.
fn without_random_content(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).into_owned();
    let is_random = |word: &str| {
        word.len() > 200
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c))
    };
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').filter(|word| !is_random(word)).collect();
        words.join(" ") + "\n"
    });
    lines.collect::<String>().into_bytes()
}

/// A line `bench {…}` of the bench of `mainstay-chart`: milliseconds of all runs.
#[derive(Deserialize)]
struct Line {
    name: String,
    ours: Vec<f64>,
    theirs: Vec<f64>,
    /// Whether the figure has a goal.
    compared: bool,
}

fn engine_figure(chart: &BenchChart, line: Line) -> Figure {
    Figure {
        subject: chart.name.into(),
        quantity: format!("in process, {}", line.name),
        unit: "ms".into(),
        ours: Sample::from_runs(line.ours),
        peer: Some(Peer {
            name: "helm".into(),
            sample: Sample::from_runs(line.theirs),
        }),
        goal: if line.compared { TIME } else { Goal::None },
    }
}

fn count_instructions(program: &str, chart: &str) -> Option<f64> {
    let scratch = tempfile::tempdir().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=callgrind.out"])
        .args(arguments(program, chart))
        .current_dir(scratch.path())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = log.lines().find_map(|line| line.split("Collected : ").nth(1))?;
    Some(collected.trim().parse::<f64>().ok()? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_content_is_left_out() {
        let key = "QUJD".repeat(100);
        let text = format!("a: b\ntls.key: {key}\nc: {}\n", "x".repeat(20));
        let expected = format!("a: b\ntls.key:\nc: {}\n", "x".repeat(20));
        assert_eq!(without_random_content(text.as_bytes()), expected.as_bytes());
    }
}
