//! Fault scenarios that migrate workloads. Delays are shorter on a real server.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::{FaultScenario, Steps, create_healthy, steps, upgrade};
use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

/// The version before [`OLD`].
const OLDER: &str = "v1.27.9";
const OLDER_REVISION: &str = "default-v1-27-9";
const OLD_REVISION: &str = "default-v1-28-2";
const NEW_REVISION: &str = "default-v1-29-1";

/// Durations of a migration.
struct Durations {
    /// Delay between batches, which is long enough to observe the end of a batch and change the spec.
    delay: &'static str,
    /// Readiness timeout of a workload.
    readiness: &'static str,
    /// Duration of a pause, which is longer than any delay.
    pause: Duration,
}

const SIMULATED: Durations = Durations {
    delay: "5s",
    readiness: "1m",
    pause: Duration::from_mins(2),
};

const REAL: Durations = Durations {
    delay: "2s",
    readiness: "20s",
    pause: Duration::from_secs(5),
};

fn durations(world: &World) -> &'static Durations {
    if world.is_real() { &REAL } else { &SIMULATED }
}

/// Returns an Istio that migrates two workloads per batch.
fn istio(world: &World, version: &str, tags: &[&str]) -> Value {
    let durations = durations(world);
    let batched = json!({"batchSize": 2, "delayBetweenBatches": durations.delay, "readinessTimeout": durations.readiness});
    let strategy = json!({"type": "RevisionBased", "revisionTags": tags, "inactiveRevisionDeletionGracePeriodSeconds": world.grace_seconds(),
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    fixtures::istio("default", version, json!({"updateStrategy": strategy}))
}

/// Creates a workload with two pods, and waits until it is available.
async fn create_app(world: &World, namespace: &str, name: &str, labels: &str) {
    let mut object = fixtures::deployment(&world.unique_namespace(namespace), name, labels, "");
    object["spec"]["replicas"] = 2.into();
    let at = ObjectPath::from_object(&object);
    world.create(object).await;
    world
        .until_object(&at, "is up", |object| object["status"]["availableReplicas"] == 2)
        .await;
}

/// Creates a namespace with three workloads.
async fn create_apps(world: &World, namespace: &str, labels: &str, template: &str) {
    world.create_scenario_namespace(namespace, labels).await;
    for name in ["cart", "web", "zoo"] {
        create_app(world, namespace, name, template).await;
    }
}

async fn until_migration_state(world: &World, state: &str, target: &str) {
    let what = format!("is {state} for {target}");
    world
        .until_object(&path::istio("default"), &what, |istio| {
            let migration = &istio["status"]["workloadMigration"];
            migration["state"] == state && migration["targetRevision"] == target
        })
        .await;
}

async fn until_migrated(world: &World, revision: &str) {
    until_migration_state(world, "Completed", revision).await;
    world.until_state(&path::istio("default"), "Healthy").await;
}

async fn patch_spec(world: &World, change: Value) {
    world
        .patch(&path::istio("default"), json!({"spec": change}))
        .await;
}

/// Creates workloads in a namespace with the label of the old revision.
const LABELED_NAMESPACE: Steps = steps!(world => {
    create_healthy(world, istio(world, OLD, &[])).await;
    create_apps(world, "apps", "istio.io/rev=default-v1-28-2", "").await;
});

/// Upgrades, and waits until all workloads have migrated and the old revision is deleted.
const ALL_MIGRATE: Steps = steps!(world => {
    upgrade(world).await;
    until_migrated(world, NEW_REVISION).await;
    world.until_gone(&path::revision(OLD_REVISION)).await;
});

/// Returns a migration scenario that deletes no revision in use.
const fn migration(name: &'static str, set_up: Steps, action: Steps) -> FaultScenario {
    FaultScenario {
        migrates: true,
        ..FaultScenario::new(name, set_up, action)
    }
}

pub const MIGRATIONS: &[FaultScenario] = &[
    migration("moves_by_namespace", LABELED_NAMESPACE, ALL_MIGRATE),
    migration(
        "moves_by_template",
        steps!(world => {
            create_healthy(world, istio(world, OLD, &[])).await;
            create_apps(world, "apps", "", "istio.io/rev=default-v1-28-2").await;
        }),
        ALL_MIGRATE,
    ),
    migration(
        "moves_by_tag",
        steps!(world => {
            create_healthy(world, istio(world, OLD, &["default", "stable"])).await;
            world.until_state(&path::tag("stable"), "NotReferencedByAnything").await;
            create_apps(world, "apps", "istio.io/rev=stable", "").await;
            world.create_scenario_namespace("inn", "istio-injection=enabled").await;
            create_app(world, "inn", "bar", "").await;
        }),
        ALL_MIGRATE,
    ),
    migration(
        "moves_but_one_fails",
        LABELED_NAMESPACE,
        steps!(world => {
            world.set_script(&world.unique_namespace("apps"), "cart", Script::never_ready());
            upgrade(world).await;
            until_migration_state(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_until_one_fails",
        LABELED_NAMESPACE,
        steps!(world => {
            world.set_script(&world.unique_namespace("apps"), "cart", Script::never_ready());
            patch_spec(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"failurePolicy": "FailFast"}}})).await;
            until_migration_state(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_elsewhere_halfway",
        LABELED_NAMESPACE,
        steps!(world => {
            upgrade(world).await;
            // The spec changes between two batches.
            world.until_object(&path::istio("default"), "has migrated a batch", |istio| {
                istio["status"]["workloadMigration"]["migratedWorkloads"] == 2
                    && istio["status"]["workloadMigration"]["targetRevision"] == NEW_REVISION
            }).await;
            patch_spec(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            world.sleep(durations(world).pause).await;
            patch_spec(world, json!({"version": OLDER})).await;
            world.until_state(&path::revision(OLDER_REVISION), "Healthy").await;
            patch_spec(world, json!({"updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_migrated(world, OLDER_REVISION).await;
            world.until_gone(&path::revision(OLD_REVISION)).await;
            world.until_gone(&path::revision(NEW_REVISION)).await;
        }),
    ),
    migration(
        "moves_from_several",
        steps!(world => {
            create_healthy(world, istio(world, OLDER, &[])).await;
            create_apps(world, "apps", "istio.io/rev=default-v1-27-9", "").await;
            // While paused, the workloads stay on their revision.
            patch_spec(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            patch_spec(world, json!({"version": OLD})).await;
            world.until_state(&path::revision(OLD_REVISION), "Healthy").await;
            world.create_scenario_namespace("inn", "istio.io/rev=default-v1-28-2").await;
            create_app(world, "inn", "bar", "").await;
            world.create_scenario_namespace("own", "").await;
            create_app(world, "own", "den", "istio.io/rev=default-v1-28-2").await;
        }),
        steps!(world => {
            // One patch, because otherwise some workloads might migrate to the version in between.
            patch_spec(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_migrated(world, NEW_REVISION).await;
            world.until_gone(&path::revision(OLDER_REVISION)).await;
            world.until_gone(&path::revision(OLD_REVISION)).await;
        }),
    ),
];
