//! `mainstay revision`: takes a cluster, prints its revisions, or everything about one: who keeps it in use and why, and what becomes of it.

mod describe;

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_cluster::deploy::document;
use mainstay_cluster::survey::{SurveyError, survey};
use mainstay_mesh::{Library, Settings, Snapshot};
use serde::Serialize;

use crate::catalogue::ChartsFlag;
use crate::commands::print_styled;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};
use crate::report::{Report, RevisionReport};
use crate::table;

/// Arguments of `revision`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List revisions: who uses them, and what becomes of them
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  mainstay revision list
  mainstay revision list -o wide
  mainstay revision list -o json | jq -r '.[] | select(.prunedAt) | .name'"
    )]
    List(ListArgs),
    /// Say everything about one revision: conditions, referrers and why they count, what is installed, when it goes
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
}

/// What both take.
#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    charts: ChartsFlag,
}

/// How something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For people with a wide screen
    Wide,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

/// The moment things are told for.
#[derive(clap::Args, Default)]
pub(crate) struct At {
    /// Tell what holds at this moment instead of now
    #[arg(long, hide = true, value_name = "TIME")]
    at: Option<Timestamp>,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(it) => block_on(list(&it.common)),
        Command::Describe(it) => block_on(describe::run(it)),
    }
}

/// A snapshot in which nothing was read yet.
pub(crate) fn empty_snapshot(charts: &ChartsFlag, at: &At) -> Result<Snapshot, CliError> {
    // A version that cannot be read is the operator's trouble; here it is only a name.
    let (library, _) = Library::from_catalog(&charts.open()?);
    let now = at.at.unwrap_or_else(Timestamp::now);
    Ok(Snapshot::new(
        now,
        Arc::new(Settings::default()),
        Arc::new(library),
    ))
}

/// For programs.
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

async fn list(args: &Common) -> Result<(), CliError> {
    let client = args.cluster.client().await?;
    let found = survey(&client, empty_snapshot(&args.charts, &args.at)?).await?;
    let report = Report::of(&found);
    let text = match args.output {
        Format::Text | Format::Wide => lines(&report.revisions, args.output == Format::Wide),
        other => structured(&report.revisions, other)?,
    };
    print_styled(&text)
}

fn lines(revisions: &[RevisionReport], wide: bool) -> String {
    if revisions.is_empty() {
        return "no revisions\n".to_owned();
    }
    let mut head = vec![
        "NAME",
        "VERSION",
        "READY",
        "STATE",
        "IN USE BY",
        "WHAT BECOMES OF IT",
    ];
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
            revision.prospect.clone(),
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

impl From<SurveyError> for CliError {
    fn from(error: SurveyError) -> Self {
        let told = Self::new(Kind::Cluster, error.to_string());
        match error {
            SurveyError::NoDefinitions(_) => told.hint("`mainstay crds install` installs them"),
            SurveyError::List { error, .. } if matches!(error.code, 401 | 403) => told
                .hint("`mainstay status` needs to list the five kinds; docs/rbac.md has a role for readers"),
            SurveyError::List { .. } => told,
        }
    }
}
