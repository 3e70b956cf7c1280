//! Rows about the operator.

use super::Item;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "concurrency",
        claim: "operator: scenarios, faults and real servers with 1 and with 5 concurrent reconciles",
        goal: "all pass; /healthz responds, SIGTERM ends",
        tests: &[],
    },
    Item {
        key: "back-off",
        claim: "operator: an edit or deletion during a back-off is handled at once",
        goal: "no wait for the back-off; a 409 is no failure",
        tests: &[],
    },
    Item {
        key: "default-tag",
        claim: "operator: the default tag is created for new meshes only",
        goal: "no write for a mesh that has revisions",
        tests: &[],
    },
    Item {
        key: "tag-names",
        claim: "operator: an invalid tag name is rejected and affects no other tag",
        goal: "rejected by the schema",
        tests: &[],
    },
    Item {
        key: "takeover",
        claim: "operator: details of a takeover from the Sail Operator",
        goal: "0 writes",
        tests: &[],
    },
];
