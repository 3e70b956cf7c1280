//! Rows about what a new user reads: messages of mistakes, the commands of the pages, the book, the picture
//! and the rehearsal's report.

use anyhow::{Context as _, anyhow, ensure};

use crate::programs::{self, ProgramName, Programs};
use crate::prove::{Row, RowKind};

/// A claim that one test program verifies.
struct Claim {
    text: &'static str,
    goal: &'static str,
    program: ProgramName,
    /// Part of the names of its tests; empty for all of them.
    test: &'static str,
    /// Part of the line with the figure; without one the figure is the number of tests.
    figure: &'static str,
}

const fn program(package: &'static str, target: &'static str) -> ProgramName {
    ProgramName { package, target }
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "typical mistakes name their remedy",
        goal: "60 or more, one stored message each",
        program: program("mainstay", "mistakes"),
        test: "",
        figure: "mistakes name their remedy",
    },
    Claim {
        text: "shell blocks of README and docs are executed",
        goal: "N of N, or marked with a reason",
        program: program("mainstay", "book"),
        test: "",
        figure: "shell blocks executed",
    },
    Claim {
        text: "progress fits 60, 80 and 140 columns",
        goal: "no line reaches the last column",
        program: program("mainstay", "mainstay"),
        test: "ui::progress",
        figure: "",
    },
    Claim {
        text: "progress fits pseudo terminals; no colors with NO_COLOR",
        goal: "no bar reaches the last column",
        program: program("mainstay", "terminal"),
        test: "",
        figure: "",
    },
    Claim {
        text: "the README's picture shows the current demo",
        goal: "every line",
        program: program("mainstay", "demo"),
        test: "the_picture_in_the_readme",
        figure: "",
    },
    Claim {
        text: "rehearsal: exit codes, stdin, footer, JSON schema (checked by the real Helm)",
        goal: "all tests pass",
        program: program("mainstay", "rehearse"),
        test: "",
        figure: "",
    },
    Claim {
        text: "dashboard and alerts use metrics and labels that exist",
        goal: "every name, and every metric is shown",
        program: program("mainstay-operator", "mainstay_operator"),
        test: "dashboard_and_alerts",
        figure: "",
    },
];

/// Returns the rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let programs = programs::build();
    let claims = CLAIMS.iter().chain((!quick).then_some(&BROWSER));
    let mut rows: Vec<Row> = claims.map(|claim| claim.row(&programs)).collect();
    rows.push(book(&programs));
    rows.extend((!quick).then(screenshots));
    rows
}

const BROWSER: Claim = Claim {
    text: "the report in a browser: desktop, phone, dark, paper",
    goal: "nothing scrolls sideways; readable colors",
    program: program("mainstay-rehearsal", "browser"),
    test: "",
    figure: "",
};

/// Builds the book, which fails on a dead link.
fn book(programs: &anyhow::Result<Programs>) -> Row {
    let (claim, goal) = ("the book is built by mdBook", "0 dead links");
    let built = match programs {
        Ok(programs) => crate::docs::build(&programs.mainstay),
        Err(error) => Err(anyhow!("{error:#}")),
    };
    match built {
        Ok(pages) => Row::correct(claim, format!("{pages} pages, 0 dead links"), goal, true),
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}

/// Opens the pages of the built book in a browser.
fn screenshots() -> Row {
    let claim = "pages of the book in a browser: desktop, phone, light, dark";
    let goal = "nothing scrolls sideways; no errors; all images";
    let directory = mainstay_testkit::repository_root().join("target/docs/screenshots");
    match crate::docs::take_screenshots(&directory) {
        Ok(images) => Row::correct(claim, format!("{images} screenshots without defects"), goal, true),
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}

impl Claim {
    fn row(&self, programs: &anyhow::Result<Programs>) -> Row {
        let measured = match programs {
            Ok(programs) => self.measure(programs),
            Err(error) => Err(anyhow!("{error:#}")),
        };
        match measured {
            Ok((figure, holds)) => Row::correct(self.text, figure, self.goal, holds),
            Err(error) => Row::not_measured(self.text, self.goal, RowKind::Correctness, &error),
        }
    }

    /// Runs the tests; returns the figure and whether all of them passed.
    fn measure(&self, programs: &Programs) -> anyhow::Result<(String, bool)> {
        let run = programs.find(self.program)?.run(|command| {
            // Includes the slow pages of the book.
            command.env("MAINSTAY_BOOK", "all");
            command.args(["--show-output", self.test]);
        })?;
        let result = run.output.lines().find(|line| line.starts_with("test result: "));
        let result = result.context("the tests did not run")?;
        ensure!(!result.contains(" 0 passed; 0 failed"), "no test was found");
        let printed = run
            .output
            .lines()
            .find(|line| !self.figure.is_empty() && line.contains(self.figure));
        let count = result
            .split(". ")
            .nth(1)
            .and_then(|counts| counts.split(';').next());
        let count = format!("tests: {}", count.unwrap_or(result));
        if !run.passed {
            println!("{}", run.output);
        }
        Ok((printed.map_or(count, str::to_owned), run.passed))
    }
}
