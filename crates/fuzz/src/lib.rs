//! Fuzz targets for the parsers of untrusted input, and their execution on a fixed set of inputs.
//!
//! | module | content |
//! |---|---|
//! | `targets` | one function per target |
//! | `replay` | executes stored inputs and mutations from a fixed seed, for CI |
//! | `mutate` | deterministic mutations |
//!
//! The libFuzzer programs in `fuzz/` call the same functions. They are a separate workspace, because their
//! compiler flags must not apply to other builds.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a target reports a finding by a panic"
)]

mod mutate;
mod replay;
mod targets;

pub use replay::Replay;
pub use targets::{
    TARGETS, Target, archive_load, inject, set_values, template_parse, template_render, yaml_decode,
    yaml_encode,
};
