//! `mainstay version`: prints the version and the reproduced Helm versions.

use super::print;
use crate::error::CliError;

/// Arguments of `version`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay version
  mainstay version -o json | jq -r .version")]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// Text
    Text,
    /// JSON
    Json,
}

/// Helm releases whose output is reproduced.
const HELM: [&str; 2] = ["4.2.4", "3.21.4"];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let [four, three] = HELM;
    let text = match args.output {
        Format::Text => format!("mainstay {version} (renders as Helm {four} and {three})\n"),
        Format::Json => format!("{{\"version\":\"{version}\",\"helm\":[\"{four}\",\"{three}\"]}}\n"),
    };
    print(text.as_bytes())
}
