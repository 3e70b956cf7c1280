//! `mainstay version`: prints what this binary is and which Helm it stands in for.

use super::print;
use crate::error::CliError;

/// Arguments of `version`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay version
  mainstay version -o json | jq -r .version")]
pub(crate) struct Args {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The Helm releases whose output is reproduced.
const HELM: [&str; 2] = ["4.2.4", "3.21.4"];

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let [four, three] = HELM;
    let text = match args.output {
        Format::Text => format!("mainstay {version} (renders as Helm {four} and {three})\n"),
        Format::Json => format!("{{\"version\":\"{version}\",\"helm\":[\"{four}\",\"{three}\"]}}\n"),
    };
    print(text.as_bytes())
}
