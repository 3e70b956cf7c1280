//! Upgrades a large mesh in virtual time, and measures the duration of the migration and the writes of the
//! operator.

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

/// Old and new revision.
pub const REVISIONS: [&str; 2] = ["default-v1-28-2", "default-v1-29-1"];

/// Size of a mesh and settings of its migration.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub namespaces: usize,
    pub workloads: usize,
    pub batch: usize,
    /// Maximum time until a pod is ready.
    pub readiness: Duration,
    /// Delay between batches.
    pub delay: Duration,
}

/// Measurements of an upgrade.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub workloads: usize,
    pub relabeled: usize,
    pub batches: usize,
    /// Time from the start of the first batch to the end of the migration, in virtual time.
    pub duration: Duration,
    /// Duration of a migration in which the operator causes no delay.
    pub ideal_duration: Duration,
    pub written: WriteCounts,
    /// Wall-clock time of the complete run.
    pub wall: Duration,
}

/// Writes of the operator during the migration.
#[derive(Clone, Debug, Default)]
pub struct WriteCounts {
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
    /// Returns the duration relative to the ideal duration.
    pub fn relative_duration(&self) -> f64 {
        self.duration.as_secs_f64() / self.ideal_duration.as_secs_f64()
    }

    /// Returns the maximum number of status writes: two per batch and one per workload.
    pub fn max_statuses(&self) -> usize {
        2 * self.batches + self.workloads
    }

    /// Summarizes the figures in one line.
    pub fn summary(&self) -> String {
        let written = &self.written;
        format!(
            "{} workloads in {} batches took {:.1} s, {:.4} of the ideal {:.1} s; {} patches of workloads (at most {} of one), {} of {} namespaces, \
             {} statuses (at most {}), {} events, {} others, {} rejected, {} throttled; {:.1} s wall clock",
            self.workloads,
            self.batches,
            self.duration.as_secs_f64(),
            self.relative_duration(),
            self.ideal_duration.as_secs_f64(),
            written.workloads,
            written.max_per_workload,
            written.namespaces,
            self.relabeled,
            written.statuses,
            self.max_statuses(),
            written.events,
            written.others.len(),
            written.rejected.len(),
            written.throttled,
            self.wall.as_secs_f64(),
        )
    }

    /// Panics if a limit is exceeded.
    pub fn check(&self) {
        let written = &self.written;
        assert!(self.relative_duration() <= 1.05, "{}", self.summary());
        assert_eq!(written.workloads, self.workloads, "one patch per workload");
        assert_eq!(written.max_per_workload, 1, "no workload is patched twice");
        assert_eq!(written.namespaces, self.relabeled, "one patch per namespace");
        assert!(written.statuses <= self.max_statuses(), "{}", self.summary());
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

/// Returns the labels of a namespace and of its templates. Of four namespaces, two have the revision label,
/// one has the injection label, and one has labels on its templates.
fn labels(namespace: usize) -> (&'static str, &'static str) {
    match namespace % 4 {
        0 | 1 => ("istio.io/rev=default-v1-28-2", ""),
        2 => ("istio-injection=enabled", ""),
        _ => ("", "istio.io/rev=default-v1-28-2"),
    }
}

/// Number of groups of pods with different readiness times.
const READINESS_GROUPS: usize = 5;

/// Returns the scripts of the pods by readiness group.
pub fn scripts(size: &Size) -> impl Iterator<Item = (PodMatcher, Script)> {
    let whole = size.readiness;
    (0..READINESS_GROUPS).map(move |group| {
        let share = u32::try_from(group + READINESS_GROUPS).unwrap();
        let pods = PodMatcher::Labels {
            namespace: String::new(),
            selector: LabelSelector::parse(&format!("group={group}")).unwrap(),
        };
        let most = u32::try_from(2 * READINESS_GROUPS - 1).unwrap();
        (pods, Script::ready_after(whole * share / most))
    })
}

/// Returns the number of relabeled namespaces.
pub fn relabeled(size: &Size) -> usize {
    (0..size.namespaces)
        .filter(|space| labels(*space).0.contains("rev="))
        .count()
}

/// Returns the namespaces and workloads in the order of creation.
pub fn objects(size: &Size) -> Vec<Value> {
    let spaces =
        (0..size.namespaces).map(|space| fixtures::namespace(&format!("space-{space:04}"), labels(space).0));
    let apps = (0..size.workloads).map(|number| {
        let space = number % size.namespaces;
        let labels = format!(
            "group={} {}",
            (number + number / size.namespaces) % READINESS_GROUPS,
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

/// Upgrades a mesh on the simulator, and returns the measurements.
pub async fn upgrade(size: &Size) -> Figures {
    let begin = std::time::Instant::now();
    let world = World::without_operator(&injecting_options()).await;
    let Backing::Sim(sim) = &world.backing else {
        panic!("no simulator")
    };
    let operator = start_operator(sim);
    world.create(istio(OLD, size)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world.settle().await;
    sim.sim().with(|state| {
        for (pods, script) in scripts(size) {
            state.scripts.add(pods, script);
        }
    });
    for object in objects(size) {
        world.create(object).await;
    }
    world.sleep(size.readiness * 3).await;
    world.settle().await;
    let readiness = measure_rollout(&world).await;
    world.settle().await;
    let mark = sim.sim().with(|state| state.trace.text().len());
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    until(sim, "InProgress").await;
    let started = Instant::now();
    until(sim, "Completed").await;
    let duration = started.elapsed();
    let status = migration(sim);
    operator.kill();
    let batches = usize::try_from(status["batched"]["totalBatches"].as_u64().unwrap()).unwrap();
    let pauses = u32::try_from(batches).unwrap() - 1;
    assert_eq!(status["migratedWorkloads"], size.workloads, "{status:#}");
    Figures {
        workloads: size.workloads,
        relabeled: relabeled(size),
        batches,
        duration,
        ideal_duration: readiness * (pauses + 1) + size.delay * pauses,
        written: count_writes(&sim.sim().with(|state| state.trace.text()[mark..].to_owned())),
        wall: begin.elapsed(),
    }
}

/// Starts an operator without plan checks.
fn start_operator(cluster: &SimulatedCluster) -> RunningOperator {
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    cluster.start_operator_with(operator_client(cluster), Settings::default(), options)
}

/// Restarts one workload, and returns the duration of its rollout.
async fn measure_rollout(world: &World) -> Duration {
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

/// Returns the migration status from the store of the simulator.
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

/// Counts the writes in a trace (`TIME CLIENT: METHOD PATH -> OUTCOME`), starting with the first write of
/// the migration.
fn count_writes(trace: &str) -> WriteCounts {
    let mut written = WriteCounts::default();
    let mut apps: BTreeMap<&str, usize> = BTreeMap::new();
    let mut moving = false;
    for line in trace.lines() {
        let Some((request, outcome)) = parse_request(line) else {
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

fn parse_request(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(' ')?;
    rest.strip_prefix(OPERATOR)?
        .strip_prefix(": ")?
        .split_once(" -> ")
}
