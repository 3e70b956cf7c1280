//! `mainstay manifest validate`: checks `IstioOperator` files.

use super::inputs::{ClusterDefaults, InputFlags};
use crate::commands::print;
use crate::error::CliError;

/// Arguments of `manifest validate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest validate -f mesh.yaml
  mainstay manifest validate -f mesh.yaml --set profile=ambient

Exit codes: 0 if there are no errors, 1 otherwise. Warnings are printed.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let rendered = args.inputs.generate(&ClusterDefaults::default())?;
    match rendered.warnings.list().len() {
        0 => print(b"No problems found\n"),
        1 => print(b"1 warning, no errors\n"),
        count => print(format!("{count} warnings, no errors\n").as_bytes()),
    }
}
