//! `mainstay demo`: runs an upgrade of a mesh on a simulated cluster, or rollouts on several, and prints the
//! commands a user would run on real ones. Operator, charts, planner and output are real; only the clusters
//! are simulated.

mod cluster;
mod fixtures;
mod outcome;
mod printer;
mod rollout;
mod steps;

use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, HarnessError, SimulatedCluster, Speed};
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::print;
use crate::error::{CliError, Kind, chain};
use crate::flag_value::{FlagError, number_in};
use cluster::DemoCluster;
use printer::Printer;

/// Arguments of `demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay demo
  mainstay demo --speed 5                      # slower
  mainstay demo -o json | jq -r .event         # one line per event
  mainstay demo --manifests > demo.yaml        # the same objects, for a real cluster
  mainstay demo rollout                        # two canaries over three clusters

Needs no cluster, files or network, and writes nothing. Press Ctrl-C to stop.")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Option<Scenario>,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(clap::Subcommand)]
enum Scenario {
    /// Run two canaries over three simulated clusters: one fails its analysis, one succeeds
    #[command(after_help = rollout::EXAMPLES)]
    Rollout(CommonArgs),
}

/// Arguments of every demo.
#[derive(clap::Args)]
struct CommonArgs {
    /// Speed of the simulated clock relative to the wall clock
    #[arg(long, default_value_t = 20.0, value_name = "FACTOR", value_parser = speed)]
    speed: f64,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    /// Print the applied objects and exit
    #[arg(long)]
    manifests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Text,
    /// One JSON line per event
    Json,
    /// One YAML document per event
    Yaml,
}

/// Allowed speeds.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=1_000.0;

fn speed(text: &str) -> Result<f64, FlagError> {
    number_in(SPEEDS, text)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.scenario {
        None => run_upgrade(&args.common),
        Some(Scenario::Rollout(common)) => rollout::run(common),
    }
}

fn run_upgrade(args: &CommonArgs) -> Result<(), CliError> {
    if args.manifests {
        return print(fixtures::manifests()?.as_bytes());
    }
    let catalog = Arc::new(Catalog::embedded()?);
    let options = ClusterOptions {
        start: Timestamp::now(),
        speed: Speed::Factor(args.speed),
        leader_elect: true,
        ..ClusterOptions::default()
    };
    let printer = args.printer(options.start);
    SimulatedCluster::run(catalog, &options, |stage| play(DemoCluster::new(stage, printer)))
}

impl CommonArgs {
    fn printer(&self, start: Timestamp) -> Printer {
        Printer::new(self.output, self.speed, start)
    }
}

async fn play(cluster: DemoCluster) -> Result<(), CliError> {
    until_signal(steps::run(&cluster), &cluster.printer).await
}

/// Runs until the end or a signal.
async fn until_signal(
    steps: impl Future<Output = Result<(), CliError>>,
    printer: &Printer,
) -> Result<(), CliError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = steps => done,
        _ = interrupt.recv() => printer.stopped(),
        _ = terminate.recv() => printer.stopped(),
    }
}

impl From<HarnessError> for CliError {
    fn from(error: HarnessError) -> Self {
        Self::new(Kind::Cluster, chain(&error))
    }
}
