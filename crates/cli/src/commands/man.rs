//! `mainstay man`: writes the man pages.

use std::fs;
use std::path::PathBuf;

use crate::error::CliError;

/// Arguments of `man`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay man ~/.local/share/man/man1
  mainstay man /usr/local/share/man/man1")]
pub(crate) struct Args {
    /// Directory to write to; created if it does not exist
    directory: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<(), CliError> {
    fs::create_dir_all(&args.directory)?;
    clap_mangen::generate_to(command, &args.directory)?;
    Ok(())
}
