//! Rows about security.

use super::{Item, Row, RowKind, integration, unit};
use crate::build::Profile;
use crate::{deny, hostile};

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "entropy",
        claim: "operator, delivery, manifest: charts cannot generate secrets",
        goal: "rejected with the object's name",
        before: "the same secret in every cluster",
        tests: &[
            unit("mainstay-operator", "a_chart_that_generates_values_is_rejected"),
            unit(
                "mainstay-operator",
                "a_chart_may_use_the_current_time_where_it_changes_nothing",
            ),
            unit("mainstay-operator", "a_chart_that_generates_a_secret_is_rejected"),
            unit(
                "mainstay-operator",
                "the_same_application_always_has_the_same_objects",
            ),
            integration("randomness", "charts_that_generate_values_are_rejected"),
            integration(
                "randomness",
                "unused_random_values_are_accepted_and_every_output_is_equal",
            ),
        ],
    },
    Item {
        key: "confinement",
        claim: "operator: Istio and IstioOperator resources cannot create foreign kinds or namespaces",
        goal: "rejected with the object's name",
        before: "a Deployment with hostPID in kube-system",
        tests: &[
            unit("mainstay-operator", "a_value_cannot_add_an_object"),
            unit(
                "mainstay-operator",
                "values_with_line_breaks_that_add_no_object_are_accepted",
            ),
            unit(
                "mainstay-operator",
                "the_charts_of_the_catalog_stay_in_their_namespaces",
            ),
            integration("simulated", "istio::a_value_cannot_add_an_object"),
            integration("confinement", "a_line_break_in_a_value_cannot_add_an_object"),
            integration("confinement", "a_line_break_in_a_namespace_is_rejected"),
            integration(
                "confinement",
                "an_overlay_cannot_move_an_object_or_change_its_kind",
            ),
            integration(
                "istio_operator",
                "confinement::a_value_of_a_resource_cannot_add_an_object",
            ),
            integration(
                "istio_operator",
                "confinement::an_invalid_change_leaves_the_installation_as_it_is",
            ),
            unit(
                "mainstay-cluster",
                "own_rules_contain_no_wildcard_and_no_escalation_verb",
            ),
            integration("deploy", "every_statement_of_the_rbac_page_holds_simulated"),
            integration("deploy", "every_statement_of_the_rbac_page_holds_real"),
            integration("deploy", "the_rbac_page_holds_with_delivery_real"),
            integration("deploy", "the_rbac_page_holds_with_istio_operators_real"),
            integration("deploy", "the_rbac_page_holds_without_definitions_real"),
        ],
    },
    Item {
        key: "cache",
        claim: "operator: memory with 1,000 large labeled objects",
        goal: "≤ 1.1 × before",
        before: "400 objects exceeded the memory limit",
        tests: &[
            unit("mainstay-cluster", "objects_of_unknown_owners_are_not_kept_whole"),
            unit("mainstay-cluster", "tombstones_expire_with_the_second_relist"),
            integration("memory", "large_labeled_objects_of_a_tenant_are_not_cached"),
        ],
    },
    Item {
        key: "cache-lists",
        claim: "operator: peak memory while 1,000 large objects are listed without streaming lists",
        goal: "≤ 1.1 × before",
        before: "450 MB in one response",
        tests: &[
            integration("memory", "large_labeled_objects_are_listed_one_at_a_time"),
            unit("mainstay-operator", "items_are_separated_from_the_envelope"),
            unit(
                "mainstay-operator",
                "brackets_quotes_and_keys_in_strings_are_text",
            ),
            unit("mainstay-operator", "whole_objects_are_listed_in_smaller_pages"),
        ],
    },
    Item {
        key: "dump",
        claim: "snapshots: names cannot leave the directory; files are private",
        goal: "all rejected, 0700 and 0600",
        before: "names left the directory, Secrets were 0644",
        tests: &[
            unit(
                "mainstay-sim",
                "object_names_cannot_select_a_path_outside_the_directory",
            ),
            unit(
                "mainstay-sim",
                "dumps_are_readable_by_their_owner_only_and_distinct_names_stay_distinct",
            ),
            unit("mainstay-sim", "a_directory_with_files_is_not_written_to"),
            unit("mainstay-sim", "directory_links_and_special_files_are_rejected"),
            integration("sandbox", "a_snapshot_is_loaded_and_a_dump_is_written"),
        ],
    },
    Item {
        key: "requests",
        claim: "sandbox: a single request cannot exhaust it",
        goal: "rejected as by a real API server",
        before: "each stopped the sandbox",
        tests: &[
            integration("limits", "objects_are_limited_by_the_request_size_of_etcd"),
            integration("limits", "defaults_of_a_definition_cannot_inflate_an_object"),
            integration("limits", "json_patches_cannot_copy_without_limit"),
            integration(
                "limits",
                "aliases_of_an_applied_document_cannot_expand_without_limit",
            ),
            integration("serve", "idle_connections_do_not_block_others"),
            integration("serve", "pods_are_created_in_slices"),
            integration(
                "sandbox_tools",
                "idle_connections_and_large_deployments_do_not_stop_it",
            ),
        ],
    },
    Item {
        key: "supply-chain",
        claim: "supply chain: pinned tools, advisories, SBOM",
        goal: "checked",
        before: "unpinned tools, unchecked advisories",
        tests: &[
            unit("xtask", "tools_are_pinned"),
            unit("xtask", "unpinned_tools_are_found"),
            unit("xtask", "cargo_never_changes_a_lock_file"),
            unit("xtask", "packages_have_dependencies_and_licenses"),
        ],
    },
    Item {
        key: "secrets",
        claim: "log redaction, links, fenced writes and OCI realms",
        goal: "all hold",
        before: "escaped values logged, links followed, late writes possible",
        tests: &[
            unit("mainstay-operator", "messages_are_redacted"),
            integration(
                "operator",
                "the_operator_serves_reconciles_logs_no_secret_and_stops_on_signals",
            ),
            integration("generate", "links_out_of_a_directory_are_not_followed"),
            unit("mainstay-cluster", "a_fenced_write_has_a_limit_on_the_server_too"),
            unit("mainstay-cluster", "no_write_outlasts_the_lease"),
            integration("write", "no_write_outlasts_the_fence"),
            unit("mainstay-operator", "the_pods_grace_period_covers_the_shutdown"),
            integration("pull", "tokens_come_from_the_registrys_own_host_only"),
        ],
    },
];

/// Quick proofs run every N-th hostile case, with the build that the tests share.
const HOSTILE_STEP: usize = 10;

/// Returns the row of hostile input to the command line: a sample, or every case with an optimized build.
pub(super) fn hostile_row(quick: bool) -> Row {
    let (claim, goal, least) = if quick {
        (
            "command line: hostile input, one case of ten, unoptimized build",
            "each < 12 CPU s (keys and password hashes 60) and < 256 MiB",
            20,
        )
    } else {
        (
            "command line: hostile input",
            "at least 200 cases, each < 1 CPU s (keys and password hashes 5) and < 256 MiB",
            200,
        )
    };
    let results = if quick {
        hostile::run_sample("", HOSTILE_STEP, Profile::Dev)
    } else {
        hostile::run_all("", Profile::Release)
    };
    super::super::hostile::row(claim, goal, least, results)
}

/// Returns the rows of the full proof.
pub(super) fn full_rows() -> Vec<Row> {
    let (claim, goal) = ("supply chain: advisories of the RustSec database", "none");
    let row = match deny::check_advisories() {
        Ok(date) => Row::correct(claim, format!("none, database of {date}"), goal, true),
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    };
    vec![row]
}
