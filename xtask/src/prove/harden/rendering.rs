//! Rows about rendering.

use super::{Item, Row, RowKind, integration, unit};
use crate::parity::{self, Kind};

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "release-build",
        claim: "rendering: .Capabilities as in a release build of Helm 3 and 4",
        goal: "all equal",
        before: "38 of 273 popular charts rejected",
        tests: &[
            integration(
                "objects_differential",
                "capabilities_are_those_of_a_release_build",
            ),
            unit("mainstay-chart", "kubernetes_versions_may_have_suffixes"),
        ],
    },
    Item {
        key: "methods",
        claim: "rendering: methods of the objects that templates see",
        goal: "all equal to Helm 3 and 4",
        before: "Cilium not rendered, AsMap was null",
        tests: &[integration(
            "objects_differential",
            "objects_have_helms_fields_and_methods",
        )],
    },
    Item {
        key: "live-memory",
        claim: "rendering: memory is charged for live values only",
        goal: "4,000 appends fit",
        before: "4,000 appends exceeded the limit",
        tests: &[
            integration("limits", "only_live_values_take_memory"),
            integration(
                "template",
                "a_remote_schema_reference_names_the_flag_that_skips_it",
            ),
            integration("template", "dns_lookups_are_accepted_and_return_nothing"),
        ],
    },
];

/// Returns the rows of the full proof: parity of all edge-case charts.
pub(super) fn full_rows() -> Vec<Row> {
    let (claim, goal) = ("rendering: edge-case charts against Helm 3 and 4", "0 different");
    let arguments = parity::Arguments::default();
    vec![match parity::find(&arguments) {
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
        Ok(findings) => {
            let count = findings.counts.get(&Kind::EdgeCase).copied().unwrap_or_default();
            let figure = format!("{} compared, {} different", count.run, count.different);
            Row::correct(claim, figure, goal, count.run > 0 && count.different == 0)
        }
    }]
}
