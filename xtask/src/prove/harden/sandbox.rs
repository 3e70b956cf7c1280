//! Rows about the sandbox.

use super::Item;

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "workloads",
        claim: "sandbox: Jobs, quotas, taints and a real helm install",
        goal: "as on a real server",
        tests: &[],
    },
    Item {
        key: "controllers",
        claim: "sandbox: controllers back off when a webhook is unreachable",
        goal: "bounded writes; other namespaces unaffected",
        tests: &[],
    },
];
