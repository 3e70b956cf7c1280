//! `mainstay verify`: reports every object that is missing, different or not ready.

use std::fmt::Write as _;
use std::time::Duration;

use mainstay_cluster::install::{Installer, Problem, VerifiedObject};
use mainstay_manifest::{FieldDifference, InstallationPlan};
use mainstay_yaml::to_json;
use serde_json::json;

use super::install::{Purpose, plan_installation};
use super::manifest::inputs::InputFlags;
use crate::commands::print_styled;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Arguments of `verify`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay verify                       # the installed configuration of the default revision
  mainstay verify --revision canary
  mainstay verify -f mesh.yaml -o json

Exit codes: 0 if every object is as configured and ready, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Output formats of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Lines
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Output {
    /// Formats data as JSON or YAML.
    pub(crate) fn format(self, data: &serde_json::Value) -> Result<String, CliError> {
        match self {
            Self::Yaml => mainstay_cluster::deploy::document(data)
                .map_err(|error| CliError::new(Kind::Io, error.to_string())),
            Self::Json | Self::Text => {
                let text = serde_json::to_string_pretty(data);
                text.map(|text| text + "\n")
                    .map_err(|error| CliError::new(Kind::Io, error.to_string()))
            }
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    block_on(async {
        let client = args.cluster.client().await?;
        let installer = Installer::new(client.clone(), Duration::ZERO);
        let planned = plan_installation(&client, &installer, &args.inputs, Purpose::Verify).await?;
        verify_plan(&installer, &planned.plan, args.output).await
    })
}

/// Compares the cluster with a plan and prints the result.
pub(crate) async fn verify_plan(
    installer: &Installer,
    plan: &InstallationPlan,
    output: Output,
) -> Result<(), CliError> {
    let (found, count) = installer.verify(plan).await?;
    match output {
        Output::Text => print_styled(&text(&found, count))?,
        _ => print_styled(&output.format(&report(&found, count))?)?,
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(CliError::new(Kind::WouldChange, ""))
    }
}

fn text(found: &[VerifiedObject], count: usize) -> String {
    let mut text = String::new();
    for one in found {
        let name = name(one);
        let _ = match &one.problem {
            Problem::Missing => writeln!(text, "{name}: missing"),
            Problem::Unready(reason) => writeln!(text, "{name}: not ready: {reason}"),
            Problem::Foreign(reason) => writeln!(text, "{name}: belongs to another tool: {reason}"),
            Problem::Different(fields) => fields
                .iter()
                .try_for_each(|field| writeln!(text, "{name}: {}", difference(field))),
        };
    }
    let _ = match found.len() {
        0 => writeln!(text, "No problems found: {count} objects verified"),
        problems => writeln!(text, "{problems} of {count} objects have problems"),
    };
    text
}

fn name(one: &VerifiedObject) -> String {
    let id = &one.id;
    if id.namespace.is_empty() {
        format!("{} {}", id.kind, id.name)
    } else {
        format!("{} {}/{}", id.kind, id.namespace, id.name)
    }
}

/// `spec.replicas is 3, configured is 1`.
pub(crate) fn difference(field: &FieldDifference) -> String {
    let show =
        |value: &Option<mainstay_yaml::Value>| value.as_ref().map(|value| to_json(value).unwrap_or_default());
    match (show(&field.left), show(&field.right)) {
        (Some(left), Some(right)) => format!("{} is {left}, configured is {right}", field.path),
        (None, Some(right)) => format!("{} is missing, configured is {right}", field.path),
        (Some(left), None) => format!("{} is {left}, configured is none", field.path),
        (None, None) => field.path.clone(),
    }
}

fn report(found: &[VerifiedObject], count: usize) -> serde_json::Value {
    let problem = |one: &VerifiedObject| {
        let (kind, details) = match &one.problem {
            Problem::Missing => ("Missing", Vec::new()),
            Problem::Unready(reason) => ("NotReady", vec![reason.clone()]),
            Problem::Foreign(reason) => ("Foreign", vec![reason.clone()]),
            Problem::Different(fields) => ("Different", fields.iter().map(difference).collect()),
        };
        json!({
            "component": one.component.name(),
            "kind": one.id.kind, "namespace": one.id.namespace, "name": one.id.name,
            "problem": kind, "details": details,
        })
    };
    json!({"objects": count, "problems": found.iter().map(problem).collect::<Vec<_>>()})
}
