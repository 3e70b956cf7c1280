//! `mainstay revision`: lists and describes revisions.

mod describe;

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_cluster::deploy::document;
use mainstay_cluster::survey::{SurveyError, survey};
use mainstay_mesh::{Library, Settings, Snapshot};
use serde::Serialize;

use crate::catalog::ChartsFlag;
use crate::commands::print_styled;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, NamespaceFlags, block_on};
use crate::report::{Report, RevisionReport, unmanaged_section};
use crate::ui::table;

/// Arguments of `revision`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay revision list
  mainstay revision describe default-v1-29-1")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List revisions with their usage and pruning
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  mainstay revision list
  mainstay revision list -o wide
  mainstay revision list -o json | jq -r '.[] | select(.prunedAt) | .name'"
    )]
    List(ListArgs),
    /// Describe a revision: conditions, referrers, installed objects
    #[command(after_help = "Examples:
  mainstay revision describe default
  mainstay revision describe mesh-v1-29-1 -o wide
  mainstay revision describe mesh-v1-29-1 -o yaml")]
    Describe(describe::Args),
}

#[derive(clap::Args)]
struct ListArgs {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    namespaces: NamespaceFlags,
}

/// Common arguments.
#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    charts: ChartsFlag,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text
    Text,
    /// Text with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Evaluation time.
#[derive(clap::Args, Default)]
pub(crate) struct At {
    /// Evaluate at this time instead of now
    #[arg(long, hide = true, value_name = "TIME")]
    at: Option<Timestamp>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(it) => block_on(list(it)),
        Command::Describe(it) => block_on(describe::run(it)),
    }
}

/// Creates an empty snapshot.
pub(crate) fn empty_snapshot(charts: &ChartsFlag, at: &At) -> Result<Snapshot, CliError> {
    // Only names of versions are needed here; the operator reports charts that cannot be read.
    let (library, _) = Library::from_catalog(&charts.open()?);
    let now = at.at.unwrap_or_else(Timestamp::now);
    Ok(Snapshot::new(
        now,
        Arc::new(Settings::default()),
        Arc::new(library),
    ))
}

/// Formats a value as JSON or YAML.
pub(crate) fn structured(value: &impl Serialize, format: Format) -> Result<String, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::new(Kind::Io, format!("cannot print: {error}"));
    let json = serde_json::to_value(value).map_err(|error| failed(&error))?;
    match format {
        Format::Yaml => document(&json).map_err(|error| failed(&error)),
        _ => serde_json::to_string_pretty(&json)
            .map(|text| text + "\n")
            .map_err(|error| failed(&error)),
    }
}

/// Formats one of several values as a JSON line or a YAML document.
pub(crate) fn stream_entry(value: &impl Serialize, format: Format) -> Result<String, CliError> {
    match format {
        Format::Yaml => structured(value, format).map(|text| format!("---\n{text}")),
        _ => serde_json::to_string(value)
            .map(|text| text + "\n")
            .map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}"))),
    }
}

async fn list(list: &ListArgs) -> Result<(), CliError> {
    let args = &list.common;
    let client = args.cluster.client().await?;
    let found = survey(&client, empty_snapshot(&args.charts, &args.at)?).await?;
    let report = Report::from_survey(&found).restricted_to(&list.namespaces);
    let text = match args.output {
        Format::Text | Format::Wide => {
            let is_wide = args.output == Format::Wide;
            lines(&report.revisions, is_wide) + &unmanaged_section(&report.unmanaged)
        }
        other => structured(&report.revisions, other)?,
    };
    print_styled(&text)
}

fn lines(revisions: &[RevisionReport], wide: bool) -> String {
    if revisions.is_empty() {
        return "No revisions found\n".to_owned();
    }
    let mut head = vec!["NAME", "VERSION", "READY", "STATE", "IN USE BY", "PRUNING"];
    if wide {
        head.extend(["ISTIO", "NAMESPACE", "CONTROL PLANE", "PRUNED AT"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    for revision in revisions {
        let mut row = vec![
            revision.name.clone(),
            revision.version.clone(),
            revision.ready.clone(),
            revision.state.clone(),
            revision.in_use_by.to_string(),
            revision.pruning.clone(),
        ];
        if wide {
            let or_dash = |text: &str| {
                if text.is_empty() {
                    "-".to_owned()
                } else {
                    text.to_owned()
                }
            };
            row.extend([
                or_dash(&revision.istio),
                revision.namespace.clone(),
                revision.control_plane.clone(),
                or_dash(revision.pruned_at.as_deref().unwrap_or_default()),
            ]);
        }
        rows.push(row);
    }
    table::lines("", &rows)
}

/// Remedy for missing permissions.
const ROLE_HINT: &str = "ask for a ClusterRole that grants list on istios, istiorevisions, istiorevisiontags, \
    istiocnis and ztunnels of sailoperator.io";

impl From<SurveyError> for CliError {
    fn from(error: SurveyError) -> Self {
        let result = Self::new(Kind::Cluster, error.to_string());
        match error {
            SurveyError::NoDefinitions(_) => result.hint("run `mainstay crds install`"),
            SurveyError::List { error, .. } if matches!(error.code, 401 | 403) => result.hint(ROLE_HINT),
            SurveyError::List { .. } => {
                result.hint("check the API server and the network, then run the command again")
            }
        }
    }
}
