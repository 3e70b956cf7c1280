//! Proof of rendering: parity with Helm, differential tests, hostile input and fuzzing.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::Context;
use mainstay_testkit::repository_root;

use super::fuzzed;
use super::row::{Row, RowKind};
use crate::build::{self, Profile};
use crate::hostile;
use crate::parity::{self, Kind};
use crate::programs::{self, ProgramName};

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = parity_rows(quick);
    rows.extend(differential_rows(quick));
    if !quick {
        rows.push(hostile_row());
    }
    rows.extend(fuzzed::rows(
        |target| !target.starts_with("inject"),
        "no crash",
        quick,
    ));
    rows
}

fn parity_rows(quick: bool) -> Vec<Row> {
    let findings = match parity::find(&parity::Arguments {
        quick,
        ..parity::Arguments::default()
    }) {
        Ok(findings) => findings,
        Err(error) => {
            return vec![Row::not_measured(
                "parity with helm",
                "0 different",
                RowKind::Correctness,
                &error,
            )];
        }
    };
    for difference in findings.differences.iter().take(10) {
        println!("{difference}\n");
    }
    let counted = [Kind::Output, Kind::Rejection, Kind::EdgeCase, Kind::Function].map(|kind| {
        let count = findings.counts.get(&kind).copied().unwrap_or_default();
        let figure = format!("{} compared, {} different", count.run, count.different);
        Row::correct(
            &kind.to_string(),
            figure,
            "0 different",
            count.run > 0 && count.different == 0,
        )
    });
    let sets = format!(
        "{} charts, at least {} value sets each",
        findings.charts, findings.fewest_sets
    );
    let edge_cases = format!("{} edge-case charts", findings.edge_cases);
    let mut rows = Vec::from(counted);
    rows.push(Row::correct(
        "value sets per chart",
        sets,
        "at least 12",
        findings.fewest_sets >= 12,
    ));
    rows.push(shapes_row());
    rows.push(Row::correct(
        "charts of our own",
        edge_cases,
        "at least 60",
        findings.edge_cases >= 60,
    ));
    rows
}

fn shapes_row() -> Row {
    let (claim, goal) = ("argument shapes per Sprig function", "at least 3");
    let functions = mainstay_sprig::functions();
    match parity::fewest_shapes(&repository_root(), functions.iter().map(|function| function.name)) {
        Ok((fewest, name)) => {
            let figure = format!("{} functions, at least {fewest} each ({name})", functions.len());
            Row::correct(claim, figure, goal, fewest >= 3)
        }
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}

/// Tests that compare random input with Go or with the real helm.
pub(super) const DIFFERENTIAL: &[ProgramName] = &[
    ProgramName {
        package: "mainstay-yaml",
        target: "differential",
    },
    ProgramName {
        package: "mainstay-template",
        target: "differential",
    },
    ProgramName {
        package: "mainstay-sprig",
        target: "differential",
    },
    ProgramName {
        package: "mainstay-sprig",
        target: "library",
    },
    ProgramName {
        package: "mainstay-chart",
        target: "strvals_differential",
    },
    ProgramName {
        package: "mainstay-chart",
        target: "random_charts",
    },
    ProgramName {
        package: "mainstay-chart",
        target: "charts",
    },
];

/// Random cases per differential test in the quick proof.
const QUICK_CASES: &str = "5000";

fn differential_rows(quick: bool) -> Vec<Row> {
    match count_lines(quick) {
        Ok(lines) if lines.is_empty() => {
            vec![Row::correct(
                "differential tests",
                "none ran".into(),
                "all equal",
                false,
            )]
        }
        Ok(lines) => lines
            .into_iter()
            .map(|(name, text)| differential_row(&name, text))
            .collect(),
        Err(error) => vec![Row::not_measured(
            "differential tests",
            "all equal",
            RowKind::Correctness,
            &error,
        )],
    }
}

fn differential_row(name: &str, text: String) -> Row {
    let count = |word: &str| {
        let mut parts = text.split(", ").filter_map(|part| part.strip_suffix(word));
        parts
            .next()
            .and_then(|number| number.trim().parse::<usize>().ok())
    };
    let equal = count("run").is_some_and(|run| run > 0) && count("run") == count("equal");
    Row::correct(&format!("differential: {name}"), text, "all equal", equal)
}

/// Returns the lines `differential NAME: N run, N equal` that the tests print.
fn count_lines(quick: bool) -> anyhow::Result<BTreeMap<String, String>> {
    let run = if quick { quick_run()? } else { full_run()? };
    let mut lines: BTreeMap<_, _> = run.text.lines().filter_map(parse_count_line).collect();
    if !run.passed {
        lines.insert("cases, all tests".into(), "a test failed: see above".into());
    }
    Ok(lines)
}

/// Output of the differential tests.
struct DifferentialRun {
    text: String,
    passed: bool,
}

fn quick_run() -> anyhow::Result<DifferentialRun> {
    let runs = programs::build()?.run(DIFFERENTIAL, |command| {
        command.arg("--nocapture").env("MAINSTAY_CASES", QUICK_CASES);
    })?;
    Ok(DifferentialRun {
        text: runs.iter().map(|run| run.output.as_str()).collect(),
        passed: runs.iter().all(|run| run.passed),
    })
}

fn full_run() -> anyhow::Result<DifferentialRun> {
    let mut command = build::cargo();
    command.args(["test", "--quiet", "--no-fail-fast", "--release"]);
    for name in DIFFERENTIAL {
        command.args(["--package", name.package, "--test", name.target]);
    }
    let output = command
        .args(["--", "--nocapture"])
        .env("MAINSTAY_CASES", "60000")
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo test")?;
    Ok(DifferentialRun {
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        passed: output.status.success(),
    })
}

fn parse_count_line(line: &str) -> Option<(String, String)> {
    let start = line.find("differential ")?;
    let (name, counts) = line
        .get(start..)?
        .strip_prefix("differential ")?
        .split_once(": ")?;
    counts
        .ends_with(" equal")
        .then(|| (name.to_owned(), counts.to_owned()))
}

fn hostile_row() -> Row {
    // The limits apply to an optimized build.
    let results = hostile::run_all("", Profile::Release);
    super::hostile::row("hostile input", "an error, < 1 s, < 256 MiB", 1, results)
}
