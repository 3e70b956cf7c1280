//! Rendering compared with Helm: whole processes, the engines in process, and instructions.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use mainstay_testkit::{peer, repository_root};
use serde::Deserialize;

use super::charts::BenchChart;
use super::figure::{Figure, Goal, Peer, Sample};
use super::process::{self, Goals, PeerRuns};
use crate::build::Profile;
use crate::measure::cost_of;

/// Goal for wall and CPU time: the peer's time must be at least this multiple of ours.
const TIME: Goal = Goal::Ratio(10.0);

const GOALS: Goals = Goals {
    wall: TIME,
    cpu: TIME,
    memory: Goal::Ratio(8.0),
};

/// Measures all charts; compares the output of both programs first.
pub(super) fn measure(bench: &mut super::Bench) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let catalog = repository_root().join("resources/1.29.1/installer/charts");
    if !catalog.is_dir() {
        bail!("no charts in resources/: run `cargo xtask charts` first");
    }
    let programs = [
        crate::build::mainstay_binary(Profile::Dist)?
            .display()
            .to_string(),
        peer("helm4")?.display().to_string(),
    ];
    for chart in super::charts::write(&scratch.path().join("charts"), &catalog)? {
        if !bench.selects(chart.name) {
            continue;
        }
        bench.attempt(chart.name, |bench| {
            measure_chart(bench, &programs, &chart, scratch.path())
        });
    }
    Ok(())
}

fn measure_chart(
    bench: &mut super::Bench,
    programs: &[String; 2],
    chart: &BenchChart,
    scratch: &Path,
) -> anyhow::Result<()> {
    bench.compared(chart.name, prints_the_same(programs, chart)?);
    bench.add(whole_process(programs, chart, bench.runs(), scratch)?);
    bench.add(instructions(programs, chart));
    if chart.in_process {
        bench.add(in_process(chart, bench.runs())?);
    }
    Ok(())
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

/// Whether both programs succeed with the same output.
fn prints_the_same(programs: &[String; 2], chart: &BenchChart) -> anyhow::Result<bool> {
    let path = chart.path.display().to_string();
    let mut texts = Vec::new();
    for program in programs {
        let [program, rest @ ..] = arguments(program, &path);
        let output = Command::new(program)
            .args(rest)
            .output()
            .context("starting a program")?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success(),
            "{program} fails on {}: {stderr}",
            chart.name
        );
        texts.push(if chart.repeatable {
            output.stdout
        } else {
            without_random_content(&output.stdout)
        });
    }
    Ok(texts.first() == texts.last() && texts.first().is_some_and(|text| !text.is_empty()))
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

/// Alternates the programs, so that other load affects both.
fn whole_process(
    programs: &[String; 2],
    chart: &BenchChart,
    runs: usize,
    scratch: &Path,
) -> anyhow::Result<Vec<Figure>> {
    let path = chart.path.display().to_string();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let [mainstay, helm] = programs;
    for _ in 0..runs {
        ours.push(cost_of(&arguments(mainstay, &path), scratch)?);
        theirs.push(cost_of(&arguments(helm, &path), scratch)?);
    }
    let peer = PeerRuns {
        name: "helm",
        costs: &theirs,
    };
    Ok(process::figures(chart.name, GOALS, &ours, Some(peer)))
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

/// Measures the engines without process start-up.
fn in_process(chart: &BenchChart, runs: usize) -> anyhow::Result<Vec<Figure>> {
    let output = crate::build::cargo()
        .args([
            "bench",
            "--quiet",
            "--package",
            "mainstay-chart",
            "--bench",
            "render",
        ])
        .env("MAINSTAY_BENCH_CHART", &chart.path)
        .env("MAINSTAY_BENCH_RUNS", runs.to_string())
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    ensure!(
        output.status.success(),
        "the in-process bench failed for {}",
        chart.name
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("bench "));
    lines
        .map(|line| Ok(engine_figure(chart, serde_json::from_str(line)?)))
        .collect()
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

/// Counts our instructions, which do not depend on other load; omitted without valgrind.
fn instructions(programs: &[String; 2], chart: &BenchChart) -> Option<Figure> {
    let [mainstay, _] = programs;
    let count = count_instructions(mainstay, &chart.path.display().to_string())?;
    Some(Figure {
        subject: chart.name.into(),
        quantity: "whole process, instructions".into(),
        unit: "million".into(),
        ours: Sample::from_runs(vec![count]),
        peer: None,
        goal: Goal::None,
    })
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
