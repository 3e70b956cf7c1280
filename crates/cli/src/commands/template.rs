//! `mainstay template`: takes what `helm template` takes, prints what it prints.

mod args;

pub(crate) use args::Args;

use crate::error::{CliError, Kind};

/// Runs it.
pub(crate) fn run(_args: &Args) -> Result<(), CliError> {
    Err(CliError::new(Kind::Chart, "rendering is not part of this build"))
}
