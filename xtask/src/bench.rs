//! `cargo xtask bench`: measures Mainstay and the peer alternately in one run and prints ratios.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mainstay_testkit::{peer, repository_root};
use serde::Deserialize;

use crate::build::Profile;
use crate::measure::measured;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fewer runs
    #[arg(long)]
    quick: bool,
}

/// Our figure and the peer's.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Figure {
    /// Name of the figure.
    pub(crate) name: String,
    /// Our value in `unit`.
    pub(crate) ours: f64,
    /// The peer's value in `unit`; zero without a peer.
    pub(crate) theirs: f64,
    /// `ms`, `MiB`, …
    pub(crate) unit: String,
    /// The ratio to reach; zero without a goal.
    pub(crate) wanted: f64,
}

impl Figure {
    /// Returns the peer's value divided by ours.
    fn ratio(&self) -> f64 {
        self.theirs / self.ours
    }

    pub(crate) fn text(&self) -> String {
        let Self {
            ours, theirs, unit, ..
        } = self;
        if *theirs == 0.0 {
            return format!("{ours:.2} {unit}");
        }
        format!("{ours:.2} {unit}, helm {theirs:.2} {unit}: {:.1}×", self.ratio())
    }

    pub(crate) fn goal(&self) -> String {
        if self.wanted == 0.0 {
            "reported".into()
        } else {
            format!("≥ {}×", self.wanted)
        }
    }

    pub(crate) fn met(&self) -> bool {
        self.wanted == 0.0 || self.ratio() >= self.wanted
    }
}

/// Prints all figures.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let figures = measure(arguments.quick)?;
    let rows: Vec<_> = figures
        .iter()
        .map(|figure| vec![figure.name.clone(), figure.text(), figure.goal()])
        .collect();
    println!(
        "\n{}",
        crate::table::layout(&["benchmark", "figure", "goal"], &rows)
    );
    Ok(())
}

/// Measures whole processes, then the engines in process.
pub(crate) fn measure(quick: bool) -> anyhow::Result<Vec<Figure>> {
    let chart = istiod()?;
    let mut figures = whole_process(&chart, if quick { 20 } else { 60 })?;
    figures.extend(in_process(&chart, if quick { 100 } else { 400 })?);
    figures.extend(instructions(&chart)?);
    Ok(figures)
}

/// Returns the istiod chart of the newest release.
fn istiod() -> anyhow::Result<PathBuf> {
    let chart = repository_root().join("resources/1.29.1/installer/charts/istiod");
    if !chart.is_dir() {
        bail!("no charts in resources/: run `cargo xtask charts` first");
    }
    Ok(chart)
}

fn arguments(program: &Path, chart: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    [
        text(program),
        "template".into(),
        "istiod".into(),
        text(chart),
        "--namespace".into(),
        "istio-system".into(),
    ]
    .into()
}

/// Alternates the programs, so that other load affects both, and takes medians.
fn whole_process(chart: &Path, runs: usize) -> anyhow::Result<Vec<Figure>> {
    let programs = [crate::build::mainstay_binary(Profile::Dist)?, peer("helm4")?];
    let scratch = tempfile::tempdir()?;
    let (mut wall, mut peak) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..runs {
        for ((program, wall), peak) in programs.iter().zip(&mut wall).zip(&mut peak) {
            let command = arguments(program, chart);
            let command: Vec<_> = command.iter().map(String::as_str).collect();
            let (output, cost) = measured(&command, None, scratch.path())?;
            let cost = cost
                .filter(|_| output.status.success())
                .context("a measured run failed")?;
            wall.push(cost.wall.as_secs_f64() * 1e3);
            peak.push(cost.peak_kib as f64 / 1024.0);
        }
    }
    let [ours, theirs] = wall.map(median);
    let [ours_peak, theirs_peak] = peak.map(median);
    let figure = |name: &str, ours, theirs, unit: &str, wanted| Figure {
        name: name.into(),
        ours,
        theirs,
        unit: unit.into(),
        wanted,
    };
    Ok(vec![
        figure("template istiod, whole process", ours, theirs, "ms", 10.0),
        figure("template istiod, peak memory", ours_peak, theirs_peak, "MiB", 5.0),
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Measures the engines without process start-up, with a bench that prints one `bench {…}` line per figure.
fn in_process(chart: &Path, runs: usize) -> anyhow::Result<Vec<Figure>> {
    let output = crate::build::cargo()
        .args([
            "bench",
            "--quiet",
            "--package",
            "mainstay-chart",
            "--bench",
            "render",
        ])
        .env("MAINSTAY_BENCH_CHART", chart)
        .env("MAINSTAY_BENCH_RUNS", runs.to_string())
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo bench")?;
    if !output.status.success() {
        bail!("the in-process bench failed");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = text
        .lines()
        .filter_map(|line| line.strip_prefix("bench "))
        .map(serde_json::from_str);
    Ok(figures.collect::<Result<_, _>>()?)
}

/// Counts instructions, which do not depend on other load; omitted without valgrind.
fn instructions(chart: &Path) -> anyhow::Result<Vec<Figure>> {
    let ours = count_instructions(&crate::build::mainstay_binary(Profile::Dist)?, chart);
    let theirs = count_instructions(&peer("helm4")?, chart);
    let Some(ours) = ours else { return Ok(Vec::new()) };
    let name = "template istiod, instructions".to_owned();
    Ok(vec![Figure {
        name,
        ours,
        theirs: theirs.unwrap_or_default(),
        unit: "M".into(),
        wanted: 0.0,
    }])
}

fn count_instructions(program: &Path, chart: &Path) -> Option<f64> {
    let scratch = tempfile::tempdir().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=callgrind.out"])
        .args(arguments(program, chart))
        .current_dir(scratch.path())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = log
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1))?
        .trim()
        .to_owned();
    Some(collected.parse::<f64>().ok()? / 1e6)
}
