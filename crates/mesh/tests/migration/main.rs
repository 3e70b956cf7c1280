//! Tests workload migration on plans, with a test for each entry of the proposal's lists of unit and
//! integration tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a panic is how a test fails, and settings are made where they are used"
)]

mod changes;
mod failures;
mod flow;
mod labels;
mod obstacles;
mod settings;
#[path = "../support/mod.rs"]
mod support;

use mainstay_api::{ConditionType, IstioSpec, MigrationState, WorkloadMigrationStatus};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{Observation, Subject};
use serde_json::{Value, json};

use support::World;

const OLD: &str = "default-v1-28-2";
const NEW: &str = "default-v1-29-1";

/// Applies an Istio that migrates workloads with these settings.
fn istio(world: &mut World, version: &str, migration: Value) {
    let mut settings = json!({"strategy": "Batched"});
    settings
        .as_object_mut()
        .unwrap()
        .extend(migration.as_object().unwrap().clone());
    let spec = json!({"version": version, "namespace": "istio-system",
        "updateStrategy": {"type": "RevisionBased", "workloadMigration": settings}});
    world.apply::<IstioSpec>("default", spec);
}

/// Returns a world with an Istio at 1.28.2, fully reconciled.
fn mesh(migration: Value) -> World {
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    istio(&mut world, "v1.28.2", migration);
    world.settle();
    world
}

fn batched(size: i64, delay: &str) -> Value {
    json!({"batched": {"batchSize": size, "delayBetweenBatches": delay, "readinessTimeout": "5m"}})
}

/// Changes the version, and returns the actions that are executed until all plans are empty.
fn upgrade(world: &mut World, migration: Value) -> Vec<String> {
    istio(world, "v1.29.1", migration);
    world.settle()
}

fn status(world: &World) -> WorkloadMigrationStatus {
    let istio = world.snapshot.istios().get("default").unwrap();
    istio.status.workload_migration.clone().unwrap_or_default()
}

/// Formats the status as `STATE MIGRATED+FAILED+SKIPPED of TOTAL, batch CURRENT of TOTAL`.
fn summary(world: &World) -> String {
    let status = status(world);
    let batched = status.batched.unwrap_or_default();
    format!(
        "{:?} {}+{}+{} of {}, batch {} of {}",
        status.state,
        status.migrated_workloads,
        status.failed_workloads,
        status.skipped_workloads,
        status.total_workloads,
        batched.current_batch,
        batched.total_batches
    )
}

fn condition(world: &World) -> String {
    let istio = world.snapshot.istios().get("default").unwrap();
    let condition = istio.status.conditions.get(&ConditionType::WorkloadsMigrated);
    format!(
        "{:?} {}: {}",
        condition.status, condition.reason, condition.message
    )
}

/// Returns the executed actions that restart workloads or relabel namespaces.
fn migration_actions(executed: &[String]) -> Vec<&str> {
    let is_migration = |line: &&str| line.contains(": relabel ") || line.contains(": restart ");
    let lines = executed.iter().map(String::as_str).filter(is_migration);
    lines
        .filter_map(|line| Some(line.split_once(": ")?.1.split_once(" (")?.0))
        .collect()
}

fn events(executed: &[String]) -> Vec<&str> {
    executed
        .iter()
        .filter_map(|line| line.split_once("event "))
        .map(|(_, text)| text)
        .collect()
}

/// Completes the rollout of every restarted workload.
fn complete_rollouts(world: &mut World) -> Vec<String> {
    let now = world.snapshot.now;
    let index = world.snapshot.migration_index("default").unwrap();
    let keys: Vec<WorkloadKey> = index.moving(now).map(|(_, key)| key.clone()).collect();
    for key in keys {
        world.complete_rollout(&key);
    }
    world.settle()
}

/// Advances the clock, and plans the Istio and all workloads again.
fn wait(world: &mut World, seconds: i64) -> Vec<String> {
    world.advance(seconds);
    world.queue.insert(Subject::istio("default"));
    let known: Vec<Subject> = world.workloads.keys().cloned().map(Subject::Workload).collect();
    world.queue.extend(known);
    world.settle()
}

/// Completes rollouts and advances the clock until the migration has ended.
fn finish_migration(world: &mut World) {
    for _ in 0..100 {
        complete_rollouts(world);
        wait(world, 30);
        if status(world).state != MigrationState::InProgress {
            return;
        }
    }
    panic!("the migration does not end: {}", summary(world));
}
