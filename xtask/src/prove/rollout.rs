//! Proof of application delivery: one row per claim. A claim without a test is "not measured", which does not
//! pass.

mod comparison;
mod real;

use std::process::Stdio;

use anyhow::{Context, anyhow, bail};
use mainstay_testkit::repository_root;

use super::operator::session::{Session, share};
use super::operator::{Ran, matrix};
use super::row::{Row, RowKind};
use crate::build::{self, Profile};

/// Scenarios of the fault matrix.
const FAULT_SCENARIOS: [&str; 6] = [
    "install",
    "replace_revision",
    "shift_weights",
    "leave_a_cluster",
    "rolling",
    "deletion",
];

/// Cases of each property in the full proof.
const FULL_CASES: &str = "10000";

/// Longest accepted planning time, in milliseconds.
const MAX_PLAN_MILLIS: f64 = 20.0;

/// Results of the programs with the tests of the claims.
struct Sessions {
    planner: Ran,
    fleet: Ran,
    gate: Ran,
    rules: Ran,
    commands: Ran,
}

impl Sessions {
    fn run(quick: bool) -> Self {
        let planner = [
            "test",
            "--workspace",
            "--test",
            "golden",
            "--test",
            "properties",
            "--test",
            "simulation",
            "--test",
            "features",
            "--test",
            "documents",
            "--test",
            "timeline",
        ];
        let fleet = ["test", "--workspace", "--test", "rollout_fleet"];
        let gate = ["test", "--workspace", "--test", "kubeconfigs"];
        let rules = [
            "test",
            "--workspace",
            "--test",
            "delivery",
            "--",
            "delivery_definitions_simulated",
        ];
        let commands = ["test", "--workspace", "--test", "rollout"];
        let cases: &[(&str, &str)] = if quick {
            &[]
        } else {
            &[("MAINSTAY_CASES", FULL_CASES)]
        };
        let shown = ["--", "--show-output"];
        let profile: &[&str] = if quick { &[] } else { &["--release"] };
        Self {
            planner: Session::run(&[&planner, profile, &shown].concat(), cases),
            fleet: Session::run(&[&fleet, profile, &shown].concat(), share(quick)),
            gate: Session::run(&[gate.as_slice(), &shown].concat(), &[]),
            rules: Session::run(&rules, &[]),
            commands: Session::run(&[commands.as_slice(), &shown].concat(), &[]),
        }
    }

    fn get(&self, program: Program) -> &Ran {
        match program {
            Program::Planner => &self.planner,
            Program::Fleet => &self.fleet,
            Program::Gate => &self.gate,
            Program::Rules => &self.rules,
            Program::Commands => &self.commands,
        }
    }
}

/// A test program.
#[derive(Clone, Copy)]
enum Program {
    Planner,
    Fleet,
    Gate,
    Rules,
    Commands,
}

