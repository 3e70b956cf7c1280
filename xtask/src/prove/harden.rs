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

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};

use super::operator::session::Session;
use super::row::{Row, RowKind};
use crate::programs::{self, Program};

/// A class of defect and the tests that would find it.
struct Item {
    /// Short name in the output line of a test, such as `back-off`.
    key: &'static str,
    claim: &'static str,
    goal: &'static str,
    /// Figure or result before the defect was fixed.
    before: &'static str,
    tests: &'static [Test],
}

/// A test that verifies an item.
#[derive(Clone, Copy, Debug)]
enum Test {
    /// A test of the integration test targets with this name.
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
    let mut rows: Vec<Row> = items
        .iter()
        .map(|item| match &sessions {
            Ok(sessions) => sessions.row(item),
            Err(error) => item.not_measured(error),
        })
        .collect();
    rows.push(security::hostile_row(quick));
    if !quick {
        rows.extend(operator::full_rows());
        rows.extend(security::full_rows());
        rows.extend(generate::full_rows());
        rows.extend(rendering::full_rows());
    }
    rows
}

/// Returns the names of all tests that the rows refer to.
#[cfg(test)]
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    let items = AREAS.iter().copied().flatten();
    items.flat_map(|item| item.tests).map(|test| test.name())
}

/// Results of the tests by name of the program that contains them.
struct Sessions(BTreeMap<String, Session>);

impl Sessions {
    /// Runs only the tests of `items`, in the programs that `cargo test --workspace` builds.
    fn run(items: &[&Item]) -> anyhow::Result<Self> {
        let tests = || items.iter().flat_map(|item| item.tests);
        let filters = |program: &Program| {
            let contained = tests().filter(|test| test.may_be_in(&program.package, &program.target));
            contained.map(|test| test.name()).collect()
        };
        let runs = programs::build()?.run_tests(filters)?;
        let sessions = runs.into_iter().map(|run| {
            let session = Session::parse(run.output).with_context(|| run.name.clone())?;
            Ok((run.name, session))
        });
        Ok(Self(sessions.collect::<anyhow::Result<_>>()?))
    }

    fn row(&self, item: &Item) -> Row {
        if item.tests.is_empty() {
            return item.not_measured(&anyhow!("no test yet"));
        }
        let failed = item.tests.iter().filter(|test| !self.passed(**test));
        let failed = failed.inspect(|test| println!("not passed: {test:?}")).count();
        let passed = item.tests.len() - failed;
        let prefix = format!("harden {}: ", item.key);
        let printed = self.0.values().find_map(|session| session.after(&prefix));
        let counts = format!("{passed} of {} tests pass", item.tests.len());
        let figure = printed.map_or(counts.clone(), |printed| format!("{printed}; {counts}"));
        let figure = format!("{figure}; before: {}", item.before);
        Row::correct(item.claim, figure, item.goal, passed == item.tests.len())
    }

    /// Whether the test passed in every program that contains it, such as on the simulator and on a real
    /// server.
    fn passed(&self, test: Test) -> bool {
        let sessions = self.0.iter().filter(|(program, _)| {
            let (package, target) = program.split_once(' ').unwrap_or_default();
            test.may_be_in(package, target)
        });
        let sessions: Vec<&Session> = sessions.map(|(_, session)| session).collect();
        sessions.iter().any(|session| session.passed(test.name()))
            && !sessions.iter().any(|session| session.failed(test.name()))
    }
}

impl Item {
    fn not_measured(&self, error: &anyhow::Error) -> Row {
        Row::not_measured(self.claim, self.goal, RowKind::Correctness, error)
    }
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Self::Integration { name, .. } | Self::Unit { name, .. } => name,
        }
    }

    /// Whether a test program may contain this test. Unit tests are in the program of the crate itself.
    fn may_be_in(self, program_package: &str, program_target: &str) -> bool {
        match self {
            Self::Integration { target, .. } => target == program_target,
            Self::Unit { package, .. } => {
                package == program_package && package.replace('-', "_") == program_target.replace('-', "_")
            }
        }
    }
}
