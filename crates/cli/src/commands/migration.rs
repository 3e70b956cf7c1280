//! `mainstay migration`: shows the plan and progress of a migration, pauses and resumes it, and retries
//! failures. The plan is the operator's own; only fields that users may change are written.

pub(crate) mod page;
pub(crate) mod progress;
mod unmanaged;

use std::time::Duration;

use jiff::SignedDuration;
use kube::Client;
use mainstay_api::{
    Istio, MigrationState, MigrationStrategy, Reason, UpdateStrategy, UpdateStrategyType, WorkloadMigration,
    names,
};
use mainstay_cluster::survey::{Survey, survey, survey_workloads};
use mainstay_cluster::write::Writer;
use mainstay_mesh::migration::MigrationSettings;
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{Observation, Preview, Subject, preview};
use serde_json::json;

use crate::catalog::{ChartsFlag, version_name};
use crate::commands::print_styled;
use crate::commands::revision::{At, Format, empty_snapshot, structured};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, NamespaceFlags, block_on};
use crate::report::ADOPT_HINT;

/// Remedy for a cluster without an Istio.
const CREATE_HINT: &str = "create one: apply an object with apiVersion sailoperator.io/v1, kind Istio and \
    spec.namespace istio-system, or the output of `mainstay demo --manifests`";

/// Polling interval of `watch`.
const PERIOD: Duration = Duration::from_secs(2);

/// Arguments of `migration`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay migration plan --to v1.29.1
  mainstay migration watch
  mainstay migration retry")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show which workloads will move, in which batches
    #[command(after_help = "Examples:
  mainstay migration plan
  mainstay migration plan prod --to v1.29.1
  mainstay migration plan --to v1.29.1 --ready-after 45s -o json | jq '.batches | length'")]
    Plan(PlanArgs),
    /// Show the progress of a migration
    #[command(after_help = "Examples:
  mainstay migration status
  mainstay migration status prod -o yaml

Exit codes: 0 completed or in progress, 2 workloads failed, 1 the cluster could not be read.")]
    Status(StatusArgs),
    /// Watch a migration until it ends
    #[command(after_help = "Examples:
  mainstay migration watch
  mainstay migration watch prod -o json

Exit codes: 0 completed, 2 workloads failed, 1 the cluster could not be read.")]
    Watch(StatusArgs),
    /// Pause a migration; workloads in progress continue
    #[command(after_help = "Examples:
  mainstay migration pause
  mainstay migration pause prod --context staging")]
    Pause(SelectionArgs),
    /// Resume a paused migration
    #[command(after_help = "Examples:
  mainstay migration resume
  mainstay migration resume prod")]
    Resume(SelectionArgs),
    /// Retry failed workloads
    #[command(after_help = "Examples:
  mainstay migration retry
  mainstay migration retry --workload shop/cart")]
    Retry(RetryArgs),
}

/// Selects a migration.
#[derive(clap::Args)]
struct SelectionArgs {
    /// Name of the Istio; optional if there is only one
    istio: Option<String>,

    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    which: SelectionArgs,

    /// Plan for this version
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,

    /// Assumed time until a workload is ready
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::flag_value::signed_duration)]
    ready_after: SignedDuration,

    #[command(flatten)]
    shown: OutputArgs,
}

#[derive(clap::Args)]
struct StatusArgs {
    #[command(flatten)]
    which: SelectionArgs,

    #[command(flatten)]
    shown: OutputArgs,
}

#[derive(clap::Args)]
struct OutputArgs {
    #[command(flatten)]
    namespaces: NamespaceFlags,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(clap::Args)]
struct RetryArgs {
    #[command(flatten)]
    which: SelectionArgs,

    /// Retry only this workload; can be repeated
    #[arg(long, value_name = "NAMESPACE/NAME")]
    workload: Vec<String>,

    #[command(flatten)]
    charts: ChartsFlag,

    #[command(flatten)]
    at: At,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Plan(it) => block_on(plan(it)),
        Command::Status(it) => block_on(status(it)),
        Command::Watch(it) => block_on(watch(it)),
        Command::Pause(it) => block_on(set_paused(it, true)),
        Command::Resume(it) => block_on(set_paused(it, false)),
        Command::Retry(it) => block_on(retry(it)),
    }
}

/// Surveys the cluster, including workloads.
async fn survey_all(client: &Client, charts: &ChartsFlag, at: &At) -> Result<Survey, CliError> {
    let mut found = survey(client, empty_snapshot(charts, at)?).await?;
    survey_workloads(client, &mut found).await;
    Ok(found)
}

