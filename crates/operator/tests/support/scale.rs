//! A large mesh that is upgraded: takes its size, gives how long its workloads took to move and what the operator wrote, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_harness::{RunningOperator, SimulatedCluster};
use mainstay_mesh::Settings;
use mainstay_operator::Options;
use mainstay_sim::script::{PodMatcher, Script};
use mainstay_sim::selector::LabelSelector;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::World;
use super::at::{self, At};
use super::calls::OPERATOR;
use super::made::{self, NEW, OLD};
use super::world::{Backing, injecting_options, operator_client};

/// The revisions workloads leave and come to.
pub const REVISIONS: [&str; 2] = ["default-v1-28-2", "default-v1-29-1"];

/// How large, and on what terms.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub namespaces: usize,
    pub workloads: usize,
    pub batch: usize,
    /// How long a pod takes to become ready.
    pub readiness: Duration,
    /// Between two batches.
    pub delay: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub workloads: usize,
    pub relabelled: usize,
    pub batches: usize,
    /// From the announcement of the first batch to the end, in virtual time.
    pub took: Duration,
    /// What it would take if nobody ever waited for us.
    pub ideal: Duration,
    pub written: Written,
    /// The machine's time.
    pub wall: Duration,
}

/// What the operator wrote while workloads moved, by what it was about.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub workloads: usize,
    /// How often the workload that was written most was written.
    pub most_of_one: usize,
    pub namespaces: usize,
    pub statuses: usize,
    pub events: usize,
    /// Writes that are none of these.
    pub others: Vec<String>,
    /// Answers that are no success.
    pub refused: Vec<String>,
    pub throttled: usize,
}

impl Figures {
    /// How much longer than need be.
    pub fn stretch(&self) -> f64 {
        self.took.as_secs_f64() / self.ideal.as_secs_f64()
    }

    /// What may be written: a patch per workload and relabelled namespace, two statuses per batch and one per workload.
    pub fn most_statuses(&self) -> usize {
        2 * self.batches + self.workloads
    }

    /// In one line.
    pub fn line(&self) -> String {
        let written = &self.written;
        format!(
            "{} workloads in {} batches took {:.1} s, {:.4} of the ideal {:.1} s; {} patches of workloads (at most {} of one), {} of {} namespaces, \
             {} statuses (at most {}), {} events, {} others, {} refused, {} throttled; {:.1} s of the machine",
            self.workloads,
            self.batches,
            self.took.as_secs_f64(),
            self.stretch(),
            self.ideal.as_secs_f64(),
            written.workloads,
            written.most_of_one,
            written.namespaces,
            self.relabelled,
            written.statuses,
            self.most_statuses(),
            written.events,
            written.others.len(),
            written.refused.len(),
            written.throttled,
            self.wall.as_secs_f64(),
        )
    }

    /// Fails unless every bound holds.
    pub fn check(&self) {
        let written = &self.written;
        assert!(self.stretch() <= 1.05, "{}", self.line());
        assert_eq!(written.workloads, self.workloads, "one patch per workload");
        assert_eq!(written.most_of_one, 1, "never two of one workload");
        assert_eq!(written.namespaces, self.relabelled, "one patch per namespace");
        assert!(written.statuses <= self.most_statuses(), "{}", self.line());
        assert_eq!(written.others, [""; 0], "nothing else is written");
        assert_eq!(written.refused, [""; 0], "nothing is refused");
    }
}

/// The Istio; its workloads move in batches.
pub fn istio(version: &str, size: &Size) -> Value {
    let batched =
        json!({"batchSize": size.batch, "delayBetweenBatches": format!("{}ms", size.delay.as_millis())});
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 30,
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    made::istio("default", version, json!({"updateStrategy": strategy}))
}

/// How the workloads of a namespace come by their proxies: of four, two by a label with the old revision, one by the default tag, one by its
/// templates.
fn labels(namespace: usize) -> (&'static str, &'static str) {
    match namespace % 4 {
        0 | 1 => ("istio.io/rev=default-v1-28-2", ""),
        2 => ("istio-injection=enabled", ""),
        _ => ("", "istio.io/rev=default-v1-28-2"),
    }
}

/// Not all pods are equally fast: those of the last pace take the whole time, the others as much less.
const PACES: usize = 5;

/// How pods behave.
pub fn scripts(size: &Size) -> impl Iterator<Item = (PodMatcher, Script)> {
    let whole = size.readiness;
    (0..PACES).map(move |pace| {
        let share = u32::try_from(pace + PACES).unwrap();
        let who = PodMatcher::Labels {
            namespace: String::new(),
            selector: LabelSelector::parse(&format!("pace={pace}")).unwrap(),
        };
        let most = u32::try_from(2 * PACES - 1).unwrap();
        (who, Script::ready_after(whole * share / most))
    })
}

/// How many namespaces are relabelled.
pub fn relabelled(size: &Size) -> usize {
    (0..size.namespaces)
        .filter(|space| labels(*space).0.contains("rev="))
        .count()
}

