//! Proof of workload migration: each row is derived from the output of the tests and examples that verify it.

mod scale;

use super::operator::list::Scenarios;
use super::operator::session::{Session, share};
use super::operator::{Claim, Ran, matrix, row};
use super::row::{Row, RowKind};

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let units = Session::for_libraries();
    let simulated = simulated(quick);
    let real = real(quick);
    let pages = Session::run(
        &[
            "test",
            "--workspace",
            "--test",
            "browser",
            "--test",
            "real_page",
            "--",
            "--show-output",
        ],
        &[],
    );
    let mut rows = scenario_rows(&units, &simulated, &real);
    rows.extend(CLAIMS.iter().map(|claim| claim.row(&simulated, &real)));
    rows.extend(scale::rows(quick));
    rows.push(matrix(
        "faults at every call of 7 migrations, 10 invariants after every step",
        &FAULT_SCENARIOS,
        &simulated,
        quick,
    ));
    rows.push(matrix(
        "faults at some calls of 7 migrations, on a real API server, 10 invariants checked on all writes",
        &FAULT_SCENARIOS,
        &real,
        true,
    ));
    rows.push(test_row(
        "each of these invariants deliberately violated, on a real API server",
        "all detected",
        ("faults::violations_are_detected", &real),
    ));
    rows.push(test_row(
        "one planted planner mutant per invariant",
        "all caught",
        ("every_invariant_catches_its_mutant", &units),
    ));
    rows.push(scale::rehearsal(quick));
    rows.push(test_row(
        "rehearsal of a real cluster, verified with the audit log",
        "only list requests, no Secret",
        ("rehearsal::a_real_cluster_is_only_read", &real),
    ));
    rows.push(page_row(&pages));
    rows
}

/// Runs the simulator's migration tests; the full proof uses the release profile.
fn simulated(quick: bool) -> Ran {
    let base = ["test", "--workspace", "--test", "simulated"];
    let profile: &[&str] = if quick { &[] } else { &["--release"] };
    let rest = ["--", "--show-output", "migration", "scale", "moves_"];
    Session::run(&[&base, profile, &rest].concat(), share(quick))
}

/// Runs the same tests on a real API server, where the full proof is a larger sample.
fn real(quick: bool) -> Ran {
    let base = ["test", "--workspace", "--test", "real", "--"];
    let modules = ["migration", "kill", "rehearsal", "faults::moves"];
    Session::run(&[base.as_slice(), &modules].concat(), share(quick))
}

/// Returns one row per list of the proposal's test plan.
fn scenario_rows(units: &Ran, simulated: &Ran, real: &Ran) -> Vec<Row> {
    let lists = match Scenarios::read("migration.txt") {
        Ok(lists) => lists,
        Err(error) => {
            return vec![Row::not_measured(
                "tests of the proposal",
                "a list",
                RowKind::Correctness,
                &error,
            )];
        }
    };
    vec![
        row("the proposal's unit list", &lists.unit, &[units, simulated]),
        row(
            "the proposal's integration and end-to-end lists, on the simulator",
            &lists.integration,
            &[simulated],
        ),
        row(
            "the proposal's integration and end-to-end lists, on a real API server with two real istiods",
            &lists.integration,
            // The test of the measuring code itself runs without a server.
            &[real, simulated],
        ),
        test_row(
            "the decision matrix, row by row",
            "all rows",
            ("the_maximum_version_limits_the_migration", units),
        ),
    ]
}

/// Returns a row that one test verifies.
fn test_row(claim: &str, goal: &str, (test, ran): (&str, &Ran)) -> Row {
    match ran {
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, error),
        Ok(ran) => {
            let passed = ran.passed(test);
            let figure = if passed { "passed" } else { "did not pass" };
            Row::correct(claim, figure.into(), goal, passed)
        }
    }
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "scenarios in which two real istiods inject through their own webhooks",
        goal: "at least 6",
        test: "migration::flow::a_version_change_migrates_every_kind_of_label",
        line: "migration real istiods: ",
        real: true,
    },
    Claim {
        text: "100 namespaces, 200 Deployments on the simulator",
        goal: "≤ 1.05 of ideal, 1 patch each, statuses ≤ 2 per batch + 1 per workload, no 429",
        test: "scale::two_hundred_workloads_in_a_hundred_namespaces",
        line: "migration scale 200: ",
        real: false,
    },
    Claim {
        text: "100 namespaces, 200 Deployments on a real API server, the operator as a process",
        goal: "1 patch each, statuses as above, memory flat, no 429",
        test: "kill::two_hundred_workloads",
        line: "migration real 200: ",
        real: true,
    },
    Claim {
        text: "SIGKILL of the operator at 50 points while 100 workloads move on a real API server",
        goal: "nothing restarted twice, counters right, completes",
        test: "kill::nothing_is_restarted_twice",
        line: "migration kills: ",
        real: true,
    },
];

/// Scenarios of the fault matrix.
const FAULT_SCENARIOS: [&str; 7] = [
    "moves_by_namespace",
    "moves_by_template",
    "moves_by_tag",
    "moves_but_one_fails",
    "moves_until_one_fails",
    "moves_elsewhere_halfway",
    "moves_from_several",
];

/// Returns the row of the rehearsal report in a real browser.
fn page_row(pages: &Ran) -> Row {
    let (text, goal) = (
        "the report of a rehearsal in a headless Chromium",
        "all tests pass",
    );
    match pages {
        Err(error) => Row::not_measured(text, goal, RowKind::Correctness, error),
        Ok(ran) => {
            let (passed, failed) = ran.counts();
            let figure = format!("{passed} passed, {failed} failed");
            Row::correct(text, figure, goal, passed > 0 && failed == 0)
        }
    }
}
