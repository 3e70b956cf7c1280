//! Kills the operator fifty times during a migration of 100 workloads. No workload may be restarted twice,
//! and the counts must be correct.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_testkit::suite::TestCase;
use serde_json::{Value, json};

use crate::process::{CRASH_FAULTS, Process};
use crate::support::World;
use crate::support::calls::{CallMarker, OPERATOR};
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};
use crate::support::world::Backing;

pub(crate) const KILLS: &[TestCase] = &[TestCase {
    name: "kill::nothing_is_restarted_twice",
    start: || Box::pin(nothing_is_restarted_twice()),
}];

pub(crate) const SCALE: &[TestCase] = &[TestCase {
    name: "kill::two_hundred_workloads",
    start: || Box::pin(two_hundred_workloads()),
}];

const KILL_COUNT: usize = 50;
const WORKLOADS: usize = 100;
const TARGET: &str = "default-v1-29-1";

/// Labels of a namespace, and labels of its templates.
const LABELS: [(&str, &str); 4] = [
    ("istio.io/rev=default-v1-28-2", ""),
    ("istio-injection=enabled", ""),
    ("", "istio.io/rev=default-v1-28-2"),
    ("istio.io/rev=default-v1-28-2", ""),
];

/// Size of a mesh.
struct Size {
    namespaces: usize,
    workloads: usize,
    batch: usize,
}

