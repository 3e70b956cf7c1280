//! Proof of application delivery: one row per claim. A claim without a test is "not measured", which does not
//! pass.

mod claims;
mod comparison;
mod real;

use std::process::Stdio;

use anyhow::{Context, anyhow, bail};
use mainstay_testkit::repository_root;

use claims::CLAIMS;

use super::operator::session::Session;
use super::operator::{Ran, matrix};
use super::row::{Row, RowKind};
use crate::build::{self, Profile};
use crate::programs::{self, ProgramName, TestRun};

/// Scenarios of the fault matrix.
const FAULT_SCENARIOS: [&str; 9] = [
    "install",
    "replace_revision",
    "shift_weights",
    "leave_a_cluster",
    "rolling",
    "deletion",
    "waves_over_five_clusters",
    "rotate_a_token",
    "another_clock",
];

/// Cases of each property in the full proof.
const FULL_CASES: &str = "10000";

/// Longest accepted planning time, in milliseconds.
const MAX_PLAN_MILLIS: f64 = 20.0;

/// Results of the programs with the tests of the claims.
struct Sessions {
    planner: Ran,
    fleet: Ran,
    memory: Ran,
    gate: Ran,
    rules: Ran,
    commands: Ran,
}

/// Test programs by the group of claims that they verify.
const PROGRAMS: &[(Program, &[ProgramName])] = &[
    (
        Program::Planner,
        &[
            rollout_program("golden"),
            rollout_program("properties"),
            rollout_program("simulation"),
            rollout_program("features"),
            rollout_program("documents"),
            rollout_program("timeline"),
            rollout_program("collisions"),
            rollout_program("placement"),
            rollout_program("strategies"),
            rollout_program("weights"),
        ],
    ),
    (
        Program::Fleet,
        &[ProgramName {
            package: "mainstay-operator",
            target: "rollout_fleet",
        }],
    ),
    (
        Program::Memory,
        &[ProgramName {
            package: "mainstay-operator",
            target: "fleet_memory",
        }],
    ),
    (
        Program::Gate,
        &[ProgramName {
            package: "mainstay-cluster",
            target: "kubeconfigs",
        }],
    ),
    (
        Program::Rules,
        &[ProgramName {
            package: "mainstay-cluster",
            target: "delivery",
        }],
    ),
    (
        Program::Commands,
        &[ProgramName {
            package: "mainstay",
            target: "rollout",
        }],
    ),
];

const fn rollout_program(target: &'static str) -> ProgramName {
    ProgramName {
        package: "mainstay-rollout",
        target,
    }
}

/// Returns the test programs that the quick proof runs as a whole.
pub(super) fn quick_programs() -> impl Iterator<Item = ProgramName> {
    let own = PROGRAMS.iter().flat_map(|(_, names)| names.iter().copied());
    own.chain([real::SERVERS])
}

/// Runs the programs of the quick proof with the build of the test step.
fn run_quick() -> anyhow::Result<Vec<TestRun>> {
    let names: Vec<ProgramName> = quick_programs().collect();
    let is_wanted = |program: &programs::Program| names.iter().any(|name| program.is(*name));
    // An empty filter selects all tests of a program.
    programs::build()?.run_tests(|program| if is_wanted(program) { vec![""] } else { Vec::new() })
}

/// Returns the results of some of the programs that [`run_quick`] ran.
fn quick_session(runs: &anyhow::Result<Vec<TestRun>>, names: &[ProgramName]) -> Ran {
    let runs = runs.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let own = runs.iter().filter(|run| names.iter().any(|name| run.is(*name)));
    Session::parse(own.map(|run| run.output.as_str()).collect())
}

impl Sessions {
    fn from_quick(runs: &anyhow::Result<Vec<TestRun>>) -> Self {
        let session = |wanted| {
            let own = PROGRAMS.iter().filter(|(program, _)| *program == wanted);
            let names: Vec<ProgramName> = own.flat_map(|(_, names)| names.iter().copied()).collect();
            quick_session(runs, &names)
        };
        Self {
            planner: session(Program::Planner),
            fleet: session(Program::Fleet),
            memory: session(Program::Memory),
            gate: session(Program::Gate),
            rules: session(Program::Rules),
            commands: session(Program::Commands),
        }
    }

