//! Rows about `mainstay generate`.

use super::super::fuzzed;
use super::{Item, Row, integration, unit};
use crate::fuzz::Effort;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "round-trip",
        claim: "generate: --uninject restores every input",
        goal: "every stored case, byte for byte",
        before: "one case lost bytes",
        tests: &[
            integration(
                "replaced",
                "an_explicit_key_after_a_lone_carriage_return_is_restored",
            ),
            integration("replaced", "a_lone_carriage_return_at_the_end_is_kept"),
            integration("replaced", "the_original_objects_are_restored"),
            integration("corpus", "all_properties_hold_for_every_manifest"),
        ],
    },
    Item {
        key: "krm",
        claim: "generate: KRM function with existing results",
        goal: "valid YAML, nothing dropped",
        before: "invalid YAML with exit 0, earlier results dropped",
        tests: &[
            integration("krm", "earlier_results_in_block_style_are_kept"),
            integration(
                "krm",
                "results_that_cannot_be_extended_are_an_error_and_nothing_is_lost",
            ),
            integration("krm", "a_package_is_restored_by_source_inject_uninject_and_sink"),
        ],
    },
    Item {
        key: "formatters",
        claim: "generate: reformatted output counts as unchanged",
        goal: "prettier, kyaml, Helm 4 and yq",
        before: "counted as changed",
        tests: &[
            integration("formats", "reformatted_output_is_unchanged"),
            integration(
                "krm",
                "a_package_written_by_the_sink_is_unchanged_and_can_be_restored",
            ),
        ],
    },
    Item {
        key: "parsers",
        claim: "generate: output is readable by other parsers",
        goal: "every parser, same meaning",
        before: "not tested",
        tests: &[integration("formats", "every_reader_finds_the_same_objects")],
    },
    Item {
        key: "files",
        claim: "generate: a file modified meanwhile is not overwritten",
        goal: "exit 2, nothing lost",
        before: "overwritten",
        tests: &[
            integration("generate", "a_file_modified_between_read_and_write_is_kept"),
            integration("generate", "the_run_after_a_kill_removes_temporary_files"),
            integration("generate", "a_kill_at_any_point_leaves_complete_files"),
        ],
    },
    Item {
        key: "inputs",
        claim: "generate: paths in use, pipes",
        goal: "named errors",
        before: "unnamed errors, pipes rejected",
        tests: &[
            integration(
                "generate",
                "process_substitution_and_named_standard_input_are_pipes",
            ),
            integration("generate", "a_device_or_an_endless_document_is_an_error"),
            integration("generate", "check_reports_planned_changes"),
            integration("tables", "every_input_has_the_stored_output"),
        ],
    },
    Item {
        key: "generate-memory",
        claim: "generate: memory of a large List in every layout, a large object; documented exceptions",
        goal: "≤ 8 × the input; exceptions as documented",
        before: "21 MB needed 2.6 GiB",
        tests: &[
            integration("generate_memory", "memory_is_bounded_by_the_input"),
            unit("mainstay-inject", "pieces_have_the_result_of_the_whole_document"),
            unit("mainstay-inject", "anchors_of_other_items_are_resolved"),
            unit("mainstay-inject", "failures_equal_those_of_the_whole_document"),
            unit("mainstay-inject", "elided_documents_have_the_same_result"),
            unit("mainstay-inject", "changed_documents_have_the_same_result"),
        ],
    },
];

/// Duration of the fuzz run of the full proof.
const FUZZ_SECONDS: u64 = 3600;

/// Returns the rows of the full proof: the injector is fuzzed from a new seed.
pub(super) fn full_rows() -> Vec<Row> {
    let effort = Effort::explore(FUZZ_SECONDS);
    fuzzed::rows_with(|target| target == "inject", "no finding", effort)
}
