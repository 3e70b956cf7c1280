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
    fn run(items: &[&Item]) -> Self {
        let tests = || items.iter().flat_map(|item| item.tests);
        let (mut targets, mut packages) = (BTreeSet::new(), BTreeSet::new());
        for test in tests() {
            match test {
                Test::Integration { target, .. } => targets.insert(*target),
                Test::Unit { package, .. } => packages.insert(*package),
            };
        }
        let names = |wanted: bool| {
            let is_wanted = move |test: &&Test| matches!(test, Test::Integration { .. }) == wanted;
            tests().filter(is_wanted).map(|test| test.name())
        };
        Self {
            integration: run("--test", &targets, &["--workspace"], names(true)),
            unit: run("--package", &packages, &["--lib", "--bins"], names(false)),
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
            passed += usize::from(session.passed(test.name()));
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

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::Integration { name, .. } | Self::Unit { name, .. } => name,
        }
    }
}

/// Runs the tests called `names` of the targets or packages that `option` selects.
fn run<'a>(
    option: &'a str,
    selected: &BTreeSet<&'a str>,
    rest: &[&'a str],
    names: impl Iterator<Item = &'a str>,
) -> Ran {
    if selected.is_empty() {
        return Err(anyhow!("no test yet"));
    }
    let mut arguments = vec!["test", "--quiet", "--no-fail-fast"];
    arguments.extend(rest);
    arguments.extend(selected.iter().flat_map(|name| [option, name]));
    arguments.extend(["--", "--format=pretty", "--show-output"]);
    arguments.extend(names);
    Session::run(&arguments, &[])
}
