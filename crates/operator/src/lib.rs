//! The operator: takes a client and settings, watches the cluster, and keeps the mesh as its objects declare it.
//!
//! *Absent on purpose:* deciding anything; that is `mainstay-mesh`.

pub mod health;
pub mod report;

pub use report::{Observer, Outcome, Report};
