//! `mainstay demo`: runs an upgrade of a mesh on a simulated cluster and prints the commands a user would run
//! on a real one. Operator, charts, planner and output are real; only the cluster is simulated.

mod cluster;
mod fixtures;
mod outcome;
mod printer;
mod steps;

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, HarnessError, SimulatedCluster, Speed};
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::print;
use crate::error::{CliError, Kind, chain};
use cluster::DemoCluster;
use printer::Printer;

/// Arguments of `demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay demo
  mainstay demo --speed 5                      # slower
  mainstay demo -o json | jq -r .event         # one line per event
  mainstay demo --manifests > demo.yaml        # the same objects, for a real cluster

Needs no cluster, files or network, and writes nothing. Press Ctrl-C to stop.")]
pub(crate) struct Args {
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

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if SPEEDS.contains(&speed) {
        Ok(speed)
    } else {
        Err(format!("must be between {} and {}", SPEEDS.start(), SPEEDS.end()))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
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
    let printer = Printer::new(args.output, args.speed, options.start);
    SimulatedCluster::run(catalog, &options, |stage| play(DemoCluster::new(stage, printer)))
}

/// Runs until the end or a signal.
async fn play(cluster: DemoCluster) -> Result<(), CliError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = steps::run(&cluster) => done,
        _ = interrupt.recv() => cluster.printer.stopped(),
        _ = terminate.recv() => cluster.printer.stopped(),
    }
}

impl From<HarnessError> for CliError {
    fn from(error: HarnessError) -> Self {
        Self::new(Kind::Cluster, chain(&error))
    }
}
