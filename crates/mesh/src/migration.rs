//! Workload migration: moves workloads to the active revision of their Istio, batch by batch.
//!
//! ```text
//! spec ──MigrationSettings──▶ settings ─┐
//! labels, pods, annotations ──state──▶ WorkloadState ──▶ MigrationIndex ─┴─▶ moves, progress, preview
//! ```
//!
//! Each decision is made in one place: [`MigrationSettings`] parses the settings, `workload_state` determines
//! the [`WorkloadState`] of a workload, and `batch_capacity` determines whether a batch has capacity. The
//! planner, the status, the preview, the CLI and the rehearsal all use these. `mainstay-check` reads the same
//! settings, but derives the state of a workload independently.
//!
//! A batch is announced in the status before any of its workloads is restarted, and workloads are restarted
//! only in an announced batch. Progress is stored only in the status and in the
//! [`MigrationRecord`](crate::workload::MigrationRecord) on each workload, so a restarted operator continues
//! where the previous one stopped.

mod batch;
mod hold;
mod index;
mod moves;
mod preview;
mod progress;
mod settings;
mod state;

pub(crate) use batch::{batch_capacity, open_batch};
pub(crate) use hold::exceeded_maximum;
pub(crate) use moves::{plan_namespace, plan_workload};
pub(crate) use progress::{Progress, plan_progress};
pub(crate) use settings::is_readiness_timeout;
pub(crate) use state::{
    MigrationTarget, migration_target, relabeling_istio, restart_deadline, workload_state,
};

pub use index::{MigrationIndex, WorkloadCounts};
pub use preview::{Preview, preview};
pub use settings::{MigrationSettings, SettingsError, parse_readiness_timeout, requests_migration};
pub use state::{WorkloadPhase, WorkloadState};
