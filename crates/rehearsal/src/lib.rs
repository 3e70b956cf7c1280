//! Rehearsals of upgrades: takes a copy of a cluster and another version, gives a [`Report`] of what the upgrade will do, without touching
//! anything.
//!
//! ```text
//! Input ──Scene──▶ embedded or calculated ──▶ Recording ──compose──▶ Report
//! ```
//!
//! *Absent on purpose:* terminals and files; they are the command line's.

mod compose;
mod embedded;
mod error;
mod findings;
pub mod html;
pub mod input;
mod limits;
mod model;
mod objects;
mod recording;
mod rehearse;
pub mod report;
mod scene;
mod wish;

pub use error::RehearsalError;
pub use input::Input;
pub use rehearse::rehearse;
pub use report::Report;
pub use wish::{EMBEDDED_MOST, Wish};
