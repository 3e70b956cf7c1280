//! `mainstay cluster`: lists the clusters that workloads can be placed in.

mod list;

use crate::error::CliError;
use crate::kubeconfig::block_on;

/// Arguments of `cluster`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay cluster list
  mainstay cluster list -A -o json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List clusters with health, version and labels
    #[command(visible_alias = "ls")]
    List(Box<list::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(it) => block_on(list::run(it)),
    }
}
