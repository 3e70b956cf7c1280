//! Claims about application delivery as a table, with the tests that verify them on models, simulated
//! clusters and the command line.

use anyhow::anyhow;

use super::{Program, Sessions};
use crate::prove::row::{Row, RowKind};

/// A claim that tests verify.
pub(super) struct Claim {
    text: &'static str,
    goal: &'static str,
    program: Program,
    /// All must pass. Empty if there is no test yet.
    pub(super) tests: &'static [&'static str],
}

pub(super) const CLAIMS: &[Claim] = &[
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
        goal: "nothing left; orphans released; forgotten after the configured time",
        program: Program::Planner,
        tests: &[
            "deletion_removes_all_created_objects",
            "an_orphaning_deletion_keeps_and_releases_all_objects",
            "a_deletion_forgets_unreachable_clusters_after_the_configured_time",
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

impl Claim {
    /// Returns the row of the claim.
    pub(super) fn row(&self, sessions: &Sessions) -> Row {
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
