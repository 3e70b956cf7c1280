//! The `mainstay` command: takes argv, gives text and an exit code. Decides nothing itself.

mod catalogue;
mod cli;
mod commands;
mod error;
mod host;
mod kubeconfig;
mod remote;
mod report;
mod style;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
