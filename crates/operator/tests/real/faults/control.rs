//! Somebody moves workloads as nobody may: what the diary of a real server shows, the judge must see.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::World;
use crate::support::at::{self, At};
use crate::support::diary::Diary;
use crate::support::made::{self, OLD};

/// Every promise that is judged by what was written.
const BROKEN: [&str; 10] = [
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

pub(super) async fn moves_that_break_promises_are_seen() {
    let world = World::real_injecting().await;
    world.stop_operator().await;
    furnish(&world).await;
    let diary = Diary::begin(&world).await;
    break_promises(&world).await;
    let history = diary.close_unjudged(&world).await;
    let broken = history.broken_moves();
    let seen = broken.iter().filter_map(|line| Some(line.split_once(':')?.0));
    assert_eq!(
        seen.collect::<BTreeSet<_>>(),
        BTreeSet::from(BROKEN),
        "{broken:#?}"
    );
    let finalizers = json!({"metadata": {"finalizers": null}});
    world.patch(&at::revision("old"), finalizers).await;
    world.start_operator().await;
    world.end().await;
}

/// An Istio on its way, and two workloads whose pods say that the revision `old` has injected them.
async fn furnish(world: &World) {
    let migration =
        json!({"strategy": "Batched", "paused": true, "batched": {"batchSize": 1, "readinessTimeout": "1m"}});
    let strategy = json!({"type": "RevisionBased", "workloadMigration": migration});
    world
        .create(made::istio("default", OLD, json!({"updateStrategy": strategy})))
        .await;
    tell(world, "InProgress", (1, 2, 0), (1, 1)).await;
    let mut revision = made::revision("old", OLD, "istio-system", json!({}));
    revision["metadata"]["finalizers"] = json!(["example.com/stays"]);
    world.create(revision).await;
    world.known_namespace("shop", "").await;
    for name in ["cart", "web"] {
        let app = made::deployment(&world.space("shop"), name, "", "istio.io/rev=old");
        let at = At::of(&app);
        world.create(app).await;
        world
            .until_object(&at, "is up", |app| app["status"]["availableReplicas"] == 1)
            .await;
    }
}

/// A status: the state, the batch, how many of three were moved and failed; the generation it is about, and the second at which the Istio was ready.
async fn tell(
    world: &World,
    state: &str,
    (batch, moved, failed): (u64, u64, u64),
    (about, second): (u64, u64),
) {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Healthy", "message": "",
        "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z")});
    let migration = json!({"state": state, "targetRevision": "new", "totalWorkloads": 3, "migratedWorkloads": moved,
        "failedWorkloads": failed, "batched": {"currentBatch": batch, "totalBatches": 3}});
    let status = json!({"observedGeneration": about, "conditions": [ready], "workloadMigration": migration});
    world.patch_status(&at::istio("default"), status).await;
}

async fn break_promises(world: &World) {
    // Both at once, and one of them twice; whoever sets out in the future is awaited for long.
    for (name, second) in [("cart", 1), ("web", 2), ("cart", 3)] {
        let moment = format!("2126-01-01T00:00:{second:02}Z");
        let mark = json!({"revision": "new", "batch": 1, "startedAt": moment}).to_string();
        let restarted = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": moment}}});
        let patch = json!({"metadata": {"annotations": {"sailoperator.io/migration": mark}}, "spec": {"template": restarted}});
        let at = At::inside("Deployment", &world.space("shop"), name);
        world.patch(&at, patch).await;
    }
    world.delete(&At::cluster("IstioRevision", "old")).await;
    let pods = At::inside("Pod", &world.space("shop"), "").collection();
    world.call("DELETE", &pods, "", None).await;
    // A batch is opened, one is not moved any more, more are told than there are.
    tell(world, "InProgress", (2, 1, 3), (1, 1)).await;
    // About a generation that never was, ready since another moment, and given up though nobody asked for that.
    tell(world, "Failed", (2, 1, 1), (99, 2)).await;
}
