//! `mainstay charts`: lists, shows and adds chart versions.

mod list;
mod pull;
mod show;

use clap::Subcommand;

use crate::error::CliError;

/// Arguments of `charts`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
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

/// Rows in columns, two blanks apart.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["A", "B"], ["long", ""], ["é", "x"]].map(|row| row.map(ToOwned::to_owned));
        assert_eq!(columns(&rows), "A     B\nlong\né     x\n");
    }
}
