//! Rehearses an upgrade on a copy of a cluster and returns a [`Report`] of its effects. The cluster is not
//! modified.
//!
//! ```text
//! Input ──ClusterModel──▶ embedded or calculated run ──▶ Recording ──compose──▶ Report
//! ```
//!
//! Out of scope: terminals and files, which the command line handles.

mod calculated;
mod cluster_model;
mod compose;
mod embedded;
mod error;
mod findings;
pub mod html;
pub mod input;
mod limits;
mod objects;
mod recording;
mod rehearse;
pub mod report;
mod request;
mod unmanaged;

pub use error::RehearsalError;
pub use input::Input;
pub use rehearse::rehearse;
pub use report::Report;
pub use request::{MAX_EMBEDDED_WORKLOADS, RehearsalRequest};
