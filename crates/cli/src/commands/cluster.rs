//! `mainstay cluster`: adds, checks and lists the clusters that workloads can be placed in.

mod account;
mod add;
mod check;
mod list;
mod member;
mod remedy;

use crate::error::CliError;
use crate::kubeconfig::block_on;

/// Arguments of `cluster`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay cluster add prod-1 --cluster-kubeconfig prod-1.yaml -l usage=production
  mainstay cluster check prod-1
  mainstay cluster list -A -o json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add a cluster: store its kubeconfig in a Secret and create a Cluster
    Add(Box<add::Args>),
    /// Check connection, version, permissions, routing kinds and clock of clusters
    Check(Box<check::Args>),
    /// List clusters with health, version and labels
    #[command(visible_alias = "ls")]
    List(Box<list::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Add(it) => block_on(add::run(it)),
        Command::Check(it) => block_on(check::run(it)),
        Command::List(it) => block_on(list::run(it)),
    }
}
