//! `mainstay demo`: takes nothing, plays the upgrade of a mesh on an embedded cluster before the user's eyes, and prints what they would type on
//! a real one. The operator, the charts, the planner and the pages are the real ones; the cluster under them is simulated, and says so.

mod acts;
mod cast;
mod outcome;
mod teller;
mod world;

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, HarnessError, SimulatedCluster, Speed};
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::print;
use crate::error::{CliError, Kind, chain};
use teller::Teller;
use world::World;

/// Arguments of `demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay demo
  mainstay demo --speed 5                      # slower, to read along
  mainstay demo -o json | jq -r .event         # a line per event
  mainstay demo --manifests > demo.yaml        # the same objects, for a cluster of yours

It needs no cluster, no files and no network, and leaves nothing behind. Ctrl-C ends it.")]
pub(crate) struct Args {
    /// How many seconds of the cluster pass in one second
    #[arg(long, default_value_t = 20.0, value_name = "FACTOR", value_parser = speed)]
    speed: f64,

    /// How to tell it
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    /// Print the objects it applies instead, and do nothing
    #[arg(long)]
    manifests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// A line per event, for programs
    Json,
}

/// Slower nobody waits for, faster no machine plays.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=1_000.0;

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if SPEEDS.contains(&speed) {
        Ok(speed)
    } else {
        Err(format!("from {} to {}", SPEEDS.start(), SPEEDS.end()))
    }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.manifests {
        return print(cast::manifests()?.as_bytes());
    }
    let catalog = Arc::new(Catalog::embedded()?);
    let options = ClusterOptions {
        start: Timestamp::now(),
        speed: Speed::Factor(args.speed),
        leader_elect: true,
        ..ClusterOptions::default()
    };
    let teller = Teller::new(args.output == Format::Json, args.speed, options.start);
    SimulatedCluster::run(catalog, &options, |stage| play(World::new(stage, teller)))
}

/// Until the end, or until somebody has seen enough.
async fn play(world: World) -> Result<(), CliError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = acts::play(&world) => done,
        _ = interrupt.recv() => world.teller.stopped(),
        _ = terminate.recv() => world.teller.stopped(),
    }
}

impl From<HarnessError> for CliError {
    fn from(error: HarnessError) -> Self {
        Self::new(Kind::Cluster, chain(&error))
    }
}