    /// Runs all cases. The planner and the simulated clusters use the release profile.
    fn run_full() -> Self {
        let simulations = FULL_SIMULATIONS.to_string();
        let fleet = [
            ("MAINSTAY_MATRIX", "whole"),
            ("MAINSTAY_CASES", simulations.as_str()),
        ];
        Self {
            planner: run_group(
                Program::Planner,
                &["--release"],
                &[("MAINSTAY_CASES", FULL_CASES)],
            ),
            fleet: run_group(Program::Fleet, &["--release"], &fleet),
            memory: run_group(Program::Memory, &["--release"], &fleet),
            gate: run_group(Program::Gate, &[], &[]),
            rules: run_group(Program::Rules, &[], &[]),
            commands: run_group(Program::Commands, &[], &[]),
        }
    }

    fn get(&self, program: Program) -> &Ran {
        match program {
            Program::Planner => &self.planner,
            Program::Fleet => &self.fleet,
            Program::Memory => &self.memory,
            Program::Gate => &self.gate,
            Program::Rules => &self.rules,
            Program::Commands => &self.commands,
        }
    }
}

/// Builds and runs the programs of a group.
fn run_group(group: Program, profile: &[&str], environment: &[(&str, &str)]) -> Ran {
    let own = PROGRAMS.iter().filter(|(program, _)| *program == group);
    let names = own.flat_map(|(_, names)| names.iter());
    let targets: Vec<&str> = names.flat_map(|name| ["--test", name.target]).collect();
    let base = ["test", "--workspace"];
    Session::run(
        &[&base, targets.as_slice(), profile, &["--", "--show-output"]].concat(),
        environment,
    )
}

/// A group of test programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Planner,
    Fleet,
    Memory,
    Gate,
    Rules,
    Commands,
}

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let runs = quick.then(run_quick);
    let sessions = runs
        .as_ref()
        .map_or_else(Sessions::run_full, Sessions::from_quick);
    let servers = match &runs {
        Some(runs) => quick_session(runs, &[real::SERVERS]),
        None => real::run_servers(),
    };
    let mut rows: Vec<Row> = CLAIMS.iter().map(|claim| claim.row(&sessions)).collect();
    rows.push(matrix(
        "faults at every call of 9 rollouts, on up to 5 clusters",
        &FAULT_SCENARIOS,
        &sessions.fleet,
        quick,
    ));
    rows.push(simulation(&sessions.fleet, quick));
    rows.push(steady_state(&sessions.memory, quick));
    rows.push(properties(&sessions.planner, quick));
    rows.push(comparison::row(&sessions));
    rows.push(all_tests(&sessions, &servers, runs.as_ref()));
    rows.extend(real::rows(servers, quick));
    // Speed and memory are measured by the full proof, with the release profile.
    if !quick {
        rows.extend(planning_rows());
    }
    rows
}

/// Writes and memory of the controllers with many clusters.
fn steady_state(memory: &Ran, quick: bool) -> Row {
    let text = "steady state with many clusters: writes, memory of controllers and simulators";
    let (goal, clusters) = if quick {
        ("0 writes; memory reported", "8 clusters")
    } else {
        ("0 writes; memory for 100 clusters reported", "100 clusters")
    };
    match memory {
        Err(error) => Row::not_measured(text, goal, RowKind::Correctness, error),
        Ok(ran) => {
            let line = ran.after("fleet of ").unwrap_or("did not run");
            let holds = ran.passed("many_clusters_are_in_a_steady_state") && line.starts_with(clusters);
            Row::correct(text, line.to_owned(), goal, holds)
        }
    }
}

/// All tests of the programs, also those that no other row names.
fn all_tests(sessions: &Sessions, servers: &Ran, runs: Option<&anyhow::Result<Vec<TestRun>>>) -> Row {
    let (text, goal) = ("every test of these programs", "0 failed");
    let all = [
        &sessions.planner,
        &sessions.fleet,
        &sessions.memory,
        &sessions.gate,
        &sessions.rules,
        &sessions.commands,
        servers,
    ];
    let (mut passed, mut failed) = (0, 0);
    for ran in all {
        match ran {
            Ok(session) => {
                let (good, bad) = session.counts();
                passed += good;
                failed += bad;
            }
            Err(error) => return Row::not_measured(text, goal, RowKind::Correctness, error),
        }
    }
    // A program that ends before its last test has no failed test.
    let ended = runs.is_none_or(|runs| runs.as_ref().is_ok_and(|runs| runs.iter().all(|run| run.passed)));
    let figure = format!("{passed} passed, {failed} failed");
    Row::correct(text, figure, goal, passed > 0 && failed == 0 && ended)
}

