//! Throughput of `mainstay generate` on streams of several kinds, and its memory for one large document.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::build::Profile;
use crate::inject_bench::manifest;
use crate::measure::{Cost, measured};
use crate::prove::row::Row;

/// A figure with its goal.
#[derive(Clone, Debug)]
pub(crate) struct SpeedFigure {
    /// What was measured.
    pub(crate) name: String,
    /// Medians of all runs, in `unit`.
    pub(crate) value: f64,
    /// Lowest and highest value of all runs.
    pub(crate) spread: (f64, f64),
    /// `MB/s` or `× the document`.
    pub(crate) unit: &'static str,
    /// The value to reach.
    pub(crate) goal: Goal,
}

/// The value to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// A minimum.
    AtLeast(f64),
    /// A maximum.
    AtMost(f64),
}

impl SpeedFigure {
    /// Reports whether the goal is met.
    pub(crate) fn met(&self) -> bool {
        match self.goal {
            Goal::AtLeast(goal) => self.value >= goal,
            Goal::AtMost(goal) => self.value <= goal,
        }
    }

    /// Returns the goal as text.
    pub(crate) fn goal_text(&self) -> String {
        match self.goal {
            Goal::AtLeast(goal) => format!("≥ {goal} {}", self.unit),
            Goal::AtMost(goal) => format!("≤ {goal} {}", self.unit),
        }
    }

    /// Returns the value and its spread as text.
    pub(crate) fn text(&self) -> String {
        let (low, high) = self.spread;
        format!("{:.1} {} ({low:.1} to {high:.1})", self.value, self.unit)
    }

    /// Returns the row of a proof.
    pub(crate) fn row(&self) -> Row {
        Row::fast(&self.name, self.text(), &self.goal_text(), self.met())
    }
}

/// Number of manifests of about ten thousand bytes in a stream.
const MANIFESTS: usize = 4_000;

/// A stream and the run to measure on it.
struct Case {
    name: &'static str,
    goal: f64,
    /// Returns document `number` of the stream.
    document: fn(usize) -> String,
    count: usize,
    run: Run,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    /// Writes the result to another file.
    Convert,
    /// Runs in place on a file that does not change.
    Nothing,
    /// Runs in place on a file that was injected before.
    Again,
}

const CASES: &[Case] = &[
    Case {
        name: "generate: half of the documents are targets",
        goal: 100.0,
        document: |number| manifest_of(number, number.is_multiple_of(2)),
        count: MANIFESTS,
        run: Run::Convert,
    },
    Case {
        name: "generate: every document is a target",
        goal: 30.0,
        document: |number| manifest_of(number, true),
        count: MANIFESTS,
        run: Run::Convert,
    },
    Case {
        name: "generate: short documents, half of them targets",
        goal: 30.0,
        document: short,
        count: 40_000,
        run: Run::Convert,
    },
    Case {
        name: "generate: no document is a target",
        goal: 500.0,
        document: |number| manifest_of(number, false),
        count: MANIFESTS,
        run: Run::Nothing,
    },
    Case {
        name: "generate: every document is injected already",
        goal: 30.0,
        document: |number| manifest_of(number, true),
        count: MANIFESTS,
        run: Run::Again,
    },
];

/// Measures every case `runs` times, one after the other.
pub(crate) fn figures(runs: usize) -> anyhow::Result<Vec<SpeedFigure>> {
    let scratch = tempfile::tempdir()?;
    let bench = Bench {
        mainstay: crate::build::mainstay_binary(Profile::Dist)?,
        directory: scratch.path(),
    };
    let inputs: Vec<_> = CASES
        .iter()
        .enumerate()
        .map(|(index, case)| bench.prepare(index, case))
        .collect::<anyhow::Result<_>>()?;
    let large = bench.large()?;
    let mut values = vec![Vec::new(); CASES.len() + 1];
    for _ in 0..runs {
        for ((case, input), values) in CASES.iter().zip(&inputs).zip(&mut values) {
            values.push(bench.throughput(case, input)?);
        }
        if let Some(values) = values.last_mut() {
            values.push(bench.memory(&large)?);
        }
    }
    let memory = (
        "generate: memory for one large document",
        Goal::AtMost(4.0),
        "× the document",
    );
    let names = CASES
        .iter()
        .map(|case| (case.name, Goal::AtLeast(case.goal), "MB/s"));
    let figures = names.chain([memory]).zip(values);
    Ok(figures
        .map(|((name, goal, unit), values)| figure(name, goal, unit, values))
        .collect())
}

