//! `mainstay rehearse`: rehearses an upgrade on a copy of a cluster and prints the report.

mod fail_on;
mod page;
mod readiness;
mod rollout;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_rehearsal::input::read_cluster;
use mainstay_rehearsal::{Input, RehearsalError, RehearsalRequest, html, rehearse};
use serde_json::Value;

use crate::catalog::{ChartsFlag, version_name};
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind, chain};
use crate::kubeconfig::{ClusterFlags, NamespaceFlags, block_on};
use crate::snapshot::{STDIN, is_stdin, read_objects, read_stdin, unreadable};
use crate::ui::Progress;
use fail_on::FailOn;

/// Arguments of `rehearse`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  mainstay rehearse --to v1.29.1
  mainstay rehearse prod --to v1.29.1 --context prod --report upgrade.html
  mainstay rehearse -f istio.yaml --snapshot backup/
  kubectl get istios,istiorevisions,istiorevisiontags,ns,deploy,rs,sts,ds,po,svc,pdb,mutatingwebhookconfigurations -A -o yaml > now.yaml
  mainstay rehearse --to v1.29.1 --snapshot now.yaml -o json | jq '.findings'
  kubectl get istios,ns,deploy,rs,po,svc -A -o yaml | mainstay rehearse --to v1.29.1 --snapshot -
  mainstay rehearse --to v1.29.1 --fail-on warning     # in a pipeline
  mainstay rehearse rollout -f new.yaml --from deployed.yaml

The cluster is only read, and no Secret is read. Readiness times are taken from the observed pods; workloads without
observed pods use --ready-after.

Exit codes: 0 nothing of the severity of --fail-on was found, 2 it was, 1 the rehearsal failed."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Name of the Istio; optional if there is only one
    istio: Option<String>,

    /// Version to upgrade to
    #[arg(long, value_name = "VERSION", required_unless_present = "file")]
    to: Option<String>,

    /// Read the upgraded Istio from this file, `-` for stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Rehearse on this file or directory (`kubectl get -A -o yaml`), `-` for stdin, instead of a cluster
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["kubeconfig", "context"])]
    snapshot: Option<PathBuf>,

    /// Readiness time of pods without an observed one
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = crate::flag_value::duration)]
    ready_after: Duration,

    /// Readiness times by workload: a YAML file of `namespace/name: 30s` or `never`
    #[arg(long, value_name = "FILE")]
    readiness: Option<PathBuf>,

    /// Random seed; the same input and seed produce the same report
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Also write the report as an HTML page
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Lowest severity of findings that exits with 2; an upgrade that does not complete is an error
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY")]
    fail_on: FailOn,

    #[command(flatten)]
    namespaces: NamespaceFlags,

    /// Output format; `wide` lists every workload
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Rehearse an application rollout and show the requests of each revision
    Rollout(Box<rollout::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(Command::Rollout(it)) = &args.command {
        return rollout::run(it);
    }
    let progress = Progress::start();
    progress.step("reading");
    let catalog = Arc::new(args.charts.open()?);
    let request = request(args, &catalog)?;
    let input = match &args.snapshot {
        Some(path) if is_stdin(path) => Input::from_text(format!("snapshot {STDIN}"), &read_stdin()?)?,
        Some(path) => Input::from_path(path)?,
        None => block_on(read(args))?,
    };
    progress.step("rehearsing");
    let mut report = rehearse(&catalog, input, &request)?;
    drop(progress);
    let result = args.fail_on.exit(&report);
    if let Some(namespace) = args.namespaces.namespace() {
        report.restrict(namespace);
    }
    if let Some(path) = &args.report {
        write(path, &html::page(&report, Some(&footer())))?;
    }
    let text = match args.output {
        Format::Text | Format::Wide => page::page(&report, args.output == Format::Wide),
        other => structured(&report, other)?,
    };
    print_styled(&text)?;
    result
}

/// Returns date, version and command for the HTML page.
fn footer() -> html::Footer {
    let command: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    html::Footer {
        date: Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: format!("mainstay {}", command.join(" ")),
    }
}

/// Quotes a word for a shell if it needs it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

async fn read(args: &Args) -> Result<Input, CliError> {
    let client = args.cluster.client().await?;
    let source = match args.cluster.context() {
        Some(context) => format!("cluster of context {context}"),
        None => "cluster".to_owned(),
    };
    Ok(read_cluster(&client, source, Timestamp::now()).await?)
}

fn request(args: &Args, catalog: &Catalog) -> Result<RehearsalRequest, CliError> {
    let manifest = args.file.as_deref().map(manifest).transpose()?;
    Ok(RehearsalRequest {
        istio: args.istio.clone(),
        to: args
            .to
            .as_deref()
            .map(|to| version_name(catalog, to))
            .transpose()?,
        manifest,
        seed: args.seed,
        readiness: args.ready_after,
        readiness_overrides: args
            .readiness
            .as_deref()
            .map(readiness::read)
            .transpose()?
            .unwrap_or_default(),
        ..RehearsalRequest::default()
    })
}

/// Reads the Istio from a file.
fn manifest(path: &Path) -> Result<Value, CliError> {
    let objects = read_objects(path)?;
    let mut istios = objects
        .into_iter()
        .filter(|object| object.get("kind").and_then(Value::as_str) == Some("Istio"));
    match (istios.next(), istios.next()) {
        (Some(istio), None) => Ok(istio),
        (None, _) => Err(
            CliError::new(Kind::Usage, format!("{}: no Istio found", path.display()))
                .hint("name a file with one resource of kind Istio"),
        ),
        _ => Err(
            CliError::new(Kind::Usage, format!("{}: several Istios found", path.display()))
                .hint("name a file with one resource of kind Istio"),
        ),
    }
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|error| {
        CliError::new(Kind::Io, format!("{}: {error}", path.display()))
            .hint("name a file in a directory that exists and is writable")
    })
}

impl From<RehearsalError> for CliError {
    fn from(error: RehearsalError) -> Self {
        if let RehearsalError::Snapshot(error) = &error {
            return unreadable(error);
        }
        let kind = match &error {
            RehearsalError::Cluster { .. } | RehearsalError::NoDefinitions { .. } => Kind::Cluster,
            RehearsalError::Harness(_) => Kind::Io,
            _ => Kind::Usage,
        };
        let result = Self::new(kind, chain(&error));
        match &error {
            RehearsalError::Version(_) => result
                .hint("run `mainstay charts list` to list the available versions, `mainstay charts pull` to add one"),
            RehearsalError::SeveralIstios(names) => match names.first() {
                Some(first) => result.hint(format!("name one, such as `mainstay rehearse {first}`")),
                None => result,
            },
            RehearsalError::UnknownIstio { .. } => result.hint("name an Istio of the input"),
            RehearsalError::NoDefinitions { .. } => result.hint("run `mainstay crds install`"),
            RehearsalError::Cluster { .. } => {
                result.hint("ask for a ClusterRole that grants list on this kind, or rehearse on a --snapshot")
            }
            RehearsalError::Object { .. } => {
                result.hint("pass the output of `kubectl get -A -o yaml`, unchanged")
            }
            RehearsalError::NoIstio => {
                result.hint("add the output of `kubectl get istios -o yaml` to the snapshot; run `mainstay adopt` first if another tool installed the mesh")
            }
            _ => result,
        }
    }
}
