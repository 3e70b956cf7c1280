//! Throughput of `mainstay generate` on streams of several kinds, and its memory for one large document.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::super::Bench;
use super::super::figure::{Figure, Goal, Sample};
use super::super::process;
use super::manifests;
use crate::measure::Cost;

/// Number of manifests of about ten thousand bytes in a stream.
const MANIFESTS: usize = 4_000;

/// Number of manifests in a stream of short ones.
const SHORT_MANIFESTS: usize = 40_000;

/// Subject of the figure about memory.
const LARGE: &str = "generate: one large document";

/// A stream and the run to measure on it.
struct Case {
    subject: &'static str,
    /// Goal in megabytes per second of wall time.
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
    Unchanged,
    /// Runs in place on a file that was injected before.
    Again,
}

const CASES: &[Case] = &[
    Case {
        subject: "generate: half of the documents are targets",
        goal: 100.0,
        document: manifests::every_second_target,
        count: MANIFESTS,
        run: Run::Convert,
    },
    Case {
        subject: "generate: every document is a target",
        goal: 30.0,
        document: manifests::target,
        count: MANIFESTS,
        run: Run::Convert,
    },
    Case {
        subject: "generate: short documents, half of them targets",
        goal: 100.0,
        document: manifests::short,
        count: SHORT_MANIFESTS,
        run: Run::Convert,
    },
    Case {
        subject: "generate: no document is a target",
        goal: 500.0,
        document: manifests::other,
        count: MANIFESTS,
        run: Run::Unchanged,
    },
    Case {
        subject: "generate: every document is injected already",
        goal: 500.0,
        document: manifests::target,
        count: MANIFESTS,
        run: Run::Again,
    },
];

/// A case with its input and the costs of its runs.
struct Measured {
    case: &'static Case,
    input: PathBuf,
    costs: Vec<Cost>,
}

/// Measures the cases alternately, then the memory for one large document.
pub(super) fn measure(mainstay: &Path, bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let streams = Streams {
        mainstay,
        directory: scratch.path(),
    };
    let mut all = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        if !bench.selects(case.subject) {
            continue;
        }
        bench.attempt(case.subject, |_| {
            let input = streams.prepare(index, case)?;
            all.push(Measured {
                case,
                input,
                costs: Vec::new(),
            });
            Ok(())
        });
    }
    for _ in 0..bench.runs() {
        all.retain_mut(|measured| {
            let result = streams.run(measured.case, &measured.input);
            let error = result.map(|cost| measured.costs.push(cost)).err();
            if let Some(error) = &error {
                bench.failed(measured.case.subject, error);
            }
            error.is_none()
        });
    }
    for measured in &all {
        bench.add(measured.figures()?);
    }
    if bench.selects(LARGE) {
        bench.attempt(LARGE, |bench| {
            let figure = streams.memory(bench.runs())?;
            bench.add([figure]);
            Ok(())
        });
    }
    Ok(())
}

impl Measured {
    fn figures(&self) -> anyhow::Result<[Figure; 3]> {
        let megabytes = fs::metadata(&self.input)?.len() as f64 / 1e6;
        let figure = |quantity: &str, unit: &str, goal, value: &dyn Fn(&Cost) -> f64| Figure {
            subject: self.case.subject.into(),
            quantity: quantity.into(),
            unit: unit.into(),
            ours: Sample::from_runs(self.costs.iter().map(value).collect()),
            peer: None,
            goal,
        };
        let goal = Goal::AtLeast(self.case.goal);
        Ok([
            figure("throughput", "MB/s", goal, &|cost| {
                megabytes / cost.wall.as_secs_f64()
            }),
            figure("throughput by CPU time", "MB/s", Goal::None, &|cost| {
                megabytes / cost.cpu.as_secs_f64()
            }),
            figure("peak memory", "MiB", Goal::None, &process::memory),
        ])
    }
}

struct Streams<'d> {
    mainstay: &'d Path,
    directory: &'d Path,
}

impl Streams<'_> {
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

    /// Runs a case once and checks its result.
    fn run(&self, case: &Case, input: &Path) -> anyhow::Result<Cost> {
        let name = input.display().to_string();
        let output = self.directory.join("out.yaml");
        let before = fs::metadata(input)?;
        let cost = match case.run {
            Run::Convert => self.generate(&["--output", &output.display().to_string(), &name])?,
            Run::Unchanged | Run::Again => self.generate(&[&name])?,
        };
        let is_unchanged = fs::metadata(input)?.modified()? == before.modified()?;
        ensure!(is_unchanged, "{}: the input changed", case.subject);
        if case.run == Run::Convert {
            let is_injected = fs::metadata(&output)?.len() > before.len();
            ensure!(is_injected, "{}: not injected", case.subject);
        }
        Ok(cost)
    }

    /// Returns the memory above that of an empty input, as a multiple of the document.
    fn memory(&self, runs: usize) -> anyhow::Result<Figure> {
        let (empty, large) = (
            self.directory.join("empty.yaml"),
            self.directory.join("large.yaml"),
        );
        let text = manifests::large();
        fs::write(&empty, "")?;
        fs::write(&large, &text)?;
        let output = self.directory.join("large-out.yaml").display().to_string();
        let mut multiples = Vec::new();
        for _ in 0..runs {
            let base = self.generate(&[&empty.display().to_string()])?.peak_kib;
            let peak = self
                .generate(&["--output", &output, &large.display().to_string()])?
                .peak_kib;
            multiples.push((peak - base) as f64 * 1024.0 / text.len() as f64);
        }
        Ok(Figure {
            subject: LARGE.into(),
            quantity: "peak memory above that of an empty input".into(),
            unit: "× the document".into(),
            ours: Sample::from_runs(multiples),
            peer: None,
            goal: Goal::AtMost(4.0),
        })
    }

    fn generate(&self, arguments: &[&str]) -> anyhow::Result<Cost> {
        super::generate(self.mainstay, arguments, self.directory)
    }
}
