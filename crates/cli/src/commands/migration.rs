//! `mainstay migration`: takes a cluster, prints what its migration will do, does and did; pauses it, lets it go on, tries again what
//! failed. Decides nothing: it shows what the operator's own planner says, and changes only what a user could change.

pub(crate) mod page;
pub(crate) mod progress;

use std::time::Duration;

use jiff::SignedDuration;
use kube::Client;
use mainstay_api::{
    GoDuration, Istio, MigrationState, MigrationStrategy, Reason, UpdateStrategy, UpdateStrategyType,
    WorkloadMigration, names,
};
use mainstay_cluster::survey::{Survey, survey, survey_workloads};
use mainstay_cluster::write::Writer;
use mainstay_mesh::migration::MigrationSettings;
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{Observation, Preview, Subject, preview};
use serde_json::json;

use crate::catalogue::ChartsFlag;
use crate::commands::print_styled;
use crate::commands::revision::{At, Format, empty_snapshot, structured};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// How often `watch` looks.
const PERIOD: Duration = Duration::from_secs(2);

/// Arguments of `migration`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print what will move, in which order, what will not and why, and how long it takes: before anything moves
    #[command(after_help = "Examples:
  mainstay migration plan
  mainstay migration plan prod --to v1.29.1
  mainstay migration plan --to v1.29.1 --ready-after 45s -o json | jq '.batches | length'")]
    Plan(PlanArgs),
    /// Print how far a migration is
    #[command(after_help = "Examples:
  mainstay migration status
  mainstay migration status prod -o yaml

Exit codes: 0 done or on its way, 2 workloads failed, 1 the cluster could not be read.")]
    Status(StatusArgs),
    /// Follow a migration until it ends
    #[command(after_help = "Examples:
  mainstay migration watch
  mainstay migration watch prod -o json

Exit codes: 0 every workload has moved, 2 workloads failed, 1 the cluster could not be read.")]
    Watch(StatusArgs),
    /// Start nothing new until `resume`; what is being moved goes on
    Pause(WhichArgs),
    /// Go on after `pause`
    Resume(WhichArgs),
    /// Try again what failed
    #[command(after_help = "Examples:
  mainstay migration retry
  mainstay migration retry --workload shop/cart")]
    Retry(RetryArgs),
}

/// Which migration.
#[derive(clap::Args)]
struct WhichArgs {
    /// The Istio whose workloads move; may be left out if there is only one
    istio: Option<String>,

    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Plan as if the Istio's version were this one
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,

    /// How long a workload is assumed to take until it is ready
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    ready_after: SignedDuration,

    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(clap::Args)]
struct StatusArgs {
    #[command(flatten)]
    which: WhichArgs,

    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(clap::Args)]
struct ShownArgs {
    /// How to print it
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
    which: WhichArgs,

    /// Only this one, as NAMESPACE/NAME; may be given several times
    #[arg(long, value_name = "NAMESPACE/NAME")]
    workload: Vec<String>,

    #[command(flatten)]
    charts: ChartsFlag,

    #[command(flatten)]
    at: At,
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    GoDuration(text.to_owned())
        .span()
        .map_err(|error| error.to_string())
}

/// Runs it.
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

/// Everything that is there, workloads included.
async fn look(client: &Client, charts: &ChartsFlag, at: &At) -> Result<Survey, CliError> {
    let mut found = survey(client, empty_snapshot(charts, at)?).await?;
    survey_workloads(client, &mut found).await;
    Ok(found)
}

/// The Istio that is meant.
fn chosen(found: &Survey, name: Option<&str>) -> Result<Istio, CliError> {
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
                "there is none".to_owned()
            } else {
                format!("there is {listed}")
            };
            CliError::new(Kind::Cluster, format!("no Istio {name:?}")).hint(known)
        }),
        (None, Some(istio), None) => Ok(istio.clone()),
        (None, None, _) => Err(CliError::new(Kind::Cluster, "there is no Istio")),
        (None, ..) => {
            Err(CliError::new(Kind::Usage, "there are several Istios").hint(format!("name one: {listed}")))
        }
    }
}

async fn plan(args: &PlanArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let mut found = look(&client, &args.shown.charts, &args.shown.at).await?;
    let istio = chosen(&found, args.which.istio.as_deref())?;
    let (preview, notes) = supposed(&mut found, istio, args.to.as_deref())?;
    let text = match args.shown.output {
        Format::Text | Format::Wide => page::plan(&preview, &notes, args.ready_after),
        other => structured(&page::plan_data(&preview, args.ready_after), other)?,
    };
    print_styled(&text)
}

