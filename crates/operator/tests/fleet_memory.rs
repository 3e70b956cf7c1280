//! Measures the memory of the delivery controllers together with the simulated clusters that they control,
//! and checks that a steady state has no writes. It is the only test of this program, because it measures
//! the memory of the process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "test code; each program uses a part of the helpers"
)]

#[path = "rollout/fleet.rs"]
mod fleet;
#[path = "rollout/objects.rs"]
mod objects;
#[path = "support/virtual_time.rs"]
#[allow(unreachable_pub, reason = "a module of each test program, not a crate")]
mod virtual_time;

use std::time::Duration;

use fleet::Fleet;
use mainstay_testkit::Usage;
use objects::{DEPLOYMENT, deployment_of, path, with_traffic};
use serde_json::{Value, json};
use virtual_time::run;

/// Numbers of clusters and components by default and in the complete proof.
const SIZES: [(usize, usize); 2] = [(8, 3), (100, 20)];
const STEADY_TIME: Duration = Duration::from_mins(30);
const V1: &str = "example-app-v1";

fn application(components: usize) -> Value {
    let mut application = objects::application("registry/app:1");
    let component = |number: usize| {
        let name = if number == 0 {
            "testsvc".to_owned()
        } else {
            format!("part-{number}")
        };
        json!({"name": name, "type": "webservice", "properties": {"image": "registry/app:1", "port": 8080}})
    };
    application["spec"]["components"] = (0..components).map(component).collect();
    application
}

#[test]
fn many_clusters_are_in_a_steady_state() {
    let is_whole = std::env::var("MAINSTAY_MATRIX").is_ok_and(|share| share == "whole");
    let (clusters, components) = SIZES[usize::from(is_whole)];
    let names: Vec<String> = (0..clusters)
        .map(|number| format!("cluster-{number:03}"))
        .collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    run(async {
        let mut fleet = Fleet::start(&members).await;
        fleet.create(&application(components)).await;
        let places: Vec<(&str, u32)> = members.iter().map(|name| (*name, 1)).collect();
        let deployment = with_traffic(deployment_of(&[(V1, &places)]), "Istio", &[(V1, 100)]);
        fleet.create(&deployment).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        let objects = deployed_objects(&fleet);
        assert!(objects > clusters * components, "{objects} objects");

        let before = fleet.writes();
        fleet.sleep(STEADY_TIME).await;
        assert_eq!(fleet.writes() - before, 0, "writes in a steady state");

        fleet.kill_controllers();
        fleet.start_controllers();
        fleet.until_idle().await;
        assert_eq!(fleet.writes() - before, 0, "writes after a restart");
        println!(
            "fleet of {clusters} clusters: {objects} objects, 0 writes in {} minutes and after a restart, {:.1} MiB with the simulated clusters",
            STEADY_TIME.as_secs() / 60,
            Usage::for_self().resident(),
        );
        let stored = fleet
            .host()
            .get(&path("applicationdeployments", DEPLOYMENT))
            .await;
        assert_eq!(stored.unwrap().unwrap()["status"]["phase"], "Healthy");
    });
}

/// Returns the number of objects in the members that the controllers have applied.
fn deployed_objects(fleet: &Fleet) -> usize {
    let members = fleet.clusters.iter().filter(|(name, _)| !name.is_empty());
    let count = |cluster: &mainstay_harness::SimulatedCluster| {
        let objects = cluster.sim().with(|state| mainstay_sim::snapshot::dump(state));
        let is_ours =
            |object: &&Value| object["metadata"]["labels"]["delivery.mainstay.dev/deployment"] == DEPLOYMENT;
        let owned = objects.iter().filter(is_ours);
        owned
            .filter(|object| object["metadata"].get("ownerReferences").is_none())
            .count()
    };
    members.map(|(_, cluster)| count(cluster)).sum()
}
