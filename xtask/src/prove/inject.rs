//! Proof of injection: tables, laws, corpus, fuzzing, and speed against istioctl.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use mainstay_testkit::repository_root;

use super::fuzzed;
use super::row::{Row, RowKind};
use crate::build;
use crate::inject_bench::{self, Figures, Sample};

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

fn tested(package: &str, arguments: &[&str], laws: Option<&str>) -> anyhow::Result<TestRun> {
    let mut command = build::cargo();
    command
        .args(["test", "--package", package, "--no-fail-fast"])
        .args(arguments)
        .args(["--", "--nocapture"]);
    command
        .envs(laws.map(|cases| ("LAWS", cases)))
        .current_dir(repository_root())
        .stderr(Stdio::null());
    let output = command.output().context("starting cargo test")?;
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
    let (arguments, laws): (&[&str], _) = if quick {
        (&[], None)
    } else {
        (&["--release"], Some("10000"))
    };
    let tested = match tested("mainstay-inject", arguments, laws) {
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

/// Tests of the binary: test target, claim, minimum number of tests.
const COMMANDS: [(&str, &str, usize); 3] = [
    (
        "generate",
        "command line: exit codes, streams, all or nothing",
        20,
    ),
    ("krm", "KRM function", 5),
    ("helm", "Helm post-renderer, with the real Helm 3 and 4", 4),
];

fn command_rows() -> Vec<Row> {
    let row = |(file, claim, wanted): &(&str, &str, usize)| match tested("mainstay", &["--test", file], None)
    {
        Ok(tested) => {
            let passed = tested
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("test result: ok. "))
                .next_back();
            let count = passed.and_then(|line| line.split(' ').next()?.parse().ok());
            at_least(&tested, claim, count, "tests", *wanted)
        }
        Err(error) => Row::not_measured(claim, "all hold", RowKind::Correctness, &error),
    };
    COMMANDS.iter().map(row).collect()
}

fn bench_rows() -> Vec<Row> {
    match inject_bench::measure(5) {
        Ok(figures) => compared(&figures),
        Err(error) => vec![Row::not_measured(
            "speed against istioctl kube-inject",
            "≥ 20×",
            RowKind::Performance,
            &error,
        )],
    }
}

fn compared(figures: &Figures) -> Vec<Row> {
    let size = figures.bytes as f64 / 1e6;
    let theirs = figures.istioctl;
    let ratio = |ours: f64| theirs.wall_ms / ours;
    let fast = |claim: &str, ours: Sample| {
        let figure = format!(
            "{:.0} ms, istioctl {:.0} ms: {:.1}× ({:.1}× by CPU time)",
            ours.wall_ms,
            theirs.wall_ms,
            ratio(ours.wall_ms),
            theirs.cpu_ms / ours.cpu_ms
        );
        let claim = format!("{claim} ({size:.1} MB)");
        Row::fast(&claim, figure, "≥ 20×", ratio(ours.wall_ms) >= 20.0)
    };
    let small = |claim: &str, ours: f64| {
        let figure = format!(
            "{ours:.1} MiB, istioctl {:.1} MiB for {size:.1} MB",
            theirs.peak_mib
        );
        Row::fast(claim, figure, "< 64 MiB", ours < 64.0)
    };
    vec![
        fast("1,000 manifests in one stream", figures.stream),
        fast("1,000 files in place", figures.files),
        small("peak memory, one stream", figures.stream.peak_mib),
        small("peak memory, 1,000 files", figures.files.peak_mib),
        small("peak memory, a stream ten times as long", figures.long.peak_mib),
        fast("1,000 manifests in one List", figures.list),
        small("peak memory, one List", figures.list.peak_mib),
        fast("1,000 manifests in one List of JSON", figures.json),
        small("peak memory, one List of JSON", figures.json.peak_mib),
    ]
}
