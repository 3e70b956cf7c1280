//! Workload migration: the state of each workload and how far a migration has progressed.

mod index;

pub use index::{MigrationIndex, WorkloadCounts, WorkloadState};