fn figure(name: &str, goal: Goal, unit: &'static str, mut values: Vec<f64>) -> SpeedFigure {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    SpeedFigure {
        name: name.into(),
        value: at(values.len() / 2),
        spread: (at(0), at(values.len().saturating_sub(1))),
        unit,
        goal,
    }
}

struct Bench<'d> {
    mainstay: PathBuf,
    directory: &'d Path,
}

impl Bench<'_> {
    /// Writes the input of a case.
    fn prepare(&self, index: usize, case: &Case) -> anyhow::Result<PathBuf> {
        let input = self.directory.join(format!("{index}.yaml"));
        let text: String = (0..case.count).map(case.document).collect();
        fs::write(&input, text)?;
        if case.run == Run::Again {
            self.generate(&[&input.display().to_string()])?;
        }
        Ok(input)
    }

    /// Returns megabytes of input per second of wall time.
    fn throughput(&self, case: &Case, input: &Path) -> anyhow::Result<f64> {
        let name = input.display().to_string();
        let output = self.directory.join("out.yaml").display().to_string();
        let before = fs::metadata(input)?.modified()?;
        let cost = match case.run {
            Run::Convert => self.generate(&["--output", &output, &name])?,
            Run::Nothing | Run::Again => self.generate(&[&name])?,
        };
        ensure!(
            fs::metadata(input)?.modified()? == before,
            "{}: the input changed",
            case.name
        );
        if case.run == Run::Convert {
            ensure!(
                fs::metadata(&output)?.len() > fs::metadata(input)?.len(),
                "{}: not injected",
                case.name
            );
        }
        Ok(fs::metadata(input)?.len() as f64 / 1e6 / cost.wall.as_secs_f64())
    }

    /// Writes one object of about ten million bytes.
    fn large(&self) -> anyhow::Result<PathBuf> {
        let input = self.directory.join("large.yaml");
        let mut text = manifest_of(0, true).replace("        ports:\n        - containerPort: 8080\n", "");
        for number in 64..100_000 {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "        - name: SETTING_{number}\n          value: \"value of setting {number}, long enough to be real\""
            );
        }
        fs::write(&input, text)?;
        Ok(input)
    }

    /// Returns the memory above that of an empty input, as a multiple of the input.
    fn memory(&self, input: &Path) -> anyhow::Result<f64> {
        let empty = self.directory.join("empty.yaml");
        fs::write(&empty, "")?;
        let base = self.generate(&[&empty.display().to_string()])?.peak_kib;
        let output = self.directory.join("large-out.yaml").display().to_string();
        let cost = self.generate(&["--output", &output, &input.display().to_string()])?;
        Ok((cost.peak_kib - base) as f64 * 1024.0 / fs::metadata(input)?.len() as f64)
    }

    fn generate(&self, arguments: &[&str]) -> anyhow::Result<Cost> {
        let program = self.mainstay.display().to_string();
        let command = [&[program.as_str(), "generate", "--quiet"], arguments].concat();
        let (output, cost) = measured(&command, None, self.directory)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{} failed: {stderr}", command.join(" "));
        cost.context("no measurement")
    }
}

/// A Deployment of about ten thousand bytes; a target or not.
fn manifest_of(number: usize, is_target: bool) -> String {
    let text = manifest(number);
    if is_target {
        text
    } else {
        text.replace("      runtimeClassName: contrast-cc\n", "")
    }
}

/// A Deployment or a Service of about a thousand bytes.
fn short(number: usize) -> String {
    if number.is_multiple_of(2) {
        let labels = format!("    app: app-{number}\n    team: shop\n");
        return format!(
            "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: app-{number}\n  labels:\n{labels}spec:\n  selector:\n{labels}  ports:\n  - name: http\n    port: 80\n    targetPort: 8080\n"
        );
    }
    let text = manifest(number);
    let lines = text.lines().filter(|line| !line.contains("echo \"step"));
    let short: Vec<_> = lines
        .filter(|line| !line.contains("- |") && !line.contains("args:"))
        .collect();
    let cut = short
        .iter()
        .position(|line| line.contains("SETTING_006"))
        .unwrap_or(short.len());
    short.get(..cut).unwrap_or_default().join("\n") + "\n"
}
