//! Fault scenarios that migrate workloads. On a real server, delays are shorter.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::{FaultScenario, Steps, healthy, steps, unchanged, upgrade};
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
    /// Delay between batches: long enough to observe the end of a batch and change the spec.
    delay: &'static str,
    /// Readiness timeout of a workload.
    readiness: &'static str,
    /// Duration of a pause: longer than any delay.
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

/// An Istio that migrates two workloads per batch.
fn istio(world: &World, version: &str, tags: &[&str]) -> Value {
    let durations = durations(world);
    let batched = json!({"batchSize": 2, "delayBetweenBatches": durations.delay, "readinessTimeout": durations.readiness});
    let strategy = json!({"type": "RevisionBased", "revisionTags": tags, "inactiveRevisionDeletionGracePeriodSeconds": world.grace(),
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    fixtures::istio("default", version, json!({"updateStrategy": strategy}))
}

/// Creates a workload of two pods and waits until it is available.
async fn app(world: &World, namespace: &str, name: &str, labels: &str) {
    let mut object = fixtures::deployment(&world.space(namespace), name, labels, "");
    object["spec"]["replicas"] = 2.into();
    let at = ObjectPath::of(&object);
    world.create(object).await;
    world
        .until_object(&at, "is up", |object| object["status"]["availableReplicas"] == 2)
        .await;
}

/// Creates a namespace with three workloads.
async fn apps(world: &World, namespace: &str, labels: &str, template: &str) {
    world.known_namespace(namespace, labels).await;
    for name in ["cart", "web", "zoo"] {
        app(world, namespace, name, template).await;
    }
}

async fn until(world: &World, state: &str, target: &str) {
    let what = format!("is {state} for {target}");
    world
        .until_object(&path::istio("default"), &what, |istio| {
            let migration = &istio["status"]["workloadMigration"];
            migration["state"] == state && migration["targetRevision"] == target
        })
        .await;
}

async fn until_migrated(world: &World, revision: &str) {
    until(world, "Completed", revision).await;
    world.until_state(&path::istio("default"), "Healthy").await;
}

async fn set(world: &World, change: Value) {
    world
        .patch(&path::istio("default"), json!({"spec": change}))
        .await;
}

/// Workloads in a namespace with the label of the old revision.
const LABELLED_NAMESPACE: Steps = steps!(world => {
    healthy(world, istio(world, OLD, &[])).await;
    apps(world, "apps", "istio.io/rev=default-v1-28-2", "").await;
});

/// Every workload migrates to the new version, and the old revision is deleted.
const ALL_MIGRATE: Steps = steps!(world => {
    upgrade(world).await;
    until_migrated(world, NEW_REVISION).await;
    world.until_gone(&path::revision(OLD_REVISION)).await;
});

/// A scenario that deletes no revision in use.
const fn migration(name: &'static str, before: Steps, act: Steps) -> FaultScenario {
    FaultScenario {
        name,
        before,
        transform: unchanged,
        act,
        destroys: false,
        migrates: true,
    }
}

pub const MIGRATIONS: &[FaultScenario] = &[
    migration("moves_by_namespace", LABELLED_NAMESPACE, ALL_MIGRATE),
    migration(
        "moves_by_template",
        steps!(world => {
            healthy(world, istio(world, OLD, &[])).await;
            apps(world, "apps", "", "istio.io/rev=default-v1-28-2").await;
        }),
        ALL_MIGRATE,
    ),
    migration(
        "moves_by_tag",
        steps!(world => {
            healthy(world, istio(world, OLD, &["default", "stable"])).await;
            world.until_state(&path::tag("stable"), "NotReferencedByAnything").await;
            apps(world, "apps", "istio.io/rev=stable", "").await;
            world.known_namespace("inn", "istio-injection=enabled").await;
            app(world, "inn", "bar", "").await;
        }),
        ALL_MIGRATE,
    ),
    migration(
        "moves_but_one_fails",
        LABELLED_NAMESPACE,
        steps!(world => {
            world.set_script(&world.space("apps"), "cart", Script::never_ready());
            upgrade(world).await;
            until(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_until_one_fails",
        LABELLED_NAMESPACE,
        steps!(world => {
            world.set_script(&world.space("apps"), "cart", Script::never_ready());
            set(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"failurePolicy": "FailFast"}}})).await;
            until(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_elsewhere_halfway",
        LABELLED_NAMESPACE,
        steps!(world => {
            upgrade(world).await;
            // Between two batches.
            world.until_object(&path::istio("default"), "has migrated a batch", |istio| {
                istio["status"]["workloadMigration"]["migratedWorkloads"] == 2
                    && istio["status"]["workloadMigration"]["targetRevision"] == NEW_REVISION
            }).await;
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            world.pass(durations(world).pause).await;
            set(world, json!({"version": OLDER})).await;
            world.until_state(&path::revision(OLDER_REVISION), "Healthy").await;
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_migrated(world, OLDER_REVISION).await;
            world.until_gone(&path::revision(OLD_REVISION)).await;
            world.until_gone(&path::revision(NEW_REVISION)).await;
        }),
    ),
    migration(
        "moves_from_several",
        steps!(world => {
            healthy(world, istio(world, OLDER, &[])).await;
            apps(world, "apps", "istio.io/rev=default-v1-27-9", "").await;
            // While paused, the workloads stay on their revision.
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            set(world, json!({"version": OLD})).await;
            world.until_state(&path::revision(OLD_REVISION), "Healthy").await;
            world.known_namespace("inn", "istio.io/rev=default-v1-28-2").await;
            app(world, "inn", "bar", "").await;
            world.known_namespace("own", "").await;
            app(world, "own", "den", "istio.io/rev=default-v1-28-2").await;
        }),
        steps!(world => {
            // In one patch: otherwise some workloads may migrate to the version in between.
            set(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_migrated(world, NEW_REVISION).await;
            world.until_gone(&path::revision(OLDER_REVISION)).await;
            world.until_gone(&path::revision(OLD_REVISION)).await;
        }),
    ),
];
