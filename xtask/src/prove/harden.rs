//! Proof of robustness: hostile input, unusual clusters and third-party tools. One row per class of defect.
//!
//! To add a row, add an [`Item`] to the table of its area. A test may print `harden KEY: FIGURE`, with the
//! item's key; otherwise the figure is the number of tests that passed.

mod generate;
mod migration;
mod operator;
mod rendering;
mod sandbox;
mod security;

use std::collections::BTreeSet;
use std::fmt;

use anyhow::anyhow;

use super::operator::Ran;
use super::operator::session::Session;
use super::row::{Row, RowKind};

/// A class of defect and the tests that would find it.
struct Item {
    /// Short name in the output line of a test, such as `back-off`.
    key: &'static str,
    claim: &'static str,
    goal: &'static str,
    tests: &'static [Test],
}

/// A test that decides an item.
#[derive(Clone, Copy)]
enum Test {
    /// A test of an integration test target; target names are unique in the workspace.
    Integration {
        target: &'static str,
        name: &'static str,
    },
    /// A unit test of a package's library or binary.
    Unit {
        package: &'static str,
        name: &'static str,
    },
}

const fn integration(target: &'static str, name: &'static str) -> Test {
    Test::Integration { target, name }
}

const fn unit(package: &'static str, name: &'static str) -> Test {
    Test::Unit { package, name }
}

/// Tables of all areas, in the order of the rows.
const AREAS: &[&[Item]] = &[
    operator::ITEMS,
    migration::ITEMS,
    security::ITEMS,
    generate::ITEMS,
    rendering::ITEMS,
    sandbox::ITEMS,
];

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let items: Vec<&Item> = AREAS.iter().copied().flatten().collect();
    let sessions = Sessions::run(&items);
    let mut rows: Vec<Row> = items.iter().map(|item| sessions.row(item)).collect();
    rows.push(security::hostile_row(quick));
    if !quick {
        rows.extend(operator::full_rows());
        rows.extend(security::full_rows());
        rows.extend(rendering::full_rows());
    }
    rows
}

/// The runs of integration and unit tests.
struct Sessions {
    integration: Ran,
    unit: Ran,
}

impl Sessions {
    /// Runs the tests with the features of the whole workspace, so that they reuse its build.
    fn run(items: &[&Item]) -> Self {
        let tests = || items.iter().flat_map(|item| item.tests);
        let targets: BTreeSet<&str> = tests().filter_map(|test| test.target()).collect();
        let targets: Vec<&str> = targets.iter().flat_map(|target| ["--test", target]).collect();
        let names = |wanted: bool| {
            let is_wanted = move |test: &&Test| test.target().is_some() == wanted;
            tests().filter(is_wanted).map(|test| test.name())
        };
        Self {
            integration: run(&targets, names(true)),
            unit: run(&["--lib", "--bins"], names(false)),
        }
    }

    fn row(&self, item: &Item) -> Row {
        let not_measured =
            |error: &anyhow::Error| Row::not_measured(item.claim, item.goal, RowKind::Correctness, error);
        if item.tests.is_empty() {
            return not_measured(&anyhow!("no test yet"));
        }
        let mut passed = 0;
        let mut printed = None;
        for test in item.tests {
            let session = match self.session(*test) {
                Ok(session) => session,
                Err(error) => return not_measured(error),
            };
            // The name may occur in several programs, such as on the simulator and on a real server.
            let has_passed = session.passed(test.name()) && !session.failed(test.name());
            if !has_passed {
                println!("not passed: {test}");
            }
            passed += usize::from(has_passed);
            printed = printed.or_else(|| session.after(&format!("harden {}: ", item.key)));
        }
        let counts = format!("{passed} of {} tests pass", item.tests.len());
        let figure = printed.map_or(counts.clone(), |printed| format!("{printed}; {counts}"));
        Row::correct(item.claim, figure, item.goal, passed == item.tests.len())
    }

    fn session(&self, test: Test) -> &Ran {
        match test {
            Test::Integration { .. } => &self.integration,
            Test::Unit { .. } => &self.unit,
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integration { target, name } => write!(f, "{name} of {target}"),
            Self::Unit { package, name } => write!(f, "{name} of {package}"),
        }
    }
}

impl Test {
    fn target(self) -> Option<&'static str> {
        match self {
            Self::Integration { target, .. } => Some(target),
            Self::Unit { .. } => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integration { name, .. } | Self::Unit { name, .. } => name,
        }
    }
}

/// Runs the tests called `names` of the selected targets.
fn run<'a>(targets: &[&'a str], names: impl Iterator<Item = &'a str>) -> Ran {
    let names: Vec<&str> = names.collect();
    if targets.is_empty() || names.is_empty() {
        return Err(anyhow!("no test yet"));
    }
    let base = ["test", "--workspace", "--quiet", "--no-fail-fast"];
    let rest = ["--", "--format=pretty", "--show-output"];
    Session::run(&[&base, targets, &rest, &names].concat(), &[])
}