/// Creates a mesh of the old version, waits until its workloads are available, and returns their paths.
async fn create_mesh(world: &World, size: Size) -> Vec<ObjectPath> {
    let batched = json!({"batchSize": size.batch, "delayBetweenBatches": "1s", "readinessTimeout": "10m"});
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 3,
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    world
        .create(fixtures::istio(
            "default",
            OLD,
            json!({"updateStrategy": strategy}),
        ))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let mut spaces = Vec::new();
    for space in 0..size.namespaces {
        spaces.push(world.namespace(LABELS[space % LABELS.len()].0).await);
    }
    let mut apps = Vec::new();
    for number in 0..size.workloads {
        let space = number % size.namespaces;
        let labels = LABELS[space % LABELS.len()].1;
        let mut app = fixtures::deployment(&spaces[space], &format!("app-{number:03}"), labels, "");
        app["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1.into();
        apps.push(ObjectPath::from_object(&world.create(app).await));
    }
    for app in &mut apps {
        app.kind = "Deployment".into();
        world
            .until_object(app, "is up", |app| app["status"]["availableReplicas"] == 1)
            .await;
    }
    world.settle().await;
    apps
}

async fn workload_generations(world: &World, apps: &[ObjectPath]) -> Vec<i64> {
    let mut all = Vec::new();
    for app in apps {
        all.push(
            world.get(app).await.unwrap()["metadata"]["generation"]
                .as_i64()
                .unwrap(),
        );
    }
    all
}

async fn migration(world: &World) -> Value {
    let istio = world.get(&path::istio("default")).await.unwrap();
    istio["status"]["workloadMigration"].clone()
}

async fn until_ended(world: &World) {
    for _ in 0..6_000 {
        let status = migration(world).await;
        if status["targetRevision"] == TARGET
            && ["Completed", "Failed"].iter().any(|end| status["state"] == *end)
        {
            return;
        }
        world.sleep(Duration::from_millis(100)).await;
    }
    panic!("the migration did not end: {:#}", migration(world).await);
}

fn kubeconfig(world: &World) -> std::path::PathBuf {
    match &world.backing {
        Backing::Real(real) => real.cluster.kubeconfig(OPERATOR),
        Backing::Sim(_) => panic!("no real server"),
    }
}

/// Number of writes of the operator by kind.
struct Writes {
    patches: BTreeMap<String, usize>,
    relabels: usize,
    statuses: usize,
    throttled: usize,
}

fn writes(mark: &CallMarker) -> Writes {
    let CallMarker::Audit(audit) = mark else {
        panic!("no audit log")
    };
    let mut writes = Writes {
        patches: BTreeMap::new(),
        relabels: 0,
        statuses: 0,
        throttled: 0,
    };
    for entry in audit.entries().unwrap() {
        if entry.user != OPERATOR {
            continue;
        }
        writes.throttled += usize::from(entry.code == 429);
        let path = entry.uri.split('?').next().unwrap_or_default();
        if entry.verb != "patch" || entry.code != 200 {
            continue;
        }
        if path.contains("/deployments/app-") {
            *writes.patches.entry(path.to_owned()).or_default() += 1;
        } else if path.starts_with("/api/v1/namespaces/app-") {
            writes.relabels += 1;
        } else if path.ends_with("/istios/default/status") {
            writes.statuses += 1;
        }
    }
    writes
}

/// Checks that each template changed exactly once and that the counts are correct. The audit log may lack a
/// write if its client was killed during the call.
async fn check(world: &World, apps: &[ObjectPath], before: &[i64], mark: &CallMarker) -> Value {
    let status = migration(world).await;
    let after = workload_generations(world, apps).await;
    for ((app, before), after) in apps.iter().zip(before).zip(&after) {
        let object = world.get(app).await.unwrap();
        assert_eq!(
            *after,
            before + 1,
            "{app}: the template changes exactly once: {:#} {status:#}",
            object["metadata"]
        );
        let history = &object["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
        assert_eq!(history, "2", "{app}: one restart adds one revision");
    }
    let patches = writes(mark).patches;
    assert!(
        patches.values().all(|count| *count == 1),
        "each workload is patched once: {patches:?}"
    );
    let count = |key: &str| status[key].as_u64().unwrap_or(0);
    assert_eq!(status["state"], "Completed", "{status:#}");
    assert_eq!(count("totalWorkloads"), apps.len() as u64, "{status:#}");
    assert_eq!(count("migratedWorkloads"), apps.len() as u64, "{status:#}");
    assert_eq!(
        (count("failedWorkloads"), count("skippedWorkloads")),
        (0, 0),
        "{status:#}"
    );
    status
}

/// Returns the number of writes until the next operator is killed, so that fifty kills are spread over the
/// migration. The number of writes per workload varies, because one write may contain several status
/// changes.
fn writes_until_kill(kills: usize, migrated: usize) -> usize {
    // Workloads of the running batch are not counted yet.
    let due = kills * (WORKLOADS - 20) / KILL_COUNT;
    if migrated < due {
        2 + kills % 6
    } else {
        1 + kills % 2
    }
}

async fn nothing_is_restarted_twice() {
    let world = World::real_injecting().await;
    let apps = create_mesh(
        &world,
        Size {
            namespaces: 10,
            workloads: WORKLOADS,
            batch: 10,
        },
    )
    .await;
    world.stop_operator().await;
    let (before, mark) = (workload_generations(&world, &apps).await, world.mark());
    let begin = std::time::Instant::now();
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    let kubeconfig = kubeconfig(&world);
    // Waits for the new control plane first, because the operator is killed while workloads migrate.
    let first = Process::start(&kubeconfig, None);
    world
        .until_object(&path::istio("default"), "migrates workloads", |istio| {
            let status = &istio["status"]["workloadMigration"];
            status["targetRevision"] == TARGET && status["state"] == "InProgress"
        })
        .await;
    drop(first);
    let (mut kills, mut crashes) = (1, [0; 3]);
    while kills < KILL_COUNT {
        let migrated = migration(&world).await["migratedWorkloads"].as_u64().unwrap_or(0);
        let crash = (
            writes_until_kill(kills, migrated as usize),
            kills % CRASH_FAULTS.len(),
        );
        let operator = Process::start(&kubeconfig, Some(crash));
        if !operator.kill_at_last_write(until_ended(&world)).await {
            break;
        }
        crashes[kills % CRASH_FAULTS.len()] += 1;
        kills += 1;
    }
    let left = migration(&world).await;
    let last = Process::start(&kubeconfig, None);
    until_ended(&world).await;
    let took = begin.elapsed();
    let status = check(&world, &apps, &before, &mark).await;
    let writes = writes(&mark);
    println!(
        "migration kills: {kills} kills (one between writes, {} before, {} during, {} after one), the last with {} of 100 workloads migrated; each restarted once, \
         {} of {} workloads reported as migrated, {} statuses, {} namespaces relabeled, {:.0} s",
        crashes[0],
        crashes[1],
        crashes[2],
        left["migratedWorkloads"],
        status["migratedWorkloads"],
        status["totalWorkloads"],
        writes.statuses,
        writes.relabels,
        took.as_secs_f64(),
    );
    assert_eq!(
        kills, KILL_COUNT,
        "the migration ended before the last kill, or an operator ended by itself: {left:#}"
    );
    drop(last);
    world.start_operator().await;
    world.end().await;
}

/// The scale test of the proposal: 100 namespaces and 200 Deployments, with the operator as a process.
async fn two_hundred_workloads() {
    let world = World::real_injecting().await;
    let apps = create_mesh(
        &world,
        Size {
            namespaces: 100,
            workloads: 200,
            batch: 20,
        },
    )
    .await;
    world.stop_operator().await;
    let operator = Process::start(&kubeconfig(&world), None);
    world.sleep(Duration::from_secs(5)).await;
    world.settle().await;
    let (before, mark) = (workload_generations(&world, &apps).await, world.mark());
    let (rest, _) = operator.memory();
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    until_ended(&world).await;
    world.settle().await;
    let (after, peak) = operator.memory();
    let status = check(&world, &apps, &before, &mark).await;
    let writes = writes(&mark);
    let batches = status["batched"]["totalBatches"].as_u64().unwrap();
    let time = |key: &str| status[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let took = time("completionTime").duration_since(time("startTime"));
    println!(
        "migration real 200: {batches} batches took {} s; 200 workloads patched once each, {} of 50 namespaces, {} statuses (at most {}), {} throttled; \
         memory {rest:.1} MiB before, {after:.1} MiB after, {peak:.1} MiB at its peak",
        took.as_secs(),
        writes.relabels,
        writes.statuses,
        2 * batches + 200,
        writes.throttled,
    );
    assert_eq!(
        writes.patches.len(),
        apps.len(),
        "each workload has a patch in the audit log"
    );
    assert_eq!((writes.relabels, writes.throttled), (50, 0));
    assert!(
        writes.statuses as u64 <= 2 * batches + 200 + 10,
        "{}",
        writes.statuses
    );
    assert!(
        after <= rest * 1.5,
        "memory grew from {rest:.1} to {after:.1} MiB"
    );
    drop(operator);
    world.start_operator().await;
    world.end().await;
}