/// Returns the selected Istio.
fn select_istio(found: &Survey, name: Option<&str>) -> Result<Istio, CliError> {
    let mut all = found.snapshot.istios().iter();
    let names: Vec<&str> = found
        .snapshot
        .istios()
        .iter()
        .map(mainstay_api::Resource::name)
        .collect();
    let listed = names.join(", ");
    match (name, all.next(), all.next()) {
        (Some(name), ..) => found.snapshot.istios().get(name).cloned().ok_or_else(|| {
            let known = if listed.is_empty() {
                "create one: the cluster has no Istio".to_owned()
            } else {
                format!("use one of {listed}")
            };
            CliError::new(Kind::Cluster, format!("Istio {name:?} not found")).hint(known)
        }),
        (None, Some(istio), None) => Ok(istio.clone()),
        (None, None, _) if !found.unmanaged.is_empty() => {
            let message = "no Istio found: no operator manages the control planes of this cluster";
            Err(CliError::new(Kind::Cluster, message).hint(ADOPT_HINT))
        }
        (None, None, _) => Err(CliError::new(Kind::Cluster, "no Istio found").hint(CREATE_HINT)),
        (None, ..) => {
            Err(CliError::new(Kind::Usage, "several Istios found").hint(format!("name one of {listed}")))
        }
    }
}

async fn plan(args: &PlanArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let mut found = survey_all(&client, &args.shown.charts, &args.shown.at).await?;
    let assumed = unmanaged::assume(&client, &mut found, args).await?;
    let istio = select_istio(&found, args.which.istio.as_deref())?;
    let adoption = assumed.iter().find(|one| one.plane.revision == istio.name());
    let to = args.to.as_deref();
    let to = to.map(|to| version_name(&args.shown.charts.open()?, to).map_err(CliError::from));
    let (mut preview, mut notes) = preview_with_assumptions(&mut found, istio, to.transpose()?.as_deref())?;
    if let Some(adoption) = adoption {
        unmanaged::complete(adoption, &mut preview, &mut notes);
    }
    restrict(&mut preview, &args.shown.namespaces);
    let text = match args.shown.output {
        Format::Text | Format::Wide => page::plan(&preview, &notes, args.ready_after),
        other => structured(&page::plan_data(&preview, &notes, args.ready_after), other)?,
    };
    print_styled(&text)
}

/// Keeps the workloads of the selected namespaces. Batches keep their numbers.
fn restrict(preview: &mut Preview, namespaces: &NamespaceFlags) {
    let selects = |key: &WorkloadKey| namespaces.selects(key.namespace());
    preview.batches.iter_mut().for_each(|batch| batch.retain(selects));
    preview.moving.retain(selects);
    preview.failed.retain(selects);
    preview.skipped.retain(|(key, _)| selects(key));
    preview.namespaces.retain(|name| namespaces.selects(name));
    preview
        .standalone
        .retain(|(namespace, _)| namespaces.selects(namespace));
}

/// Returns the preview of a migration to a version with migration enabled, and the assumptions made.
pub(crate) fn preview_with_assumptions(
    found: &mut Survey,
    mut istio: Istio,
    version: Option<&str>,
) -> Result<(Preview, Vec<String>), CliError> {
    let is_other = version.is_some_and(|version| version != istio.spec.version);
    let notes = apply_assumptions(&mut istio, version);
    found.snapshot.observe(Observation::Istio(istio.clone()));
    let Some(mut preview) = preview(&found.snapshot, &istio) else {
        let version = &istio.spec.version;
        let message = format!("cannot plan version {version} of Istio {:?}", istio.name());
        return Err(CliError::new(Kind::Cluster, message)
            .hint("run `mainstay charts list` to list the available versions"));
    };
    // The control plane of an assumed version does not exist yet.
    preview
        .held
        .take_if(|(reason, _)| is_other && *reason == Reason::TargetRevisionNotReady);
    Ok((preview, notes))
}

/// Sets the version and enables migration; returns the assumptions.
fn apply_assumptions(istio: &mut Istio, version: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(version) = version.filter(|version| **version != *istio.spec.version) {
        notes.push(format!(
            "assuming version {version} instead of {}",
            istio.spec.version
        ));
        version.clone_into(&mut istio.spec.version);
    }
    let strategy = istio
        .spec
        .update_strategy
        .get_or_insert_with(UpdateStrategy::default);
    if strategy.kind != UpdateStrategyType::RevisionBased {
        notes.push("assuming updateStrategy.type RevisionBased instead of InPlace".to_owned());
        strategy.kind = UpdateStrategyType::RevisionBased;
    }
    let migration = strategy
        .workload_migration
        .get_or_insert_with(WorkloadMigration::default);
    if migration.strategy != Some(MigrationStrategy::Batched) {
        notes.push("assuming workloadMigration.strategy Batched, which is not enabled".to_owned());
        migration.strategy = Some(MigrationStrategy::Batched);
    }
    notes
}