/// Random rollouts on simulated API servers with random faults.
fn simulation(fleet: &Ran, quick: bool) -> Row {
    let text =
        "random rollouts on 5 simulated API servers with crashes, partitions, rotations, skewed clocks";
    let goal = if quick {
        "P3, P4, P6, nothing leaked"
    } else {
        "P3, P4, P6, nothing leaked; at least 200"
    };
    let ran = match fleet {
        Ok(ran) => ran,
        Err(error) => return Row::not_measured(text, goal, RowKind::Correctness, error),
    };
    let line = ran.after("fleet simulation: ").unwrap_or("did not run");
    let rollouts: usize = line
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let least = if quick { 1 } else { FULL_SIMULATIONS };
    let holds = ran.passed(SIMULATION_TEST) && rollouts >= least;
    Row::correct(text, line.to_owned(), goal, holds)
}

/// Test with random rollouts on simulated API servers.
const SIMULATION_TEST: &str = "random_rollouts_on_five_api_servers_survive_faults";

/// Number of random rollouts in the full proof.
const FULL_SIMULATIONS: usize = 200;

/// Returns the names of all tests that the rows refer to.
#[cfg(test)]
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    let claims = CLAIMS.iter().flat_map(|claim| claim.tests.iter().copied());
    let named = claims.chain(PROPERTY_TESTS).chain(FAULT_SCENARIOS);
    named.chain([SIMULATION_TEST]).chain(real::test_names())
}

/// Properties P1 to P11 with the smallest number of cases of any of them.
fn properties(planner: &Ran, quick: bool) -> Row {
    let text = "properties P1 to P11";
    let goal = if quick {
        "a sample of cases each"
    } else {
        "10,000 cases each"
    };
    let ran = match planner {
        Ok(ran) => ran,
        Err(error) => return Row::not_measured(text, goal, RowKind::Correctness, error),
    };
    let least: usize = if quick {
        1
    } else {
        FULL_CASES.parse().unwrap_or(usize::MAX)
    };
    let cases: Vec<usize> = (1..=11)
        .filter_map(|number| {
            let line = ran.after(&format!("rollout property P{number}: "))?;
            line.split(' ').next()?.parse().ok()
        })
        .collect();
    let passed = PROPERTY_TESTS.iter().filter(|test| ran.passed(test)).count();
    let smallest = cases.iter().min().copied().unwrap_or_default();
    let figure = format!(
        "{} properties, at least {smallest} cases each; {passed} of {} tests passed",
        cases.len(),
        PROPERTY_TESTS.len()
    );
    let holds = cases.len() == 11 && smallest >= least && passed == PROPERTY_TESTS.len();
    Row::correct(text, figure, goal, holds)
}

/// Tests that check P1 to P11.
const PROPERTY_TESTS: [&str; 8] = [
    "division_is_complete_and_monotone",
    "steps_are_monotone_and_reach_the_target",
    "weights_sum_to_100_over_available_revisions",
    "rendezvous_hashing_moves_only_necessary_keys",
    "names_are_valid_and_distinct",
    "rollouts_survive_faults",
    "aborts_of_random_rollouts_keep_capacity",
    "waves_limit_concurrent_clusters",
];

/// Time and memory of planning 100 clusters, 20 components and 3 revisions, from the example `plan`.
fn planning_rows() -> Vec<Row> {
    let text = "planning 100 clusters x 20 components x 3 revisions, slowest plan";
    let goal = "at most 20 ms";
    let memory = "memory of planning for 100 clusters";
    match run_example() {
        Err(error) => vec![
            Row::not_measured(text, goal, RowKind::Performance, &error),
            Row::not_measured(memory, "reported", RowKind::Performance, &error),
        ],
        Ok((slowest, peak)) => vec![
            Row::fast(text, format!("{slowest:.1} ms"), goal, slowest <= MAX_PLAN_MILLIS),
            Row::fast(memory, peak, "reported", true),
        ],
    }
}

fn run_example() -> anyhow::Result<(f64, String)> {
    let output = build::cargo()
        .args([
            "run",
            "--profile",
            Profile::Dist.name(),
            "--quiet",
            "--package",
            "mainstay-rollout",
            "--example",
            "plan",
        ])
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("running the example plan")?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    let times = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| word.trim_end_matches(',') == "ms")?;
        words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
    });
    let slowest = times.fold(f64::NAN, f64::max);
    if slowest.is_nan() {
        bail!("the example printed no time");
    }
    let peak = text
        .lines()
        .find_map(|line| line.strip_prefix("rollout plan, peak memory: "));
    let peak = peak.context("the example printed no memory")?;
    Ok((slowest, peak.to_owned()))
}
