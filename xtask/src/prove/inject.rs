//! Proof of injection: tables, laws, corpus, fuzzing, and speed against istioctl.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use mainstay_testkit::repository_root;

use super::fuzzed;
use super::row::{Row, RowKind};
use super::speed::measured_rows;
use crate::programs::{self, ProgramName, Programs};
use crate::{bench, build};

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = engine_rows(quick);
    rows.extend(command_rows());
    rows.extend(fuzzed::rows(
        |target| target.starts_with("inject"),
        "no crash, block YAML restored byte for byte",
        quick,
    ));
    if !quick {
        rows.extend(bench_rows());
    }
    rows
}

/// Output of a test run and whether every test passed.
struct TestRun {
    text: String,
    passed: bool,
}

impl From<Vec<programs::TestRun>> for TestRun {
    fn from(runs: Vec<programs::TestRun>) -> Self {
        Self {
            text: runs.iter().map(|run| run.output.as_str()).collect(),
            passed: runs.iter().all(|run| run.passed),
        }
    }
}

/// Runs the engine's tests on more cases than the test step does.
fn full_engine_run() -> anyhow::Result<TestRun> {
    let output = build::cargo()
        .args([
            "test",
            "--package",
            "mainstay-inject",
            "--no-fail-fast",
            "--release",
        ])
        .args(["--", "--nocapture"])
        .env("LAWS", "10000")
        .current_dir(repository_root())
        .stderr(Stdio::null())
        .output()
        .context("starting cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        println!("{text}");
    }
    Ok(TestRun {
        text,
        passed: output.status.success(),
    })
}

impl TestRun {
    /// Returns the number before `word` in the line that contains `mark`.
    fn number(&self, mark: &str, word: &str) -> Option<usize> {
        let line = self.text.lines().find(|line| line.contains(mark))?;
        let before = line.get(..line.rfind(word)?)?;
        before
            .split_whitespace()
            .next_back()?
            .trim_matches(',')
            .parse()
            .ok()
    }

    /// Returns the number of passed tests whose name starts with `prefix`. Output may separate name and
    /// result.
    fn count(&self, prefix: &str) -> usize {
        let begin = format!("test {prefix}");
        self.text
            .lines()
            .filter(|line| line.starts_with(&begin) && line.ends_with("ok"))
            .count()
    }
}

/// The test programs of the engine.
const ENGINE: &[ProgramName] = &[
    engine_test("mainstay_inject"),
    engine_test("corpus"),
    engine_test("grammar"),
    engine_test("hostile"),
    engine_test("laws"),
    engine_test("replaced"),
    engine_test("tables"),
];

/// Directories of the tables with expected bytes, and their titles.
const TABLES: [(&str, &str); 13] = [
    ("kinds", "kinds"),
    ("selection", "selection"),
    ("opt-out", "opt-outs"),
    ("conflict", "conflicts"),
    ("mesh", "mesh values"),
    ("stream", "document streams"),
    ("block", "block style"),
    ("flow", "flow style and JSON"),
    ("anchor", "anchors, aliases, merges"),
    ("profile", "profiles"),
    ("convergence", "convergence"),
    ("uninject", "uninject"),
    ("refused", "rejections"),
];

fn engine_rows(quick: bool) -> Vec<Row> {
    let run = if quick {
        programs::build().and_then(|programs| {
            let runs = programs.run(ENGINE, |command| {
                command.arg("--nocapture");
            })?;
            Ok(TestRun::from(runs))
        })
    } else {
        full_engine_run()
    };
    let tested = match run {
        Ok(tested) => tested,
        Err(error) => {
            return vec![Row::not_measured(
                "tables and laws",
                "all hold",
                RowKind::Correctness,
                &error,
            )];
        }
    };
    let mut rows: Vec<_> = TABLES
        .iter()
        .map(|(directory, name)| table_row(directory, name, tested.passed))
        .collect();
    rows.push(at_least(
        &tested,
        "table: proxy grammar",
        tested.number("table grammar:", "rows"),
        "vectors",
        60,
    ));
    rows.push(at_least(
        &tested,
        "table: image file",
        Some(tested.count("images::")),
        "tests",
        5,
    ));
    rows.push(at_least(
        &tested,
        "table: annotations (level, spelling, type, ports)",
        Some(tested.count("advice::")),
        "tests",
        10,
    ));
    let wanted = if quick { 1_000 } else { 10_000 };
    let cases = tested.number("cases: LawCounts", "cases:");
    rows.push(at_least(
        &tested,
        "laws over generated manifests (block: bytes, flow: objects)",
        cases,
        "cases",
        wanted,
    ));
    rows.push(at_least(
        &tested,
        "laws over the corpus",
        tested.number("corpus: ", "manifests"),
        "manifests",
        200,
    ));
    rows.push(at_least(
        &tested,
        "runs over the corpus",
        tested.number("corpus: ", "runs"),
        "runs",
        1_600,
    ));
    rows.push(at_least(
        &tested,
        "convergence over the corpus",
        tested.number("corpus convergence: ", "pairs"),
        "pairs of options",
        1_600,
    ));
    rows
}