async fn status(args: &StatusArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let found = survey_all(&client, &args.shown.charts, &args.shown.at).await?;
    let istio = select_istio(&found, args.which.istio.as_deref())?;
    let mut preview = preview(&found.snapshot, &istio);
    if let Some(preview) = &mut preview {
        restrict(preview, &args.shown.namespaces);
    }
    let text = match args.shown.output {
        Format::Text | Format::Wide => page::status(&istio, preview.as_ref()),
        other => structured(&istio.status.workload_migration, other)?,
    };
    print_styled(&text)?;
    outcome(&istio)
}

fn outcome(istio: &Istio) -> Result<(), CliError> {
    let state = istio
        .status
        .workload_migration
        .as_ref()
        .map(|status| status.state);
    if state == Some(MigrationState::Failed) {
        return Err(CliError::new(Kind::Attention, ""));
    }
    Ok(())
}

async fn watch(args: &StatusArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let mut display = progress::Display::new(args.shown.output);
    loop {
        let found = survey_all(&client, &args.shown.charts, &args.shown.at).await?;
        let istio = select_istio(&found, args.which.istio.as_deref())?;
        let progress = progress::MigrationProgress::from_snapshot(&found.snapshot, &istio);
        let mut progress = progress.ok_or_else(|| not_enabled(&istio))?;
        let failures = &mut progress.status.failures;
        failures.retain(|failure| args.shown.namespaces.selects(&failure.namespace));
        let state = progress.status.state;
        display.show("", progress)?;
        if matches!(state, MigrationState::Completed | MigrationState::Failed) {
            return outcome(&istio);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

fn not_enabled(istio: &Istio) -> CliError {
    let message = format!("workload migration is not enabled for Istio {:?}", istio.name());
    CliError::new(Kind::Cluster, message)
        .hint("set spec.updateStrategy.workloadMigration.strategy to Batched")
}

async fn set_paused(args: &SelectionArgs, paused: bool) -> Result<(), CliError> {
    let client = args.cluster.client().await?;
    let found = survey(&client, empty_snapshot(&ChartsFlag::default(), &At::default())?).await?;
    let istio = select_istio(&found, args.istio.as_deref())?;
    let subject = Subject::istio(istio.name());
    let change = json!({
        "metadata": {"resourceVersion": istio.metadata.resource_version},
        "spec": {"updateStrategy": {"workloadMigration": {"paused": paused}}},
    });
    let Some(settings) = MigrationSettings::from_istio(&istio) else {
        return Err(not_enabled(&istio));
    };
    let word = if paused { "paused" } else { "resumed" };
    if settings.paused == paused {
        return print_styled(&format!("Istio {}: already {word}\n", istio.name()));
    }
    written(Writer::new(client).merge(&subject, change).await)?;
    print_styled(&format!("Istio {}: {word}\n", istio.name()))
}

/// Replaces the migration record of failed workloads by a request for a retry.
async fn retry(args: &RetryArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let found = survey_all(&client, &args.charts, &args.at).await?;
    let istio = select_istio(&found, args.which.istio.as_deref())?;
    let failed = preview(&found.snapshot, &istio)
        .map(|preview: Preview| preview.failed)
        .unwrap_or_default();
    let short = |key: &WorkloadKey| format!("{}/{}", key.namespace(), key.name());
    if let Some(unknown) = args
        .workload
        .iter()
        .find(|name| !failed.iter().any(|key| short(key) == **name))
    {
        let listed: Vec<String> = failed.iter().map(short).collect();
        let hint = if listed.is_empty() {
            "run `mainstay migration status`: no workload failed".to_owned()
        } else {
            format!("use one of {}", listed.join(", "))
        };
        return Err(CliError::new(Kind::Usage, format!("workload {unknown} has not failed")).hint(hint));
    }
    let chosen = failed
        .iter()
        .filter(|key| args.workload.is_empty() || args.workload.contains(&short(key)));
    let writer = Writer::new(client);
    let mut count = 0;
    for key in chosen {
        let Some(workload) = found.snapshot.workload(key) else {
            continue;
        };
        let change = json!({"metadata": {
            "resourceVersion": workload.resource_version, "annotations": {names::MIGRATION_RECORD: names::RETRY_MIGRATION},
        }});
        written(writer.merge(&Subject::Workload(key.clone()), change).await)?;
        print_styled(&format!("{key}: retrying\n"))?;
        count += 1;
    }
    if count == 0 {
        print_styled("No failed workloads\n")?;
    }
    Ok(())
}

fn written<T>(result: Result<T, mainstay_cluster::write::WriteError>) -> Result<T, CliError> {
    result.map_err(|rejected| {
        let error = CliError::new(Kind::Cluster, rejected.message.clone());
        match rejected.code {
            409 => error.hint("try again: the object was modified concurrently"),
            _ => error,
        }
    })
}
