//! Proof of the operator: each row is derived from the output of the tests and examples that verify it.

mod bench;
pub(super) mod list;
pub(super) mod session;

use super::row::{Row, RowKind};
use list::Scenarios;
use session::Session;

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let units = Session::for_libraries();
    let simulated = Session::simulated(quick);
    let real = Session::real(quick);
    rows.extend(scenario_rows(&units, &simulated, &real));
    rows.extend(CLAIMS.iter().map(|claim| claim.row(&simulated, &real)));
    rows.push(planning(&simulated));
    rows.push(matrix(
        "faults at every call of 8 scenarios",
        &FAULT_SCENARIOS,
        &simulated,
        quick,
    ));
    rows.push(matrix(
        "faults at some calls of 8 scenarios, on a real API server",
        &FAULT_SCENARIOS,
        &real,
        true,
    ));
    rows.extend(bench::rows(quick));
    rows
}

pub(super) type Ran = anyhow::Result<Session>;

/// Returns the row of a list: each of its lines needs a test that passed in one of `sessions`.
pub(super) fn row(text: &str, list: &list::List, sessions: &[&Ran]) -> Row {
    let passed = |test: &list::Test| {
        sessions
            .iter()
            .flat_map(|ran| ran.iter())
            .any(|ran| ran.passed(&test.name))
    };
    let missing: Vec<&str> = list
        .lines
        .iter()
        .filter(|line| !line.tests.iter().all(passed))
        .map(|line| line.text.as_str())
        .collect();
    for line in &missing {
        println!("not shown: {line}");
    }
    let (all, tests) = (list.lines.len(), list.tests());
    let figure = format!("{} of {all} lines, {tests} tests", all - missing.len());
    Row::correct(text, figure, "all", missing.is_empty())
}

/// Returns one row per list of the contract.
fn scenario_rows(units: &Ran, simulated: &Ran, real: &Ran) -> Vec<Row> {
    let lists = match Scenarios::read("scenarios.txt") {
        Ok(lists) => lists,
        Err(error) => {
            return vec![Row::not_measured(
                "scenarios of the contract",
                "a list",
                RowKind::Correctness,
                &error,
            )];
        }
    };
    let (unit, integration) = (&lists.unit, &lists.integration);
    vec![
        row("scenarios of the contract, unit list", unit, &[units, simulated]),
        row(
            "scenarios of the contract, integration list, on the simulator",
            integration,
            &[simulated],
        ),
        row(
            "scenarios of the contract, integration list, on a real API server",
            integration,
            &[real],
        ),
    ]
}

/// A claim that one test verifies, on the simulator or on a real API server.
pub(super) struct Claim {
    pub(super) text: &'static str,
    pub(super) goal: &'static str,
    pub(super) test: &'static str,
    /// Prefix of the output line with the figure.
    pub(super) line: &'static str,
    pub(super) real: bool,
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "takeover of what Helm and the Sail Operator installed, the operator running",
        goal: "0 writes to Deployments, pods untouched",
        test: "takeover::a_takeover_restarts_nothing",
        line: "takeover: ",
        real: true,
    },
    Claim {
        text: "a reconcile with nothing to do",
        goal: "0 writes, 0 reads",
        test: "quiet::a_full_pass_without_changes_reads_and_writes_nothing",
        line: "quiet passes: ",
        real: false,
    },
    Claim {
        text: "a restart with nothing to do",
        goal: "0 writes",
        test: "quiet::a_restart_with_nothing_to_do_writes_nothing",
        line: "quiet restart: ",
        real: false,
    },
    Claim {
        text: "pod and namespace events that change nothing",
        goal: "0 calls",
        test: "quiet::events_that_change_nothing_cause_no_call",
        line: "quiet events: ",
        real: false,
    },
    Claim {
        text: "24 virtual hours with churn",
        goal: "flat",
        test: "quiet::writes_per_hour_stay_constant_during_churn",
        line: "quiet day: ",
        real: false,
    },
    Claim {
        text: "bad input on the simulator: every field",
        goal: "rejected, or a condition with a reason; other objects unaffected",
        test: "input::invalid_values_in_every_field",
        line: "bad input: ",
        real: false,
    },
    Claim {
        text: "bad input on a real API server: a sample",
        goal: "rejected, or a condition with a reason; other objects unaffected",
        test: "input::sampled_invalid_objects",
        line: "bad input: ",
        real: true,
    },
];

impl Claim {
    pub(super) fn row(&self, simulated: &Ran, real: &Ran) -> Row {
        let ran = if self.real { real } else { simulated };
        match ran {
            Err(error) => Row::not_measured(self.text, self.goal, RowKind::Correctness, error),
            Ok(ran) => {
                let figure = ran.after(self.line).unwrap_or("did not run").to_owned();
                Row::correct(self.text, figure, self.goal, ran.passed(self.test))
            }
        }
    }
}

/// Parses the line `quiet planning: A ms the slowest, B ms the middle one, of C plans`.
fn planning(simulated: &Ran) -> Row {
    let (text, goal) = ("planning when there is nothing to do", "median ≤ 1 ms");
    let ran = match simulated {
        Ok(ran) => ran,
        Err(error) => return Row::not_measured(text, goal, RowKind::Performance, error),
    };
    let figure = ran.after("quiet planning: ").unwrap_or("did not run");
    let middle = figure.split(' ').nth(4).and_then(|word| word.parse::<f64>().ok());
    let is_met = middle.is_some_and(|middle| middle <= 1.0);
    Row::fast(text, figure.to_owned(), goal, is_met)
}

/// Scenarios of the fault matrix.
const FAULT_SCENARIOS: [&str; 10] = [
    "install",
    "in_place_upgrade",
    "revision_upgrade",
    "tag_move",
    "prune",
    "name_clash",
    "deletion",
    "takeover",
    "revision_takeover",
    "rejected_tag",
];

/// Sums the lines `matrix SCENARIO: C calls, R runs, E as without faults`.
pub(super) fn matrix(text: &str, scenarios: &[&str], session: &Ran, is_sample: bool) -> Row {
    let goal = if is_sample {
        "a sample, all as without faults"
    } else {
        "all runs as without faults"
    };
    let ran = match session {
        Ok(ran) => ran,
        Err(error) => return Row::not_measured(text, goal, RowKind::Correctness, error),
    };
    let (mut calls, mut runs, mut equal) = (0, 0, 0);
    for scenario in scenarios {
        let numbers: Vec<usize> = ran
            .after(&format!("matrix {scenario}: "))
            .into_iter()
            .flat_map(|line| line.split([' ', ',']).filter_map(|word| word.parse().ok()))
            .collect();
        if let [c, r, e] = numbers.as_slice() {
            calls += c;
            runs += r;
            equal += e;
        }
    }
    let passed = scenarios
        .iter()
        .all(|scenario| ran.passed(&format!("faults::{scenario}")));
    let figure = format!("{runs} runs over {calls} calls, {equal} as without faults");
    Row::correct(text, figure, goal, passed && runs > 0)
}
