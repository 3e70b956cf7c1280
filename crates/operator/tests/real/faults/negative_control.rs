//! Negative control: migrations that violate the invariants must be detected on a real server.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::World;
use crate::support::availability_log::AvailabilityLog;
use crate::support::fixtures::{self, OLD};
use crate::support::path::{self, ObjectPath};

/// Invariants that are checked with the written versions.
const VIOLATED: [&str; 10] = [
    "BatchSize",
    "NoRestartDuringRollout",
    "NoRepeatedMove",
    "CompleteCounts",
    "MonotonicProgress",
    "ObservedGeneration",
    "TransitionTime",
    "NoDeleteInUse",
    "PauseStartsNothing",
    "FailurePolicy",
];

pub(super) async fn violations_are_detected() {
    let world = World::real_injecting().await;
    world.stop_operator().await;
    set_up(&world).await;
    let log = AvailabilityLog::start(&world).await;
    violate_invariants(&world).await;
    let history = log.stop(&world).await;
    let violations = history.migration_violations();
    let seen = violations.iter().filter_map(|line| Some(line.split_once(':')?.0));
    assert_eq!(
        seen.collect::<BTreeSet<_>>(),
        BTreeSet::from(VIOLATED),
        "{violations:#?}"
    );
    let finalizers = json!({"metadata": {"finalizers": null}});
    world.patch(&path::revision("old"), finalizers).await;
    // Resets the invalid status, because the operator's plans are checked from here on.
    let status = json!({"observedGeneration": 1, "conditions": [], "workloadMigration": null});
    world.patch_status(&path::istio("default"), status).await;
    world.start_operator().await;
    world.end().await;
}

/// Creates a migrating Istio, and two workloads whose pods were injected by the revision `old`.
async fn set_up(world: &World) {
    let migration =
        json!({"strategy": "Batched", "paused": true, "batched": {"batchSize": 1, "readinessTimeout": "1m"}});
    let strategy = json!({"type": "RevisionBased", "workloadMigration": migration});
    world
        .create(fixtures::istio(
            "default",
            OLD,
            json!({"updateStrategy": strategy}),
        ))
        .await;
    set_status(
        world,
        "InProgress",
        Status {
            batch: 1,
            migrated: 2,
            failed: 0,
            observed_generation: 1,
            ready_since: 1,
        },
    )
    .await;
    let mut revision = fixtures::revision("old", OLD, "istio-system", json!({}));
    revision["metadata"]["finalizers"] = json!(["example.com/stays"]);
    world.create(revision).await;
    world.create_scenario_namespace("apps", "").await;
    for name in ["cart", "web"] {
        let app = fixtures::deployment(&world.unique_namespace("apps"), name, "", "istio.io/rev=old");
        let at = ObjectPath::from_object(&app);
        world.create(app).await;
        world
            .until_object(&at, "is up", |app| app["status"]["availableReplicas"] == 1)
            .await;
    }
}

/// Status of the migration of three workloads.
struct Status {
    batch: u64,
    migrated: u64,
    failed: u64,
    observed_generation: u64,
    /// Seconds in the transition time of the condition Ready.
    ready_since: u64,
}

async fn set_status(world: &World, state: &str, status: Status) {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Healthy", "message": "",
        "lastTransitionTime": format!("2026-01-01T00:00:{:02}Z", status.ready_since)});
    let migration = json!({"state": state, "targetRevision": "new", "totalWorkloads": 3, "migratedWorkloads": status.migrated,
        "failedWorkloads": status.failed, "batched": {"currentBatch": status.batch, "totalBatches": 3}});
    let status = json!({"observedGeneration": status.observed_generation, "conditions": [ready], "workloadMigration": migration});
    world.patch_status(&path::istio("default"), status).await;
}

async fn violate_invariants(world: &World) {
    // Both workloads migrate at the same time, and one of them twice. A start time in the future extends
    // the readiness timeout.
    for (name, second) in [("cart", 1), ("web", 2), ("cart", 3)] {
        let time = format!("2126-01-01T00:00:{second:02}Z");
        let mark = json!({"revision": "new", "batch": 1, "startedAt": time}).to_string();
        let restarted = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": time}}});
        let patch = json!({"metadata": {"annotations": {"sailoperator.io/migration": mark}}, "spec": {"template": restarted}});
        let at = ObjectPath::namespaced("Deployment", &world.unique_namespace("apps"), name);
        world.patch(&at, patch).await;
    }
    world
        .delete(&ObjectPath::cluster_scoped("IstioRevision", "old"))
        .await;
    let pods = ObjectPath::namespaced("Pod", &world.unique_namespace("apps"), "").collection();
    world.call("DELETE", &pods, "", None).await;
    // A batch starts while the migration is paused, a migrated workload is no longer counted, and the
    // counts exceed the total.
    set_status(
        world,
        "InProgress",
        Status {
            batch: 2,
            migrated: 1,
            failed: 3,
            observed_generation: 1,
            ready_since: 1,
        },
    )
    .await;
    // An observed generation that does not exist, a changed transition time, and a failure that stops the
    // other workloads.
    set_status(
        world,
        "Failed",
        Status {
            batch: 2,
            migrated: 1,
            failed: 1,
            observed_generation: 99,
            ready_since: 2,
        },
    )
    .await;
}
