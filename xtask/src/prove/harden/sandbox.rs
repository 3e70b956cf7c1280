//! Rows about the sandbox.

use super::{Item, integration};

pub(super) const ITEMS: &[Item] = &[
    Item {
        key: "workloads",
        claim: "sandbox: Jobs, quotas, taints and a real helm install",
        goal: "as on a real server",
        before: "Jobs did not complete, helm install failed",
        tests: &[
            integration("conformance", "every_scenario_produces_its_transcript"),
            integration("sandbox_tools", "jobs_complete"),
            integration("sandbox_tools", "pods_and_nodes_can_be_debugged"),
            integration("sandbox_tools", "taints_evict_pods"),
            integration("sandbox_tools", "helm_installs_the_operators_chart"),
        ],
    },
    Item {
        key: "controllers",
        claim: "sandbox: controllers back off when a webhook is unreachable",
        goal: "bounded writes; other namespaces unaffected",
        before: "400 to 700 writes per second",
        tests: &[
            integration("webhooks", "controllers_back_off_when_a_webhook_is_unreachable"),
            integration("sandbox_webhook", "the_certificate_of_a_webhook_may_be_a_ca"),
            integration(
                "sandbox_tools",
                "a_mesh_is_upgraded_and_workloads_migrate_with_kubectl",
            ),
        ],
    },
];
