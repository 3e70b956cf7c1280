//! I/O layer: reads clusters, applies objects and writes only differences.
//!
//! This crate does not decide what to apply; `mainstay-mesh` and `mainstay-manifest` do.

pub mod access;
pub mod admission;
pub mod adopt;
pub mod apply;
pub mod compare;
pub mod connect;
pub mod definitions;
pub mod deploy;
pub mod desired;
pub mod event;
pub mod install;
pub mod installer;
pub mod kinds;
pub mod lease;
pub mod live;
pub mod remote;
pub mod survey;
pub mod tls;
pub mod write;
