//! Tests which clusters a placement selects and how many replicas each of them gets.

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

use std::collections::BTreeSet;

use mainstay_api::{ConditionType, Reason};
use model::World;
use serde_json::{Value, json};
use shop::{replicas, spec};

/// Replicas of v1 by cluster, without clusters that have none; or the reason why there is no placement.
type Placed = Result<Vec<(String, u32)>, Reason>;

/// Returns a world with the host cluster, three production clusters `a`, `b` and `c`, and a pilot cluster
/// `p`.
fn world(placement: &Value) -> World {
    let spec = spec("shop-v1", placement, &json!({"type": "Direct"}));
    let mut world = World::new(11, spec, &["", "a", "b", "c", "p"]);
    let labels = &mut world.clusters.get_mut("p").unwrap().labels;
    labels.insert("tier".to_owned(), "pilot".to_owned());
    world
}

fn placed(world: &mut World) -> Placed {
    assert!(world.run_until_idle(300));
    let resolved = world
        .deployment
        .status
        .conditions
        .get(&ConditionType::RevisionsResolved);
    if resolved.reason != Reason::RevisionsResolved {
        return Err(resolved.reason.clone());
    }
    let own = world.replicas_by_revision().into_iter();
    let own = own.filter(|((_, revision), count)| revision == "shop-v1" && *count > 0);
    Ok(own.map(|((cluster, _), count)| (cluster, count)).collect())
}

#[allow(clippy::unnecessary_wraps, reason = "an expected result")]
fn in_clusters(rows: &[(&str, u32)]) -> Placed {
    let row = |(cluster, count): &(&str, u32)| ((*cluster).to_owned(), *count);
    Ok(rows.iter().map(row).collect())
}

#[test]
fn placements_are_resolved_to_replicas_by_cluster() {
    let each = |selector: Value| json!([{"clusterSelector": selector, "distribution": {"replicas": 3}}]);
    let prod = json!({"tier": "prod"});
    let divided = |replicas: u32, weights: Value, minimum: u32| {
        json!([{
            "clusterSelector": {"labels": prod, "count": "All"},
            "distribution": {
                "replicas": replicas, "divide": "Weighted", "weights": weights, "minPerCluster": minimum,
            },
        }])
    };
    let weight = |cluster: &str, weight: u32| json!({"clusterName": cluster, "weight": weight});
    let two_entries = json!([
        {"clusterSelector": {"labels": prod}, "distribution": {"replicas": 3}},
        {"clusterSelector": {"name": "a"}, "distribution": {"replicas": 2}},
    ]);
    let table = [
        (
            json!([{"distribution": {"replicas": 4}}]),
            in_clusters(&[("", 4)]),
        ),
        (each(json!({"name": "b"})), in_clusters(&[("b", 3)])),
        (
            each(json!({"name": "a", "labels": prod})),
            in_clusters(&[("a", 3)]),
        ),
        (each(json!({"labels": prod})), in_clusters(&[("a", 3)])),
        (
            each(json!({"labels": prod, "count": 2})),
            in_clusters(&[("a", 3), ("c", 3)]),
        ),
        (
            each(json!({"labels": prod, "count": "All"})),
            in_clusters(&[("a", 3), ("b", 3), ("c", 3)]),
        ),
        (
            each(json!({"labels": prod, "count": 9})),
            in_clusters(&[("a", 3), ("b", 3), ("c", 3)]),
        ),
        (two_entries, in_clusters(&[("a", 5)])),
        (
            divided(8, json!([]), 0),
            in_clusters(&[("a", 3), ("b", 3), ("c", 2)]),
        ),
        (
            divided(8, json!([weight("a", 3), weight("b", 1)]), 0),
            in_clusters(&[("a", 6), ("b", 2)]),
        ),
        (
            divided(8, json!([weight("a", 3), weight("b", 1)]), 1),
            in_clusters(&[("a", 5), ("b", 2), ("c", 1)]),
        ),
        (
            divided(5, json!([weight("c", 1)]), 2),
            in_clusters(&[("a", 2), ("b", 2), ("c", 1)]),
        ),
        (
            each(json!({"labels": {"tier": "none"}})),
            Err(Reason::NoClusterMatched),
        ),
        (
            each(json!({"name": "a", "labels": {"tier": "pilot"}})),
            Err(Reason::ClusterLabelMismatch),
        ),
        (each(json!({"name": "z"})), Err(Reason::ClusterNotFound)),
        (
            each(json!({"labels": prod, "count": 0})),
            Err(Reason::InvalidSpec),
        ),
        (
            each(json!({"labels": prod, "count": "some"})),
            Err(Reason::InvalidSpec),
        ),
    ];
    for (placement, expected) in table {
        let mut world = world(&placement);
        assert_eq!(placed(&mut world), expected, "{placement}");
        if expected.is_err() {
            assert!(world.replicas_by_revision().is_empty(), "{placement}");
        }
        assert!(
            world.violations.is_empty(),
            "{placement}: {:#?}",
            world.violations
        );
    }
}

