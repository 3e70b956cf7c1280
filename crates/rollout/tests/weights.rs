//! Tests the weights of rules in each cluster, with and without weights in the spec.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    dead_code,
    reason = "helpers of tests"
)]

#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/shop.rs"]
mod shop;

use mainstay_api::delivery::{DeploymentPhase, Provider};
use model::World;
use serde_json::{Value, json};
use shop::{in_clusters, objects, replicas};

/// Name of a revision, its replicas by cluster, and its weight.
type Row<'a> = (&'a str, &'a [(&'a str, u32)], Option<u32>);

fn spec(rows: &[Row<'_>]) -> Value {
    let target = |(name, _, weight): &Row<'_>| {
        let mut target = json!({"revisionName": name, "componentName": "web", "port": 80});
        if let Some(weight) = weight {
            target["weight"] = json!(weight);
        }
        target
    };
    let revision = |(name, rows, _): &Row<'_>| json!({"revisionName": name, "placement": in_clusters(rows)});
    let targets: Value = rows.iter().map(target).collect();
    let revisions: Value = rows.iter().map(revision).collect();
    json!({
        "traffic": {"hosts": ["shop.example.com"], "drainSeconds": 5, "http": [{"weightedTargets": targets}]},
        "appRevisions": revisions,
    })
}

/// Runs until nothing is left to do, and checks that the deployment is healthy.
fn settle(world: &mut World) {
    assert!(world.run_until_idle(600));
    let phase = world.deployment.status.phase;
    assert_eq!(
        phase,
        DeploymentPhase::Healthy,
        "{:?}",
        world.replicas_by_revision()
    );
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

/// Returns the weights of the only route object of a cluster.
fn weights(world: &World, cluster: &str, kind: &str, pointer: &str) -> Vec<u64> {
    let routes = objects(world, cluster, kind);
    assert_eq!(routes.len(), 1, "{routes:?}");
    let route: Value = serde_json::from_str(&routes[0]).unwrap();
    let backends = route.pointer(pointer).unwrap().as_array().unwrap();
    backends
        .iter()
        .map(|backend| backend["weight"].as_u64().unwrap())
        .collect()
}

/// Six and two replicas get 75 and 25 percent of the requests, and the weights follow a change.
#[test]
fn rules_without_weights_follow_the_replicas() {
    for (provider, kind, pointer) in [
        (Provider::Istio, "VirtualService", "/spec/http/0/route"),
        (Provider::GatewayApi, "HTTPRoute", "/spec/rules/0/backendRefs"),
    ] {
        let replicas = |one: u32, other: u32| {
            spec(&[("shop-v1", &[("", one)], None), ("shop-v2", &[("", other)], None)])
        };
        let mut world = World::new(11, replicas(6, 2), &[""]);
        world.set_provider(provider);
        settle(&mut world);
        assert_eq!(weights(&world, "", kind, pointer), [75, 25], "{kind}");
        world.set_spec(replicas(4, 4));
        settle(&mut world);
        assert_eq!(weights(&world, "", kind, pointer), [50, 50], "{kind}");
    }
}

/// Weights are relative to those of the revisions that run in the same cluster, so a revision can be scaled
/// down where its weight is not 100 percent in the spec.
#[test]
fn a_revision_with_unchanged_weights_can_be_scaled_down() {
    let alone = |count: u32| {
        spec(&[
            ("shop-v1", &[("a", count), ("b", 2)], Some(50)),
            ("shop-v2", &[("b", 2)], Some(50)),
        ])
    };
    let proportional = |count: u32| {
        spec(&[
            ("shop-v1", &[("a", count)], Some(3)),
            ("shop-v2", &[("a", 4)], Some(1)),
        ])
    };
    for (before, after) in [(alone(4), alone(2)), (proportional(8), proportional(2))] {
        let mut world = World::new(11, before, &["", "a", "b"]);
        settle(&mut world);
        world.set_spec(after);
        settle(&mut world);
        assert_eq!(replicas(&world, "a", "shop-v1"), 2);
    }
}

/// A revision without replicas gets no requests, even if a rule has a weight for it.
#[test]
fn a_target_can_be_scaled_to_zero() {
    for weight in [None, Some(50)] {
        let replicas = |count: u32| {
            spec(&[
                ("shop-v1", &[("", 2)], weight),
                ("shop-v2", &[("", count)], weight),
            ])
        };
        let mut world = World::new(11, replicas(2), &[""]);
        settle(&mut world);
        let route = "/spec/http/0/route";
        assert_eq!(weights(&world, "", "VirtualService", route), [50, 50]);
        world.set_spec(replicas(0));
        settle(&mut world);
        assert_eq!(self::replicas(&world, "", "shop-v2"), 0);
        let left = weights(&world, "", "VirtualService", route);
        assert_eq!(left.iter().sum::<u64>(), 100);
        assert_eq!(left[0], 100, "{left:?}");
    }
}
