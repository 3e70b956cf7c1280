//! Proof of application delivery: one row per claim. A claim without a test is "not measured", which does not
//! pass.

mod comparison;
mod real;

use std::process::Stdio;

use anyhow::{Context, anyhow, bail};
use mainstay_testkit::repository_root;

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
            "an_ingress_with_a_match_distributes_by_replicas",
        ],
    },
    Claim {
        text: "Ingress and Services on the simulator",
        goal: "the objects of a real API server",
        program: Program::Fleet,
        tests: &["an_ingress_equals_the_one_on_a_real_server"],
    },
    Claim {
        text: "revisions of an Application: web service, objects and a Helm chart; annotation, retention",
        goal: "each change recorded; nothing referenced is deleted",
        program: Program::Fleet,
        tests: &[
            "every_change_of_an_application_replaces_the_running_revision",
            "recorded_revisions_replace_nothing_and_referenced_ones_are_kept",
            "an_invalid_chart_is_reported_and_replaces_nothing",
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
        text: "placement: selectors, count, weighted division, unschedulable clusters",
        goal: "replicas by cluster, or the reason",
        program: Program::Planner,
        tests: &[
            "placements_are_resolved_to_replicas_by_cluster",
            "a_choice_by_labels_keeps_two_revisions_in_one_cluster",
            "an_unschedulable_cluster_keeps_its_workloads_and_gets_no_new_ones",
        ],
    },
    Claim {
        text: "strategies and analysis: reactions to failures, budgets per wave, pauses, samples, limits",
        goal: "as configured",
        program: Program::Planner,
        tests: &[
            "a_failed_rollout_waits_for_a_retry",
            "a_failed_rollout_continues_on_request",
            "percentages_refer_to_all_clusters_or_to_the_wave",
            "too_many_failed_clusters_stop_a_wave_until_it_is_resumed",
            "a_paused_strategy_changes_no_replicas",
            "an_analysis_without_data_can_be_skipped",
            "a_measurement_with_few_samples_has_no_data",
            "an_analysis_passes_with_as_many_failures_as_its_limit",
            "a_failed_analysis_starts_again_with_a_retry",
            "an_action_for_an_earlier_step_is_rejected",
            "rules_without_weights_follow_the_replicas",
        ],
    },
    Claim {
        text: "names that collide within a deployment",
        goal: "reported; nothing of them is applied",
        program: Program::Planner,
        tests: &[
            "revisions_with_equal_names_are_reported_and_not_applied",
            "a_revision_with_the_names_of_a_running_one_is_not_applied",
            "components_with_equal_names_are_reported_and_not_applied",
            "services_with_equal_names_are_reported_and_not_applied",
        ],
    },
    Claim {
        text: "deletion: deleted revisions, Orphan, clusters that stay unreachable",
        goal: "nothing left; orphans released; given up after the configured time",
        program: Program::Planner,
        tests: &[
            "deletion_removes_all_created_objects",
            "an_orphaning_deletion_keeps_and_releases_all_objects",
            "a_deletion_gives_up_unreachable_clusters_after_the_configured_time",
        ],
    },
    Claim {
        text: "deletion policy Orphan, with garbage collection",
        goal: "every object stays",
        program: Program::Fleet,
        tests: &["orphaned_objects_survive_the_deployment"],
    },
    Claim {
        text: "a restart of the operator while a cluster is unreachable",
        goal: "the capacity in that cluster is kept",
        program: Program::Planner,
        tests: &["a_restart_during_an_outage_keeps_capacity"],
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
            "a_stored_deployment_is_planned_from_its_status",
            "status_is_read_from_the_conditions",
            "watch_prints_changes_until_the_end",
            "clusters_are_listed_with_their_health",
            "undo_replaces_the_revision",
            "actions_that_the_phase_does_not_allow_are_rejected",
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
        text: "mainstay rehearse rollout: the traffic of each revision per second",
        goal: "every second until the end",
        program: Program::Commands,
        tests: &["a_rehearsal_contains_every_second"],
    },
    Claim {
        text: "validation by the schema and its CEL rules",
        goal: "each rule rejects the object it is meant for",
        program: Program::Rules,
        tests: &["delivery_definitions_simulated", "delivery_definitions_real"],
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
        text: "the circuit breaker of an unreachable cluster, on 5 simulated clusters",
        goal: "only probes, ever less often; the others change at once",
        program: Program::Fleet,
        tests: &["the_circuit_breaker_limits_calls_to_an_unreachable_cluster"],
    },
    Claim {
        text: "HTTPRoutes with the Gateway API CRDs, on 5 simulated clusters",
        goal: "detected; continues only after their acceptance; stored objects",
        program: Program::Fleet,
        tests: &[
            "http_routes_split_traffic_in_five_clusters",
            "an_http_route_for_a_service_equals_the_one_on_a_real_server",
        ],
    },
    Claim {
        text: "kubeconfig rotated; Cluster deleted, relabeled, with another or no Secret, on the simulator",
        goal: "noticed; nothing deleted without contact",
        program: Program::Fleet,
        tests: &[
            "a_rotated_secret_is_used",
            "a_placement_follows_the_labels_of_clusters",
            "another_secret_is_used_and_a_missing_one_is_reported",
            "a_rejected_kubeconfig_is_reported_by_a_condition",
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
        tests: &[
            "kubeconfigs_are_accepted_or_rejected_with_the_stored_error",
            "local_addresses_are_accepted_on_request",
        ],
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
    let peak = peak.context("the example printed no memory")?;
    Ok((slowest, peak.to_owned()))
}
