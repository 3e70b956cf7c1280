//! Rehearsals of upgrades: takes a copy of a cluster and another version, gives a [`Report`] of what the upgrade will do, without touching
//! anything.
//!
//! *Absent on purpose:* terminals and files; they are the command line's.

pub mod html;
pub mod report;
pub mod stage;

pub use report::Report;
pub use stage::Stage;
