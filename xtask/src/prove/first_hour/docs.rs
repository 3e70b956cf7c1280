//! Rows about what a new user reads: messages of mistakes, the commands of the pages, the book, the picture and
//! the rehearsal's report.

use anyhow::{Context as _, ensure};

use crate::build::cargo;
use crate::prove::{Row, RowKind};

/// A claim that one test decides.
struct Claim {
    claim: &'static str,
    goal: &'static str,
    package: &'static str,
    /// Integration test target; empty for the unit tests of the package.
    target: &'static str,
    test: &'static str,
    /// Part of the line with the figure; without one the figure is the number of tests.
    figure: &'static str,
}

const CLAIMS: &[Claim] = &[
    Claim {
        claim: "typical mistakes name their remedy",
        goal: "60 or more, one stored message each",
        package: "mainstay",
        target: "mistakes",
        test: "",
        figure: "mistakes name their remedy",
    },
    Claim {
        claim: "shell blocks of README and docs are executed",
        goal: "N of N, or marked with a reason",
        package: "mainstay",
        target: "book",
        test: "",
        figure: "shell blocks executed",
    },
    Claim {
        claim: "progress fits 60, 80 and 140 columns",
        goal: "no line reaches the last column",
        package: "mainstay",
        target: "",
        test: "ui::progress",
        figure: "",
    },
    Claim {
        claim: "the README's picture shows the current demo",
        goal: "every chapter and command",
        package: "mainstay",
        target: "demo",
        test: "every_workload_is_migrated",
        figure: "",
    },
    Claim {
        claim: "rehearsal: exit codes, stdin, footer, JSON schema (checked by the real Helm)",
        goal: "all tests pass",
        package: "mainstay",
        target: "rehearse",
        test: "",
        figure: "",
    },
    Claim {
        claim: "dashboard and alerts use metrics and labels that exist",
        goal: "every name, and every metric is shown",
        package: "mainstay-operator",
        target: "",
        test: "dashboard_and_alerts",
        figure: "",
    },
];

/// Returns the rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = CLAIMS.iter().map(Claim::row).collect();
    if !quick {
        rows.push(BROWSER.row());
    }
    rows.push(book());
    rows
}

const BROWSER: Claim = Claim {
    claim: "the report in a browser: desktop, phone, dark, paper",
    goal: "nothing scrolls sideways; readable colors",
    package: "mainstay-rehearsal",
    target: "browser",
    test: "",
    figure: "",
};

/// Builds the book, which fails on a dead link.
fn book() -> Row {
    let (claim, goal) = ("the book is built by mdBook", "0 dead links");
    match crate::docs::run() {
        Ok(pages) => Row::correct(claim, format!("{pages} pages, 0 dead links"), goal, true),
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}

impl Claim {
    fn row(&self) -> Row {
        match self.measure() {
            Ok((figure, holds)) => Row::correct(self.claim, figure, self.goal, holds),
            Err(error) => Row::not_measured(self.claim, self.goal, RowKind::Correctness, &error),
        }
    }

    /// Runs the tests; returns the figure and whether all of them passed.
    fn measure(&self) -> anyhow::Result<(String, bool)> {
        let mut command = cargo();
        command.env("MAINSTAY_BOOK", "all");
        command.args(["test", "--locked", "--quiet", "-p", self.package]);
        match (self.target, self.package) {
            ("", "mainstay") => command.args(["--bin", "mainstay"]),
            ("", _) => command.arg("--lib"),
            (target, _) => command.args(["--test", target]),
        };
        command.args(["--", self.test, "--nocapture"]);
        let output = command.output().context("starting cargo test")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let passed = text.lines().find(|line| line.starts_with("test result: "));
        let passed = passed.context("the tests did not run")?;
        ensure!(!passed.contains(" 0 passed; 0 failed"), "no test was found");
        let figure = text
            .lines()
            .find(|line| !self.figure.is_empty() && line.contains(self.figure));
        let count = passed.split(". ").nth(1).unwrap_or(passed);
        let count = count.split(';').next().unwrap_or(count);
        let figure = figure.map_or_else(|| format!("{count} tests"), str::to_owned);
        if !output.status.success() {
            println!("{text}");
        }
        Ok((
            figure.replace("passed tests", "tests passed"),
            output.status.success(),
        ))
    }
}
