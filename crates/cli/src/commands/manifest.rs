//! `mainstay manifest`: generates, installs, compares and checks the objects of `IstioOperator` files.

mod diff;
mod generate;
pub(super) mod inputs;
mod migrate;
mod package;
pub(super) mod report;
mod validate;

use clap::Subcommand;

use crate::error::CliError;

/// Arguments of `manifest`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay manifest generate -f mesh.yaml
  mainstay manifest validate -f mesh.yaml
  mainstay manifest diff mesh.yaml --live
  mainstay manifest migrate -f mesh.yaml --to sail")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install the objects of `IstioOperator` files (same as `mainstay install`)
    Install(Box<super::install::Args>),
    /// Compare manifests, or a manifest with the cluster
    Diff(Box<diff::Args>),
    /// Generate the objects of an Istio installation
    Generate(Box<generate::Args>),
    /// Convert `IstioOperator` files and charts of Helm, and compare what both render
    Migrate(Box<migrate::Args>),
    /// Check `IstioOperator` files without printing objects
    Validate(Box<validate::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Install(args) => super::install::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Migrate(args) => migrate::run(args),
        Command::Validate(args) => validate::run(args),
    }
}
