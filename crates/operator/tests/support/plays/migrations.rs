//! The plays in which workloads move: what is there before, and what somebody does. Where time is the machine's, everything waits for less of it.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::{Play, Steps, healthy, same, steps, upgrade};
use crate::support::World;
use crate::support::at::{self, At};
use crate::support::made::{self, NEW, OLD};

/// One before the old one.
const OLDER: &str = "v1.27.9";
const OLDER_REVISION: &str = "default-v1-27-9";
const OLD_REVISION: &str = "default-v1-28-2";
const NEW_REVISION: &str = "default-v1-29-1";

/// How long things take.
struct Pace {
    /// Between two batches: longer than it takes to see that one is over and to say what shall come instead.
    delay: &'static str,
    /// For a workload to come up.
    readiness: &'static str,
    /// Longer than anything that is not paused would wait.
    pause: Duration,
}

const SIMULATED: Pace = Pace {
    delay: "5s",
    readiness: "1m",
    pause: Duration::from_mins(2),
};

const REAL: Pace = Pace {
    delay: "2s",
    readiness: "20s",
    pause: Duration::from_secs(5),
};

fn pace(world: &World) -> &'static Pace {
    if world.is_real() { &REAL } else { &SIMULATED }
}

/// An Istio that moves its workloads two at a time.
fn istio(world: &World, version: &str, tags: &[&str]) -> Value {
    let pace = pace(world);
    let batched =
        json!({"batchSize": 2, "delayBetweenBatches": pace.delay, "readinessTimeout": pace.readiness});
    let strategy = json!({"type": "RevisionBased", "revisionTags": tags, "inactiveRevisionDeletionGracePeriodSeconds": world.grace(),
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    made::istio("default", version, json!({"updateStrategy": strategy}))
}

/// A workload of two pods, up and running.
async fn app(world: &World, namespace: &str, name: &str, labels: &str) {
    let mut object = made::deployment(&world.space(namespace), name, labels, "");
    object["spec"]["replicas"] = 2.into();
    let at = At::of(&object);
    world.create(object).await;
    world
        .until_object(&at, "is up", |object| object["status"]["availableReplicas"] == 2)
        .await;
}

/// A namespace with three workloads.
async fn shop(world: &World, namespace: &str, labels: &str, template: &str) {
    world.known_namespace(namespace, labels).await;
    for name in ["cart", "web", "zoo"] {
        app(world, namespace, name, template).await;
    }
}

async fn until(world: &World, state: &str, target: &str) {
    let what = format!("has {state} its way to {target}");
    world
        .until_object(&at::istio("default"), &what, |istio| {
            let migration = &istio["status"]["workloadMigration"];
            migration["state"] == state && migration["targetRevision"] == target
        })
        .await;
}

async fn until_moved(world: &World, revision: &str) {
    until(world, "Completed", revision).await;
    world.until_state(&at::istio("default"), "Healthy").await;
}

async fn set(world: &World, change: Value) {
    world.patch(&at::istio("default"), json!({"spec": change})).await;
}

/// A shop whose namespace names the old revision.
const SHOP: Steps = steps!(world => {
    healthy(world, istio(world, OLD, &[])).await;
    shop(world, "shop", "istio.io/rev=default-v1-28-2", "").await;
});

/// Everything moves to the new version, and the old one goes.
const ALL_MOVE: Steps = steps!(world => {
    upgrade(world).await;
    until_moved(world, NEW_REVISION).await;
    world.until_gone(&at::revision(OLD_REVISION)).await;
});

/// A play in which nothing is destroyed, of what is there as it is.
const fn migration(name: &'static str, before: Steps, act: Steps) -> Play {
    Play {
        name,
        before,
        disguise: same,
        act,
        destroys: false,
        moves: true,
    }
}

pub const MIGRATIONS: &[Play] = &[
    migration("moves_by_namespace", SHOP, ALL_MOVE),
    migration(
        "moves_by_template",
        steps!(world => {
            healthy(world, istio(world, OLD, &[])).await;
            shop(world, "shop", "", "istio.io/rev=default-v1-28-2").await;
        }),
        ALL_MOVE,
    ),
    migration(
        "moves_by_tag",
        steps!(world => {
            healthy(world, istio(world, OLD, &["default", "stable"])).await;
            world.until_state(&at::tag("stable"), "NotReferencedByAnything").await;
            shop(world, "shop", "istio.io/rev=stable", "").await;
            world.known_namespace("inn", "istio-injection=enabled").await;
            app(world, "inn", "bar", "").await;
        }),
        ALL_MOVE,
    ),
    migration(
        "moves_but_one_fails",
        SHOP,
        steps!(world => {
            world.behave(&world.space("shop"), "cart", Script::never_ready());
            upgrade(world).await;
            until(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_until_one_fails",
        SHOP,
        steps!(world => {
            world.behave(&world.space("shop"), "cart", Script::never_ready());
            set(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"failurePolicy": "FailFast"}}})).await;
            until(world, "Failed", NEW_REVISION).await;
        }),
    ),
    migration(
        "moves_elsewhere_halfway",
        SHOP,
        steps!(world => {
            upgrade(world).await;
            // Between two batches.
            world.until_object(&at::istio("default"), "has moved a batch", |istio| {
                istio["status"]["workloadMigration"]["migratedWorkloads"] == 2
                    && istio["status"]["workloadMigration"]["targetRevision"] == NEW_REVISION
            }).await;
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            world.pass(pace(world).pause).await;
            set(world, json!({"version": OLDER})).await;
            world.until_state(&at::revision(OLDER_REVISION), "Healthy").await;
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_moved(world, OLDER_REVISION).await;
            world.until_gone(&at::revision(OLD_REVISION)).await;
            world.until_gone(&at::revision(NEW_REVISION)).await;
        }),
    ),
    migration(
        "moves_from_several",
        steps!(world => {
            healthy(world, istio(world, OLDER, &[])).await;
            shop(world, "shop", "istio.io/rev=default-v1-27-9", "").await;
            // Whoever holds it back keeps the workloads where they are.
            set(world, json!({"updateStrategy": {"workloadMigration": {"paused": true}}})).await;
            set(world, json!({"version": OLD})).await;
            world.until_state(&at::revision(OLD_REVISION), "Healthy").await;
            world.known_namespace("inn", "istio.io/rev=default-v1-28-2").await;
            app(world, "inn", "bar", "").await;
            world.known_namespace("own", "").await;
            app(world, "own", "den", "istio.io/rev=default-v1-28-2").await;
        }),
        steps!(world => {
            // At once: otherwise some may set out for the version in between.
            set(world, json!({"version": NEW, "updateStrategy": {"workloadMigration": {"paused": false}}})).await;
            until_moved(world, NEW_REVISION).await;
            world.until_gone(&at::revision(OLDER_REVISION)).await;
            world.until_gone(&at::revision(OLD_REVISION)).await;
        }),
    ),
];
