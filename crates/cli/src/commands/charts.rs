//! `mainstay charts`: lists, shows and adds chart versions.

mod list;
mod pull;
mod show;

use clap::Subcommand;

use crate::error::CliError;

/// Arguments of `charts`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay charts list
  mainstay charts show v1.29.1
  mainstay charts pull 1.29.2")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List installable Istio versions
    List(list::Args),
    /// Show the charts and profiles of a version, or the files of one of its charts
    Show(show::Args),
    /// Pull a released version from a Helm repository or an OCI registry
    Pull(pull::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Show(args) => show::run(args),
        Command::Pull(args) => pull::run(args),
    }
}
