//! `mainstay charts`: takes a question about the catalogue, prints the answer.

use crate::error::{CliError, Kind};

/// Arguments of `charts`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_args: &Args) -> Result<(), CliError> {
    Err(CliError::new(Kind::Chart, "this build has no catalogue"))
}