/// What the migration would do if the Istio had this version and moved workloads; and what was supposed.
pub(crate) fn supposed(
    found: &mut Survey,
    mut istio: Istio,
    version: Option<&str>,
) -> Result<(Preview, Vec<String>), CliError> {
    let is_other = version.is_some_and(|version| version != istio.spec.version);
    let notes = suppose(&mut istio, version);
    found.snapshot.observe(Observation::Istio(istio.clone()));
    let Some(mut preview) = preview(&found.snapshot, &istio) else {
        let version = &istio.spec.version;
        let told = format!("Istio {:?} cannot be planned for {version}", istio.name());
        return Err(CliError::new(Kind::Cluster, told)
            .hint("is the version known? `mainstay charts list` shows those that are"));
    };
    // Nobody expects the control plane of a version that is only supposed to be there.
    preview
        .held
        .take_if(|(reason, _)| is_other && *reason == Reason::TargetRevisionNotReady);
    Ok((preview, notes))
}

/// Supposes another version, and that workloads move; gives what was supposed.
fn suppose(istio: &mut Istio, version: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(version) = version.filter(|version| **version != *istio.spec.version) {
        notes.push(format!(
            "supposing version {version} instead of {}",
            istio.spec.version
        ));
        version.clone_into(&mut istio.spec.version);
    }
    let strategy = istio
        .spec
        .update_strategy
        .get_or_insert_with(UpdateStrategy::default);
    if strategy.kind != UpdateStrategyType::RevisionBased {
        notes.push("supposing updateStrategy.type RevisionBased instead of InPlace".to_owned());
        strategy.kind = UpdateStrategyType::RevisionBased;
    }
    let migration = strategy
        .workload_migration
        .get_or_insert_with(WorkloadMigration::default);
    if migration.strategy != Some(MigrationStrategy::Batched) {
        notes.push("supposing workloadMigration.strategy Batched: it is not switched on".to_owned());
        migration.strategy = Some(MigrationStrategy::Batched);
    }
    notes
}

async fn status(args: &StatusArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let found = look(&client, &args.shown.charts, &args.shown.at).await?;
    let istio = chosen(&found, args.which.istio.as_deref())?;
    let preview = preview(&found.snapshot, &istio);
    let text = match args.shown.output {
        Format::Text | Format::Wide => page::status(&istio, preview.as_ref()),
        other => structured(&istio.status.workload_migration, other)?,
    };
    print_styled(&text)?;
    verdict(&istio)
}

fn verdict(istio: &Istio) -> Result<(), CliError> {
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
        let found = look(&client, &args.shown.charts, &args.shown.at).await?;
        let istio = chosen(&found, args.which.istio.as_deref())?;
        let Some(look) = progress::Look::at(&found.snapshot, &istio) else {
            return Err(CliError::new(
                Kind::Cluster,
                format!("Istio {:?} moves no workloads", istio.name()),
            )
            .hint("spec.updateStrategy.workloadMigration.strategy: Batched switches it on"));
        };
        let state = look.status.state;
        display.next(look)?.print()?;
        if matches!(state, MigrationState::Completed | MigrationState::Failed) {
            return verdict(&istio);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

async fn set_paused(args: &WhichArgs, paused: bool) -> Result<(), CliError> {
    let client = args.cluster.client().await?;
    let found = survey(&client, empty_snapshot(&ChartsFlag::default(), &At::default())?).await?;
    let istio = chosen(&found, args.istio.as_deref())?;
    let subject = Subject::istio(istio.name());
    let change = json!({
        "metadata": {"resourceVersion": istio.metadata.resource_version},
        "spec": {"updateStrategy": {"workloadMigration": {"paused": paused}}},
    });
    let Some(settings) = MigrationSettings::from_istio(&istio) else {
        return Err(CliError::new(
            Kind::Cluster,
            format!("Istio {:?} moves no workloads", istio.name()),
        ));
    };
    let word = if paused { "paused" } else { "goes on" };
    if settings.paused == paused {
        return print_styled(&format!("Istio {}: {word} already\n", istio.name()));
    }
    refusable(Writer::new(client).merge(&subject, change).await)?;
    print_styled(&format!("Istio {}: {word}\n", istio.name()))
}

/// Takes the mark of the last attempt from what failed: then it is to be moved as if it never had been.
async fn retry(args: &RetryArgs) -> Result<(), CliError> {
    let client = args.which.cluster.client().await?;
    let found = look(&client, &args.charts, &args.at).await?;
    let istio = chosen(&found, args.which.istio.as_deref())?;
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
            "nothing failed".to_owned()
        } else {
            format!("failed: {}", listed.join(", "))
        };
        return Err(CliError::new(Kind::Usage, format!("{unknown} is no workload that failed")).hint(hint));
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
            "resourceVersion": workload.resource_version, "annotations": {names::MIGRATION_RECORD: null},
        }});
        refusable(writer.merge(&Subject::Workload(key.clone()), change).await)?;
        print_styled(&format!("{key}: to be tried again\n"))?;
        count += 1;
    }
    if count == 0 {
        print_styled("nothing failed\n")?;
    }
    Ok(())
}

fn refusable<T>(answer: Result<T, mainstay_cluster::write::WriteError>) -> Result<T, CliError> {
    answer.map_err(|refused| {
        let told = CliError::new(Kind::Cluster, refused.message.clone());
        match refused.code {
            409 => told.hint("somebody else changed it a moment ago: try again"),
            _ => told,
        }
    })
}
