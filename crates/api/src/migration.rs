//! Moving workloads to a new revision: the fields by which it is asked for and reported. Types only; durations keep their text.

use serde::{Deserialize, Serialize};

use crate::{GoDuration, Time};

/// How workloads are moved from old revisions to the active one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadMigration {
    /// Empty: workloads are not moved. `Batched`: so many at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MigrationStrategy>,
    /// Settings of the `Batched` strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched: Option<BatchedMigration>,
    /// What happens when a workload does not become ready: `ContinueOnError` (the default) or `FailFast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Start nothing new while this is true.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Which kinds of workloads move. Deployments if unset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// By which strategy workloads move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationStrategy {
    /// They do not.
    #[serde(rename = "")]
    Disabled,
    /// So many at a time.
    Batched,
}

/// What a failed workload means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// Nothing.
    #[default]
    ContinueOnError,
    /// The next batch does not start.
    FailFast,
}

/// Settings of the `Batched` strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchedMigration {
    /// How many workloads restart together. At least 1, 1 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<i32>,
    /// How long to wait between two batches. 30s if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_between_batches: Option<GoDuration>,
    /// The highest version workloads move to by themselves, itself included. No limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_version: Option<String>,
    /// How long a workload may take to become ready. 5m if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_timeout: Option<GoDuration>,
}

/// How far a migration is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadMigrationStatus {
    /// One word for all of it.
    pub state: MigrationState,
    /// Where the workloads go.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_revision: String,
    /// How many workloads the migration is about: moved, failed, skipped and still to move.
    #[serde(skip_serializing_if = "none")]
    pub total_workloads: i32,
    /// How many have moved.
    #[serde(skip_serializing_if = "none")]
    pub migrated_workloads: i32,
    /// How many failed to.
    #[serde(skip_serializing_if = "none")]
    pub failed_workloads: i32,
    /// The ten most recent failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<MigrationFailure>,
    /// How many refer to an old revision and are left alone on purpose.
    #[serde(skip_serializing_if = "none")]
    pub skipped_workloads: i32,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended, well or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Progress of the `Batched` strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched: Option<BatchedMigrationStatus>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn none(count: &i32) -> bool {
    *count == 0
}

/// Where a migration stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationState {
    /// Nothing to move.
    #[default]
    Idle,
    /// Under way.
    InProgress,
    /// Every workload has moved.
    Completed,
    /// Over, and some workload has not moved.
    Failed,
}

/// Progress of the `Batched` strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchedMigrationStatus {
    /// The batch under way, counted from 1.
    #[serde(skip_serializing_if = "none")]
    pub current_batch: i32,
    /// How many there are.
    #[serde(skip_serializing_if = "none")]
    pub total_batches: i32,
    /// Between two batches: when the next one begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_batch_time: Option<Time>,
}

/// One workload that did not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationFailure {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// What went wrong.
    pub reason: String,
    /// When.
    pub timestamp: Time,
}
