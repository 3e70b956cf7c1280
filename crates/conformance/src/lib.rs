//! Scenarios for a Kubernetes API: takes a client and a script, gives the script with the server's answers written in.
//!
//! The same scripts run against the simulator and against a real API server; answers are masked where two servers must differ (uids,
//! times, versions, addresses), so the texts can be compared byte by byte. A script is lines:
//!
//! ```text
//! # a comment
//! SHOW spec status.replicas          only these parts of objects are shown from here on
//! POST /apis/apps/v1/namespaces/{ns}/deployments
//! {"metadata": {"name": "web"}, …}
//! < 201 …                            answers; left out when a script is read, written when it is run
//! PATCH:merge /api/v1/…              also :json, :strategic, :apply; GET:table, GET:meta, GET:metalist
//! SET rv /metadata/resourceVersion   remembers a part of the last answer, for `{rv}`
//! WATCH w /api/v1/…?watch=true       begins a watch
//! EVENTS w 3                         waits for three of its events
//! UNTIL 404 /api/v1/…                asks until this is the answer (controllers work in their own time)
//! ```

mod mask;
mod run;
mod script;

pub use mask::Mask;
pub use run::{Failure, run};
pub use script::{Command, Script};

/// A scenario of this crate.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Its script with the expected answers.
    pub text: &'static str,
}

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(Scenario { name: $name, text: include_str!(concat!("../scenarios/", $name, ".txt")) }),*]
    };
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = scenarios![
    "create",
    "generate-name",
    "name-rules",
    "metadata-rules",
    "update",
    "no-op-update",
    "versioned-update",
    "delete",
    "delete-preconditions",
    "finalizers",
    "graceful-pod",
    "delete-collection",
    "dry-run",
    "field-validation",
    "decode-errors",
    "deployment-defaults",
    "deployment-rules",
    "generation",
    "immutable-selector",
    "scale",
    "stateful-set",
    "daemon-set",
    "job",
    "pod-defaults",
    "pod-rules",
    "pod-binding",
    "pod-status",
    "eviction",
    "service-defaults",
    "service-rules",
    "secret",
    "immutable-config",
    "json-patch",
    "strategic-merge",
    "patch-options",
    "label-selectors",
    "field-selectors",
    "pages",
    "watch",
    "watch-selector",
    "watch-initial-events",
    "metadata-only",
    "tables",
    "garbage-background",
    "garbage-foreground",
    "garbage-orphan",
    "namespace",
    "events",
    "role-bindings",
    "webhook-configuration",
    "not-served",
    "quantities",
    "reviews",
    "apply-create",
    "apply-no-op",
    "apply-two-managers",
    "apply-conflict",
    "apply-force",
    "apply-shared",
    "apply-remove-field",
    "apply-list-map",
    "apply-list-order",
    "apply-set",
    "apply-atomic",
    "apply-maps",
    "apply-then-update",
    "apply-after-update",
    "apply-put",
    "apply-status",
    "apply-custom",
    "apply-custom-free",
    "apply-custom-status",
    "apply-null",
    "apply-defaults",
    "apply-dry-run",
    "apply-errors",
    "apply-resource-version",
    "apply-empty",
    "owners-writes",
    "owners-kinds",
    "owners-reset",
    "owners-given",
    "owners-scale",
    "owners-status",
    "owners-many",
    "apply-kubectl",
    "apply-service",
    "apply-invalid",
    "apply-quantity",
    "apply-versions",
];
