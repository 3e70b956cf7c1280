//! `mainstay operator`: runs the operator.

mod args;
mod run;
mod spelling;
mod start;

use crate::error::CliError;
pub(crate) use spelling::{as_go_flags, with_two_dashes};

/// Arguments of `operator`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay operator run --leader-elect=false")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Watch a cluster and reconcile its meshes
    Run(Box<args::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Run(args) => run::run(args),
    }
}