/// The cluster is selected by a hash of the deployment and the selector, not of the revision.
#[test]
fn a_choice_by_labels_keeps_two_revisions_in_one_cluster() {
    let placement =
        json!([{"clusterSelector": {"labels": {"tier": "prod"}}, "distribution": {"replicas": 2}}]);
    let mut chosen = BTreeSet::new();
    for number in 0..20 {
        let mut world = world(&placement);
        world.deployment.metadata.name = format!("shop-{number}");
        let mut spec = spec("shop-v1", &placement, &json!({"type": "Direct"}));
        let second = json!({"revisionName": "shop-v2", "placement": placement});
        spec["appRevisions"].as_array_mut().unwrap().push(second);
        world.set_spec(spec);
        let first = placed(&mut world).unwrap();
        assert_eq!(first.len(), 1, "{first:?}");
        let (cluster, count) = &first[0];
        assert_eq!((*count, replicas(&world, cluster, "shop-v2")), (2, 2), "{number}");
        assert_eq!(world.replicas_by_revision().len(), 2, "{number}");
        chosen.insert(cluster.clone());
    }
    assert_eq!(chosen, ["a", "b", "c"].map(str::to_owned).into());
}

/// Workloads stay in a cluster that becomes unschedulable, and their replicas may change. It is selected for
/// no other placement.
#[test]
fn an_unschedulable_cluster_keeps_its_workloads_and_gets_no_new_ones() {
    let selected = |count: u32, replicas: u32| {
        json!([{
            "clusterSelector": {"labels": {"tier": "prod"}, "count": count},
            "distribution": {"replicas": replicas},
        }])
    };
    let mut world = world(&selected(1, 3));
    assert_eq!(placed(&mut world), in_clusters(&[("a", 3)]));
    for name in ["a", "c"] {
        world.clusters.get_mut(name).unwrap().is_unschedulable = true;
    }
    assert_eq!(placed(&mut world), in_clusters(&[("a", 3)]));
    world.set_spec(spec("shop-v1", &selected(1, 5), &json!({"type": "Direct"})));
    assert_eq!(placed(&mut world), in_clusters(&[("a", 5)]));
    world.set_spec(spec("shop-v1", &selected(2, 5), &json!({"type": "Direct"})));
    assert_eq!(
        placed(&mut world),
        in_clusters(&[("a", 5), ("b", 5)]),
        "c would be next"
    );

    let mut empty = self::world(&selected(1, 3));
    empty.clusters.get_mut("a").unwrap().is_unschedulable = true;
    assert_eq!(placed(&mut empty), in_clusters(&[("c", 3)]));
    let named = json!([{"clusterSelector": {"name": "a"}, "distribution": {"replicas": 3}}]);
    let mut empty = self::world(&named);
    empty.clusters.get_mut("a").unwrap().is_unschedulable = true;
    assert_eq!(placed(&mut empty), Err(Reason::NoClusterMatched));
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}
