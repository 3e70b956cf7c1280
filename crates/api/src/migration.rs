//! Fields for requesting and reporting a workload migration. Durations are stored as text.

use serde::{Deserialize, Serialize};

use crate::{GoDuration, Time};

/// How workloads are migrated from old revisions to the active one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadMigration {
    /// `Batched` migrates workloads in batches. If unset, workloads are not migrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MigrationStrategy>,
    /// Settings of the `Batched` strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched: Option<BatchedMigration>,
    /// How a failed workload affects the migration. `ContinueOnError` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Whether the migration is paused: no further batch starts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Kinds of workloads to migrate. Deployments if unset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// Strategy of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationStrategy {
    /// Workloads are not migrated.
    #[serde(rename = "")]
    Disabled,
    /// Workloads are migrated in batches.
    Batched,
}

/// How a failed workload affects the migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The migration continues.
    #[default]
    ContinueOnError,
    /// No further batch starts.
    FailFast,
}

/// Settings of the `Batched` strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchedMigration {
    /// Maximum number of workloads that are restarted together. 1 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<i32>,
    /// Time between two batches as a Go duration. 30s if unset; 0s means no delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_between_batches: Option<GoDuration>,
    /// Highest version to which workloads are migrated, inclusive. Unlimited if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_version: Option<String>,
    /// Maximum time for a workload to become ready, as a Go duration. 5m if unset or 0s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_timeout: Option<GoDuration>,
}

/// Progress of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadMigrationStatus {
    /// State of the migration.
    pub state: MigrationState,
    /// Name of the target revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_revision: String,
    /// Number of workloads: sum of migrated, failed, skipped and outstanding ones.
    #[serde(skip_serializing_if = "none")]
    pub total_workloads: i32,
    /// Number of migrated workloads.
    #[serde(skip_serializing_if = "none")]
    pub migrated_workloads: i32,
    /// Number of failed workloads.
    #[serde(skip_serializing_if = "none")]
    pub failed_workloads: i32,
    /// The latest failures, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<MigrationFailure>,
    /// Number of workloads that are excluded from the migration and may remain on an old revision.
    #[serde(skip_serializing_if = "none")]
    pub skipped_workloads: i32,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Time when the migration completed or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Progress of the `Batched` strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batched: Option<BatchedMigrationStatus>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn none(count: &i32) -> bool {
    *count == 0
}

/// State of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationState {
    /// Not started.
    #[default]
    Idle,
    /// Workloads are being migrated.
    InProgress,
    /// Every workload was migrated or skipped.
    Completed,
    /// The migration ended, and workloads failed.
    Failed,
}

/// Progress of the `Batched` strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchedMigrationStatus {
    /// Number of the current batch, starting at 1.
    #[serde(skip_serializing_if = "none")]
    pub current_batch: i32,
    /// Number of batches.
    #[serde(skip_serializing_if = "none")]
    pub total_batches: i32,
    /// Start time of the next batch. Set only between two batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_batch_time: Option<Time>,
}

/// A workload that failed to migrate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationFailure {
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the workload.
    pub name: String,
    /// Kind of the workload.
    pub kind: String,
    /// Reason of the failure.
    pub reason: String,
    /// Time of the failure.
    pub timestamp: Time,
}
