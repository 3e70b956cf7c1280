//! The `mainstay` binary.

mod catalog;
mod cli;
mod commands;
mod error;
mod flag_value;
mod host;
mod input;
mod kubeconfig;
mod remote;
mod report;
#[cfg(feature = "simulator")]
mod snapshot;
mod ui;

use std::process::ExitCode;

/// The allocator of static binaries.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
