//! `mainstay completion`: prints a shell completion script.

use clap_complete::Shell;

use super::print;
use crate::error::CliError;

/// Arguments of `completion`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay completion bash > /etc/bash_completion.d/mainstay
  mainstay completion zsh > \"${fpath[1]}/_mainstay\"
  mainstay completion fish > ~/.config/fish/completions/mainstay.fish")]
pub(crate) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "mainstay", &mut script);
    print(&script)
}
