//! What rendering must show: takes the share to run, gives a row per claim of the rendering work.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::Context;
use mainstay_testkit::repository_root;

use super::fuzzed;
use super::row::{Rank, Row};
use crate::parity::{self, Kind};
use crate::{bench, build, hostile};

/// Everything, in the order a reader would ask.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = parity_rows(quick);
    rows.extend(differential_rows(quick));
    rows.extend(bench_rows(quick));
    rows.extend(hostile_rows());
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
            return vec![Row::broken(
                "parity with helm",
                "0 different",
                Rank::Correctness,
                &error,
            )];
        }
    };
    for difference in findings.differences.iter().take(10) {
        println!("{difference}\n");
    }
    let counted = [Kind::Output, Kind::Refusal, Kind::Corner, Kind::Function].map(|kind| {
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
    let corners = format!("{} corner charts", findings.corners);
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
        corners,
        "at least 60",
        findings.corners >= 60,
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
        Err(error) => Row::broken(claim, goal, Rank::Correctness, &error),
    }
}

/// The tests that ask Go itself, or the real helm, about random input.
const DIFFERENTIAL: &[(&str, &str)] = &[
    ("mainstay-yaml", "differential"),
    ("mainstay-template", "differential"),
    ("mainstay-sprig", "differential"),
    ("mainstay-sprig", "library"),
    ("mainstay-chart", "strvals_differential"),
    ("mainstay-chart", "random_charts"),
    ("mainstay-chart", "charts"),
];

fn differential_rows(quick: bool) -> Vec<Row> {
    match tallies(quick) {
        Ok(tallies) if tallies.is_empty() => {
            vec![Row::correct(
                "differential tests",
                "none ran".into(),
                "all equal",
                false,
            )]
        }
        Ok(tallies) => tallies
            .into_iter()
            .map(|(name, text)| differential_row(&name, text))
            .collect(),
        Err(error) => vec![Row::broken(
            "differential tests",
            "all equal",
            Rank::Correctness,
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

/// The lines `differential NAME: N run, N equal` that the tests print.
fn tallies(quick: bool) -> anyhow::Result<BTreeMap<String, String>> {
    let mut command = build::cargo();
    command.args(["test", "--quiet", "--no-fail-fast"]);
    // Few cases are done sooner by what `cargo test --workspace` has built already than something faster is built.
    command.arg(if quick { "--workspace" } else { "--release" });
    for (package, test) in DIFFERENTIAL {
        if !quick {
            command.args(["--package", package]);
        }
        command.args(["--test", test]);
    }
    command
        .args(["--", "--nocapture"])
        .current_dir(repository_root())
        .stderr(Stdio::inherit());
    command.env("MAINSTAY_CASES", if quick { "5000" } else { "60000" });
    let output = command.output().context("starting cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut tallies: BTreeMap<_, _> = text.lines().filter_map(tally).collect();
    if !output.status.success() {
        tallies.insert("cases, all tests".into(), "a test failed: see above".into());
    }
    Ok(tallies)
}

fn tally(line: &str) -> Option<(String, String)> {
    let start = line.find("differential ")?;
    let (name, counts) = line
        .get(start..)?
        .strip_prefix("differential ")?
        .split_once(": ")?;
    counts
        .ends_with(" equal")
        .then(|| (name.to_owned(), counts.to_owned()))
}

fn bench_rows(quick: bool) -> Vec<Row> {
    let figures = match bench::measure(quick) {
        Ok(figures) => figures,
        Err(error) => {
            return vec![Row::broken(
                "speed against helm",
                "10×",
                Rank::Performance,
                &error,
            )];
        }
    };
    figures
        .iter()
        .map(|figure| Row::fast(&figure.name, figure.text(), &figure.goal(), figure.met()))
        .collect()
}

fn hostile_rows() -> Vec<Row> {
    let goal = "an error, < 1 s, < 256 MiB";
    match hostile::judge_all("") {
        Ok(verdicts) => {
            for verdict in verdicts.iter().filter(|verdict| verdict.complaint.is_some()) {
                println!("{verdict}");
            }
            let bad = verdicts
                .iter()
                .filter(|verdict| verdict.complaint.is_some())
                .count();
            let figure = format!(
                "{} cases, {bad} bad, {}",
                verdicts.len(),
                hostile::worst(&verdicts)
            );
            vec![Row::correct(
                "hostile input",
                figure,
                goal,
                bad == 0 && !verdicts.is_empty(),
            )]
        }
        Err(error) => vec![Row::broken("hostile input", goal, Rank::Correctness, &error)],
    }
}
