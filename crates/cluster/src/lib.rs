//! The rim: takes what a plan asks for, does it to a cluster, and nothing that is done already.
//!
//! *Absent on purpose:* deciding what to apply.

pub mod apply;
pub mod compare;
pub mod connect;
pub mod desired;
pub mod kinds;
pub mod live;
pub mod write;