/// A claim that tests verify.
struct Claim {
    text: &'static str,
    goal: &'static str,
    program: Program,
    /// All must pass. Empty if there is no test yet.
    tests: &'static [&'static str],
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "the proposal's example on two simulated clusters: 50/50, shift, removal of v1",
        goal: "stored objects, no dip, nothing left",
        program: Program::Fleet,
        tests: &["the_proposal_end_to_end"],
    },
    Claim {
        text: "golden VirtualService, HTTPRoute, Ingress and Services of the example",
        goal: "as stored",
        program: Program::Planner,
        tests: &[
            "the_proposals_example_with_istio",
            "the_proposals_example_with_gateway_api",
            "the_proposals_example_with_ingress",
        ],
    },
    Claim {
        text: "pods of v1 and v2 are selected by different Services",
        goal: "in every cluster",
        program: Program::Planner,
        tests: &["services_select_the_pods_of_one_revision"],
    },
    Claim {
        text: "aborts in every state of a rollout, deletion, and planted defects",
        goal: "no dip, nothing left; every defect caught",
        program: Program::Planner,
        tests: &[
            "an_abort_in_every_state_keeps_capacity",
            "deletion_removes_all_created_objects",
            "every_property_detects_its_defect",
        ],
    },
    Claim {
        text: "header routes, mirrored requests, several routes or ingresses, three live revisions",
        goal: "each exactly as long as it is requested",
        program: Program::Planner,
        tests: &[
            "previews_and_mirroring_end_with_the_rollout",
            "several_routes_and_ingresses_per_application",
            "three_revisions_share_the_traffic",
            "weights_are_computed_per_cluster",
        ],
    },
    Claim {
        text: "waves with soak, progress deadline, failover opt-in, rollback window, autoscalers",
        goal: "as configured, never by default",
        program: Program::Planner,
        tests: &[
            "a_wave_soaks_before_the_next_one_starts",
            "a_broken_revision_is_rolled_back",
            "failover_is_opt_in_and_only_for_placements_by_labels",
            "a_rollback_within_its_window_starts_no_pod",
            "unset_replicas_are_left_to_an_autoscaler",
        ],
    },
    Claim {
        text: "the proposal's documents verbatim, KubeVela's kinds; invalid documents",
        goal: "accepted; rejected with line and remedy",
        program: Program::Planner,
        tests: &[
            "documents_of_the_proposal_are_parsed_unchanged",
            "kinds_of_kubevela_are_converted",
            "errors_name_the_line_and_the_remedy",
            "replacing_two_revisions_at_once_is_reported_as_a_condition",
            "a_missing_revision_is_reported_until_it_is_created",
        ],
    },
    Claim {
        text: "commands: plan, apply, status, watch, actions, cluster add, check and list",
        goal: "stored output; real controllers' rules",
        program: Program::Commands,
        tests: &[
            "plans_are_shown_over_time",
            "documents_are_applied_once",
            "invalid_documents_are_rejected",
            "actions_are_accepted_by_the_planner",
            "clusters_are_added_and_checked",
            "an_account_is_created_in_the_other_cluster",
            "hostile_kubeconfigs_are_not_added",
            "every_command_has_help_with_examples",
        ],
    },
    Claim {
        text: "validation by the schema and its CEL rules",
        goal: "each rule rejects the object it is meant for",
        program: Program::Rules,
        tests: &["delivery_definitions_simulated"],
    },
    Claim {
        text: "mainstay demo rollout: a canary that is aborted and one that succeeds",
        goal: "stored output of 80 columns, no terminal",
        program: Program::Commands,
        tests: &["the_rollout_demo_prints_both_canaries"],
    },
    Claim {
        text: "an unreachable cluster, on the simulator",
        goal: "blocks no other cluster, and continues later",
        program: Program::Fleet,
        tests: &[
            "a_dead_cluster_blocks_no_other",
            "a_rollout_continues_after_the_outage_of_a_cluster",
        ],
    },
    Claim {
        text: "kubeconfig rotated and Cluster deleted, on the simulator",
        goal: "noticed; nothing deleted without contact",
        program: Program::Fleet,
        tests: &[
            "a_rotated_secret_is_used",
            "objects_in_a_deleted_cluster_are_kept",
        ],
    },
    Claim {
        text: "drift in every cluster, and names that others own",
        goal: "corrected; never overwritten",
        program: Program::Fleet,
        tests: &[
            "drift_is_corrected_in_every_cluster",
            "a_name_conflict_is_reported",
        ],
    },
    Claim {
        text: "analysis: good, bad and missing metrics",
        goal: "succeeds, is rolled back, waits or fails by policy",
        program: Program::Fleet,
        tests: &[
            "a_canary_with_good_metrics_succeeds",
            "a_canary_with_bad_metrics_is_rolled_back",
            "a_canary_without_data_waits_or_fails_by_its_policy",
        ],
    },
    Claim {
        text: "hostile kubeconfigs",
        goal: "at least 40 rejected, no secret in an error",
        program: Program::Gate,
        tests: &["kubeconfigs_are_accepted_or_rejected_with_the_stored_error"],
    },
    Claim {
        text: "a steady state of 30 minutes",
        goal: "0 writes",
        program: Program::Fleet,
        tests: &["one_deployment_in_the_host_cluster", "the_proposal_end_to_end"],
    },
];

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let sessions = Sessions::run(quick);
    let mut rows: Vec<Row> = CLAIMS.iter().map(|claim| claim.row(&sessions)).collect();
    rows.push(matrix(
        "faults at every call of 6 rollouts, host and member cluster",
        &FAULT_SCENARIOS,
        &sessions.fleet,
        quick,
    ));
    rows.push(properties(&sessions.planner, quick));
    rows.push(comparison::row(&sessions));
    rows.extend(real::rows(quick));
    // Speed and memory are measured by the full proof, with the release profile.
    if !quick {
        rows.extend(planning_rows());
    }
    rows
}

/// Returns the names of all tests that the rows refer to.
#[cfg(test)]
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    let claims = CLAIMS.iter().flat_map(|claim| claim.tests.iter().copied());
    claims.chain(PROPERTY_TESTS).chain(real::test_names())
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

impl Claim {
    fn row(&self, sessions: &Sessions) -> Row {
        let missing = |error| Row::not_measured(self.text, self.goal, RowKind::Correctness, error);
        if self.tests.is_empty() {
            return missing(&anyhow!("no test yet"));
        }
        let ran = match sessions.get(self.program) {
            Ok(ran) => ran,
            Err(error) => return missing(error),
        };
        let passed = self.tests.iter().filter(|test| ran.passed(test)).count();
        let figure = format!("{passed} of {} tests passed", self.tests.len());
        Row::correct(self.text, figure, self.goal, passed == self.tests.len())
    }
}

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
    Ok((slowest, peak.unwrap_or("unknown").to_owned()))
}
