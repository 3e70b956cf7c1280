//! `mainstay demo rollout`: two canaries over three simulated clusters. The first fails its analysis and is
//! rolled back; the second succeeds. Controllers, planner and output are real.

mod fixtures;
mod progress;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, Fleet, FleetOptions, Speed};

use super::{CommonArgs, until_signal};
use crate::commands::print;
use crate::error::CliError;
use steps::DemoFleet;

pub(super) const EXAMPLES: &str = "Examples:
  mainstay demo rollout
  mainstay demo rollout --speed 5                      # slower
  mainstay demo rollout -o json | jq -r .event         # one line per event
  mainstay demo rollout --manifests > shop.yaml        # the objects, for clusters of your own

Needs no cluster, files or network, and writes nothing. Press Ctrl-C to stop.
Exit codes: 0 at the end and after Ctrl-C, 1 on failure.";

/// Runs the command.
pub(super) fn run(args: &CommonArgs) -> Result<(), CliError> {
    if args.manifests {
        return print(fixtures::manifests()?.as_bytes());
    }
    let catalog = Arc::new(Catalog::embedded()?);
    let options = FleetOptions {
        cluster: ClusterOptions {
            start: Timestamp::now(),
            speed: Speed::Factor(args.speed),
            inject: false,
            ..ClusterOptions::default()
        },
        namespace: fixtures::NAMESPACE.to_owned(),
        members: fixtures::CLUSTERS
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, _)| ((*name).to_owned(), BTreeMap::new()))
            .collect(),
        ..FleetOptions::default()
    };
    let printer = args.printer(options.cluster.start);
    Fleet::run(&catalog, &options, async |fleet| {
        let mut demo = DemoFleet::new(fleet, &printer);
        until_signal(steps::run(&mut demo), &printer).await
    })
}
