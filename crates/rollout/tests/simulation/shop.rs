//! A deployment `shop` with one revision at a time, and checks of its state.

use mainstay_rollout::plan::Requeue;
use serde_json::{Value, json};

use crate::model::World;

/// Returns the spec of a deployment of one revision that receives all traffic.
pub(crate) fn spec(revision: &str, placement: &Value, strategy: &Value) -> Value {
    json!({
        "traffic": {"hosts": ["shop.example.com"], "drainSeconds": 5, "http": [{"weightedTargets": [
            {"revisionName": revision, "componentName": "web", "port": 80, "weight": 100},
        ]}]},
        "appRevisions": [{"revisionName": revision, "placement": placement}],
        "strategy": strategy,
    })
}

pub(crate) fn in_clusters(rows: &[(&str, u32)]) -> Value {
    let entry = |(cluster, replicas): &(&str, u32)| match *cluster {
        "" => json!({"distribution": {"replicas": replicas}}),
        name => json!({"clusterSelector": {"name": name}, "distribution": {"replicas": replicas}}),
    };
    rows.iter().map(entry).collect()
}

/// Returns a world in which `spec` is completely deployed.
pub(crate) fn deployed(spec: Value, clusters: &[&str]) -> World {
    let mut world = World::new(11, spec, clusters);
    assert!(world.run_until_idle(600), "{:#?}", world.deployment.status);
    world
}

pub(crate) fn replicas(world: &World, cluster: &str, revision: &str) -> u32 {
    let key = (cluster.to_owned(), revision.to_owned());
    world
        .replicas_by_revision()
        .get(&key)
        .copied()
        .unwrap_or_default()
}

/// Returns the objects of a kind in a cluster as text.
pub(crate) fn objects(world: &World, cluster: &str, kind: &str) -> Vec<String> {
    let objects = world.clusters[cluster].objects.iter();
    let of_kind = objects.filter(|(key, _)| key.kind == kind);
    of_kind.map(|(_, object)| object.manifest.to_string()).collect()
}

/// Advances the clock second by second until `holds` returns true. Returns the number of seconds, or `None`
/// after `limit`.
pub(crate) fn seconds_until(
    world: &mut World,
    limit: u32,
    mut holds: impl FnMut(&World) -> bool,
) -> Option<u32> {
    for second in 0..limit {
        for _ in 0..6 {
            if world.reconcile().1 != Requeue::Immediately {
                break;
            }
        }
        if holds(world) {
            return Some(second);
        }
        world.tick(1);
    }
    None
}
