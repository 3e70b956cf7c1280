//! `mainstay rollout plan`: runs the planner on a model of the clusters and shows what would change where,
//! and replicas and weights over time.

mod assume;
pub(crate) mod data;
mod live;
pub(crate) mod page;
mod running;
pub(crate) mod scenario;

use jiff::Timestamp;
use mainstay_api::delivery::ApplicationDeployment;
use mainstay_rollout::model::{End, TimelineOptions, timeline};

use super::api::ScopeFlags;
use super::documents::{FileFlags, read};
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};
use crate::kubeconfig::block_on;
use data::Report;
use scenario::{Assumptions, Scenario};

/// Arguments of `rollout plan`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout plan -f deployment.yaml
  mainstay rollout plan -f new.yaml --from deployed.yaml --ready-after 30s
  mainstay rollout plan example-app-deploy -n shop
  mainstay rollout plan -f new.yaml --live --context prod
  kubectl get appdep,apprev,clusters.delivery.mainstay.dev -A -o yaml > now.yaml
  mainstay rollout plan example-app-deploy --snapshot now.yaml
  mainstay rollout plan -f applications/ -f deployment.yaml --provider gateway -o json | jq '.timeline[-1]'

With -f or --snapshot it works without a cluster; without them, or with --live, it starts from the status that is
stored in the cluster. Revisions and clusters that the documents name but do not contain are assumed, and the
assumptions are printed. Pauses that wait for a promotion are promoted at once.

Exit codes: 0 the rollout completes, 2 it does not, 1 the documents are invalid.")]
pub(crate) struct Args {
    /// Name of the deployment; with -f only needed if the documents contain several
    name: Option<String>,

    #[command(flatten)]
    files: FileFlags,

    /// Documents that are deployed now; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    from: Vec<String>,

    /// Start from the status of the deployment in the cluster
    #[arg(long, conflicts_with = "from")]
    live: bool,

    /// Start from the status of the deployment in this file or directory (`kubectl get -A -o yaml`)
    #[cfg(feature = "simulator")]
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["from", "live"])]
    snapshot: Option<std::path::PathBuf>,

    #[command(flatten)]
    assumptions: Assumptions,

    /// Output format; `wide` adds every write with its reason
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    /// Evaluate at this time instead of now
    #[arg(long, hide = true, value_name = "TIME")]
    at: Option<Timestamp>,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let scenario = scenario(args)?;
    let report = report(scenario, &args.assumptions);
    print_styled(&match args.output {
        Format::Text | Format::Wide => page::page(&report, args.output == Format::Wide),
        other => structured(&report.to_json(), other)?,
    })?;
    if report.is_complete() {
        Ok(())
    } else {
        Err(CliError::new(Kind::Attention, ""))
    }
}

fn scenario(args: &Args) -> Result<Scenario, CliError> {
    let now = args.at.unwrap_or_else(Timestamp::now);
    let has_files = !args.files.files.is_empty();
    if has_files && !args.has_state() {
        return Scenario::from_files(&args.files, &args.from, args.name.as_deref());
    }
    let change = has_files.then(|| change(args)).transpose()?;
    let name = args
        .name
        .as_deref()
        .or(change.as_ref().map(ApplicationDeployment::name));
    let spec = change.as_ref().map(|change| change.spec.clone());
    #[cfg(feature = "simulator")]
    if let Some(path) = &args.snapshot {
        return live::from_snapshot(path, name, spec, now);
    }
    let name = name.ok_or_else(|| {
        CliError::new(Kind::Usage, "neither a deployment nor files given")
            .hint("name a deployment of the cluster, or files with -f")
    })?;
    block_on(live::scenario(&args.scope, name, spec, now))
}

/// Reads the changed deployment.
fn change(args: &Args) -> Result<ApplicationDeployment, CliError> {
    let documents = read(&args.files)?;
    block_on(super::validate_documents(&documents))?;
    scenario::deployment(&documents, args.name.as_deref())
}

impl Args {
    /// Whether the state before is that of a cluster or a snapshot.
    fn has_state(&self) -> bool {
        #[cfg(feature = "simulator")]
        if self.snapshot.is_some() {
            return true;
        }
        self.live
    }
}

/// Runs a scenario and records it.
pub(crate) fn report(scenario: Scenario, assumptions: &Assumptions) -> Report {
    let options = TimelineOptions {
        limit: assumptions.limit,
        promotes: !assumptions.no_promote,
    };
    let Scenario {
        mut model,
        next,
        notes,
        unreachable,
    } = scenario;
    assumptions.set_provider(&mut model);
    if let Some(next) = next {
        next.prepare(&mut model, |model| {
            timeline(model, &mut assumptions.healthy_behavior(), options);
        });
    }
    assumptions.disconnect(&mut model, &unreachable);
    let mut behavior = assumptions.behavior();
    Report::record(model, &mut behavior, options, notes)
}

/// Returns how a timeline ended, in words.
pub(crate) fn end_word(end: End) -> &'static str {
    match end {
        End::Settled => "Settled",
        End::Waiting => "Waiting",
        End::Limit => "Limit",
    }
}
