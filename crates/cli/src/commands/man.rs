//! `mainstay man`: writes the man pages, or the same reference as one Markdown page.

mod markdown;

use std::fs;
use std::path::PathBuf;

use crate::error::CliError;

/// Arguments of `man`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay man ~/.local/share/man/man1
  mainstay man /usr/local/share/man/man1
  mainstay man --format markdown docs/reference")]
pub(crate) struct Args {
    /// Directory to write to; created if it does not exist
    directory: PathBuf,
    /// What to write: one man page per command, or all commands in `cli.md`
    #[arg(long, value_enum, default_value_t = Format::Man)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Man,
    Markdown,
}

/// Runs the command.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<(), CliError> {
    fs::create_dir_all(&args.directory)?;
    match args.format {
        Format::Man => clap_mangen::generate_to(command, &args.directory)?,
        Format::Markdown => fs::write(args.directory.join("cli.md"), markdown::page(command))?,
    }
    Ok(())
}
