//! `mainstay version`: prints the version and the reproduced Helm versions.

use serde_json::json;

use super::print;
use super::verify::Output;
use crate::error::CliError;

/// Arguments of `version`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay version
  mainstay version -o json | jq -r .version")]
pub(crate) struct Args {
    /// Output format; `json` is one line
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
}

/// Helm releases whose output is reproduced.
const HELM: [&str; 2] = ["4.2.4", "3.21.4"];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let [four, three] = HELM;
    let text = match args.output {
        Output::Text => format!("mainstay {version} (renders as Helm {four} and {three})\n"),
        Output::Json => format!("{{\"version\":\"{version}\",\"helm\":[\"{four}\",\"{three}\"]}}\n"),
        Output::Yaml => Output::Yaml.format(&json!({"version": version, "helm": HELM}))?,
    };
    print(text.as_bytes())
}
