//! Rows about security.

use super::{Item, Row, RowKind, integration};
use crate::build::Profile;
use crate::hostile;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "entropy",
        claim: "operator: random values of charts are random and stable",
        goal: "different per cluster, unchanged per reconcile",
        tests: &[],
    },
    Item {
        key: "confinement",
        claim: "operator: an Istio resource cannot create foreign kinds or namespaces",
        goal: "rejected with the object's name",
        tests: &[],
    },
    Item {
        key: "cache",
        claim: "operator: memory with 1,000 large labelled objects",
        goal: "≤ 1.1 × before",
        tests: &[],
    },
    Item {
        key: "dump",
        claim: "snapshots: names cannot leave the directory; files are private",
        goal: "all rejected, 0700 and 0600",
        tests: &[],
    },
    Item {
        key: "requests",
        claim: "sandbox: a single request cannot exhaust it",
        goal: "rejected as by a real API server",
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
        tests: &[],
    },
    Item {
        key: "secrets",
        claim: "log redaction, links, fenced writes and OCI realms",
        goal: "all hold",
        tests: &[],
    },
];

/// Returns the row of hostile input to the command line.
pub(super) fn hostile_row(quick: bool) -> Row {
    let (claim, goal) = (
        "command line: hostile input",
        "at least 200 cases, each < 1 CPU s and < 256 MiB",
    );
    match hostile::run_all("", Profile::for_proof(quick)) {
        Ok(results) => {
            for result in results.iter().filter(|result| result.problem.is_some()) {
                println!("{result}");
            }
            let bad = results.iter().filter(|result| result.problem.is_some()).count();
            let figure = format!("{} cases, {bad} bad, {}", results.len(), hostile::worst(&results));
            Row::correct(claim, figure, goal, bad == 0 && results.len() >= 200)
        }
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}