fn table_row(directory: &str, name: &str, passed: bool) -> Row {
    let path = repository_root()
        .join("crates/inject/tests/tables")
        .join(directory);
    let count = inputs(&path).unwrap_or_default();
    let figure = format!(
        "{count} inputs, {}",
        if passed {
            "all equal"
        } else {
            "a test failed: see above"
        }
    );
    Row::correct(
        &format!("table: {name}"),
        figure,
        "all bytes as expected",
        passed && count > 0,
    )
}

fn inputs(directory: &Path) -> anyhow::Result<usize> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<anyhow::Result<_>>()?;
    Ok(names
        .iter()
        .filter(|name| name.to_string_lossy().contains(".in."))
        .count())
}

fn at_least(tested: &TestRun, claim: &str, count: Option<usize>, unit: &str, wanted: usize) -> Row {
    let count = count.unwrap_or_default();
    let suffix = if tested.passed {
        ""
    } else {
        ", a test failed: see above"
    };
    let figure = format!("{count} {unit}{suffix}");
    Row::correct(
        claim,
        figure,
        &format!("at least {wanted}, all hold"),
        tested.passed && count >= wanted,
    )
}

/// A test program of the binary, its claim, and the minimum number of tests.
struct CommandClaim {
    program: ProgramName,
    claim: &'static str,
    min_tests: usize,
}

const COMMANDS: &[CommandClaim] = &[
    CommandClaim {
        program: command_test("generate"),
        claim: "command line: exit codes, streams, all or nothing",
        min_tests: 20,
    },
    CommandClaim {
        program: command_test("krm"),
        claim: "KRM function",
        min_tests: 5,
    },
    CommandClaim {
        program: command_test("helm"),
        claim: "Helm post-renderer, with the real Helm 3 and 4",
        min_tests: 4,
    },
];

const fn engine_test(target: &'static str) -> ProgramName {
    ProgramName {
        package: "mainstay-inject",
        target,
    }
}

const fn command_test(target: &'static str) -> ProgramName {
    ProgramName {
        package: "mainstay",
        target,
    }
}

/// Returns the test programs that the quick proof runs.
pub(super) fn quick_programs() -> impl Iterator<Item = ProgramName> {
    let commands = COMMANDS.iter().map(|command| command.program);
    ENGINE.iter().copied().chain(commands)
}

fn command_rows() -> Vec<Row> {
    let programs = match programs::build() {
        Ok(programs) => programs,
        Err(error) => {
            return vec![Row::not_measured(
                "command line",
                "all hold",
                RowKind::Correctness,
                &error,
            )];
        }
    };
    COMMANDS.iter().map(|command| command.row(&programs)).collect()
}

impl CommandClaim {
    fn row(&self, programs: &Programs) -> Row {
        match programs.run(&[self.program], |_| ()).map(TestRun::from) {
            Ok(tested) => {
                let passed = tested
                    .text
                    .lines()
                    .filter_map(|line| line.strip_prefix("test result: ok. "))
                    .next_back();
                let count = passed.and_then(|line| line.split(' ').next()?.parse().ok());
                at_least(&tested, self.claim, count, "tests", self.min_tests)
            }
            Err(error) => Row::not_measured(self.claim, "all hold", RowKind::Correctness, &error),
        }
    }
}

fn bench_rows() -> Vec<Row> {
    match bench::measure(&bench::Arguments::for_area(bench::INJECTION)) {
        Ok(report) => measured_rows(&report),
        Err(error) => vec![Row::not_measured(
            "speed of generate",
            "the goals of `cargo xtask bench --area injection`",
            RowKind::Performance,
            &error,
        )],
    }
}
