//! A hundred workloads move while the operator is killed fifty times: nothing is restarted twice, and the counts are right in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_testkit::suite::TestCase;
use serde_json::{Value, json};

use crate::process::{MOMENTS, Process};
use crate::support::World;
use crate::support::at::{self, At};
use crate::support::calls::{Mark, OPERATOR};
use crate::support::made::{self, NEW, OLD};
use crate::support::world::Backing;

pub(crate) const KILLS: &[TestCase] = &[TestCase {
    name: "kill::nothing_is_restarted_twice",
    start: || Box::pin(nothing_is_restarted_twice()),
}];

pub(crate) const SCALE: &[TestCase] = &[TestCase {
    name: "kill::two_hundred_workloads",
    start: || Box::pin(two_hundred_workloads()),
}];

const LIVES: usize = 50;
const WORKLOADS: usize = 100;
const TARGET: &str = "default-v1-29-1";

/// How the workloads of a namespace come by their proxies: labels of the namespace, labels of the templates.
const LABELS: [(&str, &str); 4] = [
    ("istio.io/rev=default-v1-28-2", ""),
    ("istio-injection=enabled", ""),
    ("", "istio.io/rev=default-v1-28-2"),
    ("istio.io/rev=default-v1-28-2", ""),
];

/// A mesh on the old version with so many workloads, all of them up; gives where they are.
async fn furnish(world: &World, (namespaces, workloads, batch): (usize, usize, usize)) -> Vec<At> {
    let batched = json!({"batchSize": batch, "delayBetweenBatches": "1s", "readinessTimeout": "10m"});
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 3,
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    world
        .create(made::istio("default", OLD, json!({"updateStrategy": strategy})))
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    let mut spaces = Vec::new();
    for space in 0..namespaces {
        spaces.push(world.namespace(LABELS[space % LABELS.len()].0).await);
    }
    let mut apps = Vec::new();
    for number in 0..workloads {
        let space = number % namespaces;
        let labels = LABELS[space % LABELS.len()].1;
        let mut app = made::deployment(&spaces[space], &format!("app-{number:03}"), labels, "");
        app["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1.into();
        apps.push(At::of(&world.create(app).await));
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

/// Generations of the workloads.
async fn generations(world: &World, apps: &[At]) -> Vec<i64> {
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
    let istio = world.get(&at::istio("default")).await.unwrap();
    istio["status"]["workloadMigration"].clone()
}

async fn until_over(world: &World) {
    for _ in 0..6_000 {
        let status = migration(world).await;
        if status["targetRevision"] == TARGET
            && ["Completed", "Failed"].iter().any(|end| status["state"] == *end)
        {
            return;
        }
        world.pass(Duration::from_millis(100)).await;
    }
    panic!("never over: {:#}", migration(world).await);
}

fn kubeconfig(world: &World) -> std::path::PathBuf {
    match &world.backing {
        Backing::Real(real) => real.cluster.kubeconfig(OPERATOR),
        Backing::Sim(_) => panic!("no real server"),
    }
}

/// How often the operator changed each workload, and what else it was answered.
struct Asked {
    patches: BTreeMap<String, usize>,
    relabels: usize,
    statuses: usize,
    throttled: usize,
}

fn asked(mark: &Mark) -> Asked {
    let Mark::Audit(audit) = mark else {
        panic!("no audit log")
    };
    let mut asked = Asked {
        patches: BTreeMap::new(),
        relabels: 0,
        statuses: 0,
        throttled: 0,
    };
    for entry in audit.entries().unwrap() {
        if entry.user != OPERATOR {
            continue;
        }
        asked.throttled += usize::from(entry.code == 429);
        let path = entry.uri.split('?').next().unwrap_or_default();
        if entry.verb != "patch" || entry.code != 200 {
            continue;
        }
        if path.contains("/deployments/app-") {
            *asked.patches.entry(path.to_owned()).or_default() += 1;
        } else if path.starts_with("/api/v1/namespaces/app-") {
            asked.relabels += 1;
        } else if path.ends_with("/istios/default/status") {
            asked.statuses += 1;
        }
    }
    asked
}

/// Each workload's template has changed exactly once, and the counts are told. Nothing was patched twice that the audit log knows of; how a write ended
/// whose author died meanwhile, it may not know.
async fn check(world: &World, apps: &[At], before: &[i64], mark: &Mark) -> Value {
    let after = generations(world, apps).await;
    for ((app, before), after) in apps.iter().zip(before).zip(&after) {
        assert_eq!(*after, before + 1, "{app}: its template changed once");
        let object = world.get(app).await.unwrap();
        let history = &object["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
        assert_eq!(history, "2", "{app}: one restart is one revision more");
    }
    let patches = asked(mark).patches;
    assert!(
        patches.values().all(|count| *count == 1),
        "each once: {patches:?}"
    );
    let status = migration(world).await;
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

/// How many writes the next operator is granted, so that fifty of them die all over the migration and none is left without work: how many writes a
/// workload takes depends on how busy the machine is, since what is told of several at once is told once.
fn writes_of_life(lives: usize, moved: usize) -> usize {
    // A batch may be on its way that is not counted yet.
    let due = lives * (WORKLOADS - 20) / LIVES;
    if moved < due { 2 + lives % 6 } else { 1 + lives % 2 }
}

async fn nothing_is_restarted_twice() {
    let world = World::real_injecting().await;
    let apps = furnish(&world, (10, WORKLOADS, 10)).await;
    world.stop_operator().await;
    let (before, mark) = (generations(&world, &apps).await, world.mark());
    let begin = std::time::Instant::now();
    world
        .patch(&at::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    let kubeconfig = kubeconfig(&world);
    // The new control plane comes up first; the operator is killed while workloads move.
    let first = Process::start(&kubeconfig, None);
    world
        .until_object(&at::istio("default"), "moves workloads", |istio| {
            let status = &istio["status"]["workloadMigration"];
            status["targetRevision"] == TARGET && status["state"] == "InProgress"
        })
        .await;
    drop(first);
    let (mut kills, mut moments) = (1, [0; 3]);
    while kills < LIVES {
        let moved = migration(&world).await["migratedWorkloads"].as_u64().unwrap_or(0);
        let death = (writes_of_life(kills, moved as usize), kills % MOMENTS.len());
        let life = Process::start(&kubeconfig, Some(death));
        if !life.kill_at_last_write(until_over(&world)).await {
            break;
        }
        moments[kills % MOMENTS.len()] += 1;
        kills += 1;
    }
    let left = migration(&world).await;
    let last = Process::start(&kubeconfig, None);
    until_over(&world).await;
    let took = begin.elapsed();
    let status = check(&world, &apps, &before, &mark).await;
    let asked = asked(&mark);
    println!(
        "migration kills: {kills} kills (one between writes, {} before, {} during, {} after one), the last with {} of 100 workloads moved; each restarted once, \
         {} of {} told as moved, {} statuses, {} namespaces relabelled, {:.0} s",
        moments[0],
        moments[1],
        moments[2],
        left["migratedWorkloads"],
        status["migratedWorkloads"],
        status["totalWorkloads"],
        asked.statuses,
        asked.relabels,
        took.as_secs_f64(),
    );
    assert_eq!(
        kills, LIVES,
        "it was over before, or one ended by itself: {left:#}"
    );
    drop(last);
    world.start_operator().await;
    world.end().await;
}

/// The proposal's scale test: a hundred namespaces, two hundred Deployments, the operator as a process of its own.
async fn two_hundred_workloads() {
    let world = World::real_injecting().await;
    let apps = furnish(&world, (100, 200, 20)).await;
    world.stop_operator().await;
    let operator = Process::start(&kubeconfig(&world), None);
    world.pass(Duration::from_secs(5)).await;
    world.settle().await;
    let (before, mark) = (generations(&world, &apps).await, world.mark());
    let (rest, _) = operator.memory();
    world
        .patch(&at::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    until_over(&world).await;
    world.settle().await;
    let (after, peak) = operator.memory();
    let status = check(&world, &apps, &before, &mark).await;
    let asked = asked(&mark);
    let batches = status["batched"]["totalBatches"].as_u64().unwrap();
    let moment = |key: &str| status[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let took = moment("completionTime").duration_since(moment("startTime"));
    println!(
        "migration real 200: {batches} batches took {} s; 200 workloads patched once each, {} of 50 namespaces, {} statuses (at most {}), {} throttled; \
         memory {rest:.1} MiB before, {after:.1} MiB after, {peak:.1} MiB at its peak",
        took.as_secs(),
        asked.relabels,
        asked.statuses,
        2 * batches + 200,
        asked.throttled,
    );
    assert_eq!(asked.patches.len(), apps.len(), "nobody died");
    assert_eq!((asked.relabels, asked.throttled), (50, 0));
    assert!(
        asked.statuses as u64 <= 2 * batches + 200 + 10,
        "{}",
        asked.statuses
    );
    assert!(
        after <= rest * 1.5,
        "memory grew from {rest:.1} to {after:.1} MiB"
    );
    drop(operator);
    world.start_operator().await;
    world.end().await;
}
