//! Upgrades a large mesh in virtual time: duration of the migration and writes of the operator.

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
use super::calls::OPERATOR;
use super::fixtures::{self, NEW, OLD};
use super::path::{self, ObjectPath};
use super::world::{Backing, injecting_options, operator_client};

/// The old and the new revision.
pub const REVISIONS: [&str; 2] = ["default-v1-28-2", "default-v1-29-1"];

/// Size of the mesh and settings of the migration.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub namespaces: usize,
    pub workloads: usize,
    pub batch: usize,
    /// Maximum time of a pod to become ready.
    pub readiness: Duration,
    /// Delay between batches.
    pub delay: Duration,
}

/// The measurements.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub workloads: usize,
    pub relabelled: usize,
    pub batches: usize,
    /// Time from the start of the first batch to the end, in virtual time.
    pub took: Duration,
    /// The duration if the operator caused no delay.
    pub ideal: Duration,
    pub written: Written,
    /// Wall-clock time.
    pub wall: Duration,
}

/// Writes of the operator during the migration.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub workloads: usize,
    /// Maximum number of writes of one workload.
    pub max_per_workload: usize,
    pub namespaces: usize,
    pub statuses: usize,
    pub events: usize,
    /// Other writes.
    pub others: Vec<String>,
    /// Rejected writes.
    pub rejected: Vec<String>,
    pub throttled: usize,
}

impl Figures {
    /// Duration relative to the ideal.
    pub fn stretch(&self) -> f64 {
        self.took.as_secs_f64() / self.ideal.as_secs_f64()
    }

    /// Maximum number of status writes: two per batch and one per workload.
    pub fn max_statuses(&self) -> usize {
        2 * self.batches + self.workloads
    }

    /// Summarizes the figures in one line.
    pub fn line(&self) -> String {
        let written = &self.written;
        format!(
            "{} workloads in {} batches took {:.1} s, {:.4} of the ideal {:.1} s; {} patches of workloads (at most {} of one), {} of {} namespaces, \
             {} statuses (at most {}), {} events, {} others, {} rejected, {} throttled; {:.1} s wall clock",
            self.workloads,
            self.batches,
            self.took.as_secs_f64(),
            self.stretch(),
            self.ideal.as_secs_f64(),
            written.workloads,
            written.max_per_workload,
            written.namespaces,
            self.relabelled,
            written.statuses,
            self.max_statuses(),
            written.events,
            written.others.len(),
            written.rejected.len(),
            written.throttled,
            self.wall.as_secs_f64(),
        )
    }

    /// Panics unless every bound holds.
    pub fn check(&self) {
        let written = &self.written;
        assert!(self.stretch() <= 1.05, "{}", self.line());
        assert_eq!(written.workloads, self.workloads, "one patch per workload");
        assert_eq!(written.max_per_workload, 1, "no workload is patched twice");
        assert_eq!(written.namespaces, self.relabelled, "one patch per namespace");
        assert!(written.statuses <= self.max_statuses(), "{}", self.line());
        assert_eq!(written.others, [""; 0], "nothing else is written");
        assert_eq!(written.rejected, [""; 0], "nothing is rejected");
    }
}

/// Returns an Istio that migrates workloads in batches.
pub fn istio(version: &str, size: &Size) -> Value {
    let batched =
        json!({"batchSize": size.batch, "delayBetweenBatches": format!("{}ms", size.delay.as_millis())});
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 30,
        "workloadMigration": {"strategy": "Batched", "batched": batched}});
    fixtures::istio("default", version, json!({"updateStrategy": strategy}))
}

/// Labels of a namespace and its templates: of four namespaces, two have the revision label, one the
/// injection label, and one labels its templates.
fn labels(namespace: usize) -> (&'static str, &'static str) {
    match namespace % 4 {
        0 | 1 => ("istio.io/rev=default-v1-28-2", ""),
        2 => ("istio-injection=enabled", ""),
        _ => ("", "istio.io/rev=default-v1-28-2"),
    }
}

/// Number of groups of pods with different readiness times.
const PACES: usize = 5;

/// Returns the scripts of the pods.
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

/// Returns the number of relabelled namespaces.
pub fn relabelled(size: &Size) -> usize {
    (0..size.namespaces)
        .filter(|space| labels(*space).0.contains("rev="))
        .count()
}

/// Returns namespaces and workloads in the order of creation.
pub fn objects(size: &Size) -> Vec<Value> {
    let spaces =
        (0..size.namespaces).map(|space| fixtures::namespace(&format!("space-{space:04}"), labels(space).0));
    let apps = (0..size.workloads).map(|number| {
        let space = number % size.namespaces;
        let labels = format!(
            "pace={} {}",
            (number + number / size.namespaces) % PACES,
            labels(space).1
        );
        fixtures::deployment(
            &format!("space-{space:04}"),
            &format!("app-{number:05}"),
            &labels,
            "",
        )
    });
    spaces.chain(apps).collect()
}

/// Upgrades a mesh on the simulator.
pub async fn upgrade(size: &Size) -> Figures {
    let begin = std::time::Instant::now();
    let world = World::without_operator(&injecting_options()).await;
    let Backing::Sim(sim) = &world.backing else {
        panic!("no simulator")
    };
    let operator = operate(sim);
    world.create(istio(OLD, size)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
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
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
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

/// Starts an operator without plan checks.
fn operate(cluster: &SimulatedCluster) -> RunningOperator {
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    cluster.start_operator_with(operator_client(cluster), Settings::default(), options)
}

/// Returns the rollout time of one workload.
async fn restart_by_hand(world: &World) -> Duration {
    let at = ObjectPath::namespaced("Deployment", "space-0004", "app-00004");
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

/// Returns the migration status.
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

/// Waits for a migration state, without API calls.
pub async fn until(sim: &SimulatedCluster, state: &str) {
    for _ in 0..400_000 {
        if migration(sim)["state"] == state && migration(sim)["targetRevision"] == REVISIONS[1] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("never {state}: {:#}", migration(sim));
}

/// Counts the writes in a trace (`TIME CLIENT: METHOD PATH -> OUTCOME`) from the first write of the migration
/// on.
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
        // The installation of the new control plane does not count.
        moving |= path.contains("/deployments/app-") || path.starts_with("/api/v1/namespaces/space-");
        if !outcome.starts_with('2') {
            written.rejected.push(line.to_owned());
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
    written.max_per_workload = apps.values().copied().max().unwrap_or(0);
    written
}

fn request(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(' ')?;
    rest.strip_prefix(OPERATOR)?
        .strip_prefix(": ")?
        .split_once(" -> ")
}
