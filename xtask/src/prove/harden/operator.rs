//! Rows about the operator.

use super::super::operator::Ran;
use super::super::operator::session::Session;
use super::{Item, Row, RowKind, integration, unit};

const OPERATOR: &str = "mainstay-operator";

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "concurrency",
        claim: "operator: scenarios, faults and real servers with 1 and with 5 concurrent reconciles",
        goal: "all pass; /healthz responds, SIGTERM ends",
        before: "2 or more hung the operator at the first object",
        tests: &[
            unit(OPERATOR, "only_calls_that_enqueue_a_subject_notify_the_loop"),
            unit(OPERATOR, "a_subject_has_at_most_one_running_plan"),
            unit(OPERATOR, "plans_of_a_migration_are_executed_one_at_a_time"),
            integration("simulated", "scenarios_with_one_plan_at_a_time"),
            integration("simulated", "faults::revision_upgrade"),
            integration("real", "istio::creates_its_revision"),
            integration(
                "operator",
                "health_checks_and_shutdown_work_with_several_objects_and_reconciles",
            ),
        ],
    },
    Item {
        key: "back-off",
        claim: "operator: an edit or deletion during a back-off is handled at once",
        goal: "no wait for the back-off; a 409 is no failure",
        before: "41 s observed, up to 1,000 s",
        tests: &[
            unit(OPERATOR, "an_event_during_a_failing_execution_is_not_lost"),
            unit(OPERATOR, "an_event_that_changes_the_object_resets_its_back_off"),
            unit(
                OPERATOR,
                "an_event_that_changes_only_the_status_does_not_reset_the_back_off",
            ),
            unit(OPERATOR, "a_conflict_is_no_failure_until_it_persists"),
            unit(OPERATOR, "conflicts_are_retried_without_delay_up_to_a_limit"),
            unit(OPERATOR, "an_edit_or_a_deletion_ends_the_backoff"),
            unit(OPERATOR, "an_action_ends_the_backoff"),
            unit(OPERATOR, "an_edit_resets_the_backoff_and_a_status_does_not"),
            integration(
                "simulated",
                "backoff::an_edit_and_a_deletion_are_handled_during_a_long_backoff",
            ),
            integration(
                "rollout_fleet",
                "backoff::an_edit_and_a_deletion_are_handled_during_a_long_backoff",
            ),
            integration("rollout_fleet", "backoff::conflicts_do_not_delay_a_deployment"),
        ],
    },
    Item {
        key: "default-tag",
        claim: "operator: the default tag is created for new meshes only",
        goal: "no write for a mesh that has revisions",
        before: "an unrequested tag, webhook and Service",
        tests: &[
            integration(
                "managed_tags",
                "an_istio_that_already_has_revisions_gets_no_implicit_tag",
            ),
            integration(
                "managed_tags",
                "the_implicit_tag_is_created_when_the_first_revision_is_ready",
            ),
            integration(
                "managed_tags",
                "the_implicit_tag_waits_while_another_injector_serves_its_namespaces",
            ),
            integration("simulated", "update::the_default_tag_is_created_automatically"),
            integration("simulated", "update::an_istio_with_revisions_gets_no_default_tag"),
            integration("simulated", "update::the_default_tag_waits_for_another_injector"),
        ],
    },
    Item {
        key: "tag-names",
        claim: "operator: an invalid tag name is rejected and affects no other tag",
        goal: "rejected by the schema",
        before: "the whole Istio stopped, TagsReconciled=True",
        tests: &[
            integration(
                "managed_tags",
                "an_invalid_tag_name_is_reported_and_the_others_are_created",
            ),
            integration(
                "managed_tags",
                "a_tag_that_cannot_be_created_does_not_affect_the_others",
            ),
            integration("simulated", "update::a_rejected_tag_does_not_affect_the_others"),
            integration("real", "update::a_rejected_tag_does_not_affect_the_others"),
        ],
    },
    Item {
        key: "takeover",
        claim: "operator: details of a takeover from the Sail Operator",
        goal: "0 writes",
        before: "152 of 157 adapted tests of Sail pass, baseline 156",
        tests: &[
            unit("mainstay-mesh", "quantities_have_kubernetes_canonical_form"),
            integration("simulated", "takeover::a_takeover_writes_nothing"),
            integration("simulated", "takeover::quantities_of_a_revision_are_canonical"),
            integration(
                "simulated",
                "takeover::a_revision_deleted_at_any_time_leaves_nothing",
            ),
            integration(
                "simulated",
                "takeover::objects_without_helm_annotations_are_deleted",
            ),
            unit("mainstay-cluster", "our_webhooks_come_first"),
            integration("apply", "our_webhooks_precede_those_of_others"),
            integration(
                "tag",
                "a_tag_with_another_istio_as_its_target_moves_when_that_is_ready",
            ),
            integration(
                "tag",
                "a_tag_with_a_new_fixed_target_moves_at_once_also_to_another_namespace",
            ),
            unit("mainstay-cluster", "an_api_server_may_present_a_ca_certificate"),
            unit(
                "mainstay-cluster",
                "other_certificates_of_an_api_server_are_rejected",
            ),
            unit("mainstay-cluster", "replaced_ca_certificates_are_read_again"),
            unit(OPERATOR, "a_server_certificate_may_be_a_ca"),
            unit(
                OPERATOR,
                "a_ca_certificate_must_be_trusted_valid_and_for_this_server",
            ),
        ],
    },
];

/// Returns the rows of the full proof: everything with one and with five concurrent reconciles.
pub(super) fn full_rows() -> Vec<Row> {
    let matrix = [("MAINSTAY_MATRIX", "whole")];
    let simulated = ["test", "--release", "--workspace", "--test", "simulated"];
    let real = ["test", "--workspace", "--test", "real"];
    vec![
        row(
            "operator: all scenarios and the whole fault matrix, 1 and 5 at once",
            Session::run(&simulated, &matrix),
        ),
        row(
            "operator: the suite on real API servers, 1 at once",
            Session::run(&real, &[("MAINSTAY_MAX_CONCURRENT", "1")]),
        ),
        row(
            "operator: the suite on real API servers, 5 at once",
            Session::run(&real, &[("MAINSTAY_MAX_CONCURRENT", "5")]),
        ),
    ]
}

fn row(claim: &str, session: Ran) -> Row {
    match session {
        Ok(session) => {
            let (passed, failed) = session.counts();
            let figure = format!("{passed} passed, {failed} failed");
            Row::correct(claim, figure, "all pass", failed == 0 && passed > 0)
        }
        Err(error) => Row::not_measured(claim, "all pass", RowKind::Correctness, &error),
    }
}