/// Namespaces and workloads, in the order in which they are made.
pub fn objects(size: &Size) -> Vec<Value> {
    let spaces =
        (0..size.namespaces).map(|space| made::namespace(&format!("space-{space:04}"), labels(space).0));
    let apps = (0..size.workloads).map(|number| {
        let space = number % size.namespaces;
        let labels = format!(
            "pace={} {}",
            (number + number / size.namespaces) % PACES,
            labels(space).1
        );
        made::deployment(
            &format!("space-{space:04}"),
            &format!("app-{number:05}"),
            &labels,
            "",
        )
    });
    spaces.chain(apps).collect()
}

/// Upgrades such a mesh on the simulator.
pub async fn upgrade(size: &Size) -> Figures {
    let begin = std::time::Instant::now();
    let world = World::without_operator(&injecting_options()).await;
    let Backing::Sim(sim) = &world.backing else {
        panic!("no simulator")
    };
    let operator = operate(sim);
    world.create(istio(OLD, size)).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world.settle().await;
    sim.sim().with(|state| {
        for (who, script) in scripts(size) {
            state.scripts.add(who, script);
        }
    });
    for object in objects(size) {
        world.create(object).await;
    }
    world.pass(size.readiness * 3).await;
    world.settle().await;
    let readiness = restart_by_hand(&world).await;
    world.settle().await;
    let mark = sim.sim().with(|state| state.trace.text().len());
    world
        .patch(&at::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    until(sim, "InProgress").await;
    let started = Instant::now();
    until(sim, "Completed").await;
    let took = started.elapsed();
    let status = migration(sim);
    operator.kill();
    let batches = usize::try_from(status["batched"]["totalBatches"].as_u64().unwrap()).unwrap();
    let pauses = u32::try_from(batches).unwrap() - 1;
    assert_eq!(status["migratedWorkloads"], size.workloads, "{status:#}");
    Figures {
        workloads: size.workloads,
        relabelled: relabelled(size),
        batches,
        took,
        ideal: readiness * (pauses + 1) + size.delay * pauses,
        written: written(&sim.sim().with(|state| state.trace.text()[mark..].to_owned())),
        wall: begin.elapsed(),
    }
}

/// The operator alone: nobody looks over its shoulder.
fn operate(cluster: &SimulatedCluster) -> RunningOperator {
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    cluster.start_operator_with(operator_client(cluster), Settings::default(), options)
}

/// How long one workload takes when somebody restarts it who is not us.
async fn restart_by_hand(world: &World) -> Duration {
    let at = At::inside("Deployment", "space-0004", "app-00004");
    let begin = Instant::now();
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}});
    world.patch(&at, patch).await;
    world
        .until_object(&at, "is complete", |object| {
            let (status, replicas) = (&object["status"], &object["spec"]["replicas"]);
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            status["observedGeneration"] == object["metadata"]["generation"]
                && counts.iter().all(|count| status[count] == *replicas)
        })
        .await;
    begin.elapsed()
}

/// What is told of the migration.
pub fn migration(sim: &SimulatedCluster) -> Value {
    sim.sim().with(|state| {
        let resource = state.resources.preferred("sailoperator.io", "istios").unwrap();
        let object = state
            .store
            .get(&resource.table, &mainstay_sim::object::key("", "default"))
            .unwrap();
        object.value()["status"]["workloadMigration"].clone()
    })
}

/// Looks twice a second; nothing is asked of the server.
pub async fn until(sim: &SimulatedCluster, state: &str) {
    for _ in 0..400_000 {
        if migration(sim)["state"] == state && migration(sim)["targetRevision"] == REVISIONS[1] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("never {state}: {:#}", migration(sim));
}

/// Sorts the writes in a trace (`TIME CLIENT: METHOD PATH -> OUTCOME`) from the first that tells of a migration on.
fn written(trace: &str) -> Written {
    let mut written = Written::default();
    let mut apps: BTreeMap<&str, usize> = BTreeMap::new();
    let mut moving = false;
    for line in trace.lines() {
        let Some((request, outcome)) = request(line) else {
            continue;
        };
        let (method, path) = request.split_once(' ').unwrap_or((request, ""));
        written.throttled += usize::from(outcome.starts_with("429"));
        if !matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") {
            continue;
        }
        // What installs the new control plane is no part of it.
        moving |= path.contains("/deployments/app-") || path.starts_with("/api/v1/namespaces/space-");
        if !outcome.starts_with('2') {
            written.refused.push(line.to_owned());
        }
        if path.contains("/deployments/app-") {
            *apps.entry(path).or_default() += 1;
        } else if path.starts_with("/api/v1/namespaces/space-") {
            written.namespaces += 1;
        } else if path.contains("/istios/default/status") {
            written.statuses += usize::from(moving);
        } else if path.contains("/events") {
            written.events += usize::from(moving);
        } else if moving && !path.contains("istio") {
            written.others.push(line.to_owned());
        }
    }
    written.workloads = apps.values().sum();
    written.most_of_one = apps.values().copied().max().unwrap_or(0);
    written
}

fn request(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(' ')?;
    rest.strip_prefix(OPERATOR)?
        .strip_prefix(": ")?
        .split_once(" -> ")
}
