//! Rows about workload migration and rehearsal.

use super::{Item, integration, unit};

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "not-injectable",
        claim: "migration: workloads that cannot be injected are skipped with a reason",
        goal: "no restart, no failure",
        before: "restarted, and the migration failed",
        tests: &[
            integration("migration", "workloads_that_cannot_be_injected_are_skipped"),
            integration(
                "migration",
                "a_retry_restarts_a_workload_whose_pods_were_not_injected",
            ),
        ],
    },
    Item {
        key: "injector-url",
        claim: "rehearsal: injectors configured by URL are recognized by label and owner",
        goal: "the prediction equals the migration",
        before: "11 failures predicted where 11 workloads moved",
        tests: &[integration("rehearse", "injectors_with_a_url_inject")],
    },
    Item {
        key: "totals",
        claim: "migration: batch totals in events and status match the plan",
        goal: "equal in every case",
        before: "wrong after additions, stops, pauses and reverts",
        tests: &[
            integration("migration", "totals_match_the_plan_when_workloads_are_added"),
            integration("migration", "totals_match_the_plan_after_a_stop_and_a_pause"),
            integration("migration", "a_revert_counts_only_workloads_that_moved"),
        ],
    },
    Item {
        key: "messages",
        claim: "migration: failure messages name what is missing",
        goal: "every case has its reason",
        before: "\"1/1 updated, 1 ready\"",
        tests: &[
            unit("mainstay-mesh", "incomplete_rollouts_are_described"),
            unit(
                "mainstay-mesh",
                "annotations_that_control_migration_are_validated",
            ),
            integration("migration", "workloads_with_malformed_annotations_are_skipped"),
            integration(
                "migration",
                "namespaces_that_name_a_missing_revision_are_reported",
            ),
        ],
    },
    Item {
        key: "maximum",
        claim: "migration: maxVersion, hints, watch and status",
        goal: "fields named; exit 0 during a healthy migration",
        before: "no field named; status exited with an error",
        tests: &[
            integration("migration", "managed_tags_stay_below_the_maximum_version"),
            integration("migration", "the_maximum_version_limits_the_migration"),
            unit("mainstay", "hints_about_migration_settings_name_the_field"),
            unit("mainstay", "the_reason_for_waiting_is_printed"),
            integration("status", "a_migration_is_planned_reported_paused_and_retried"),
            integration("status", "a_healthy_migration_is_no_problem"),
        ],
    },
    Item {
        key: "versions",
        claim: "command line: versions with and without v are equivalent",
        goal: "an unknown version lists the five nearest",
        before: "an unknown version listed 75 versions",
        tests: &[
            integration("versions", "versions_with_and_without_v_are_equivalent"),
            integration("versions", "an_unknown_version_lists_the_five_nearest"),
            unit("mainstay-catalog", "similar_names_are_found"),
        ],
    },
];
