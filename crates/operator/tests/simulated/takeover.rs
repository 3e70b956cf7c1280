//! Tests the takeover from the Sail Operator without a write, and the deletion of a revision at any time.

use serde_json::{Value, json};

use mainstay_sim::snapshot;

use crate::support::World;
use crate::support::calls;
use crate::support::fault_scenarios::as_installed_by_sail;
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, INSTALLED_KINDS, ObjectPath};
use crate::support::virtual_time::run;
use crate::support::world::{Backing, injecting_options, plain_options, with_kind};

/// Returns the state as if the Sail Operator had installed an Istio. `extra` is merged into its spec.
fn installed_by_sail(extra: Value) -> Vec<Value> {
    run(async {
        let world = World::simulated(&injecting_options()).await;
        world.create(fixtures::istio("default", NEW, extra)).await;
        world
            .until_condition(&path::revision("default"), "Reconciled=True/Reconciled")
            .await;
        world.settle().await;
        world.stop_operator().await;
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        as_installed_by_sail(sim.sim().with(|state| snapshot::dump(state)))
    })
}

/// Returns the writes of an operator that starts with this state, except those of statuses and Events,
/// which change because the loaded pods become ready again.
fn writes_on(state: Vec<Value>) -> Vec<String> {
    run(async {
        let world = World::from_objects(&injecting_options(), state);
        world.start_operator().await;
        world.wait_until_idle().await;
        let calls = world.calls(&world.mark_start());
        assert!(!calls.is_empty(), "the operator has not started");
        let is_report = |line: &&str| line.ends_with("/status") || line.contains("/events");
        let writes = calls::writes(&calls).into_iter().filter(|line| !is_report(line));
        writes.map(str::to_owned).collect()
    })
}

#[test]
fn a_takeover_writes_nothing() {
    let specs = [
        json!({}),
        json!({"values": {"profile": "remote"}}),
        json!({"values": {"profile": "remote", "global": {"remotePilotAddress": "192.0.2.7"}}}),
        json!({"values": {"pilot": {"resources": {"requests": {"cpu": "2000m", "memory": "2097152Ki"}}}}}),
    ];
    let count = specs.len();
    for extra in specs {
        assert_eq!(writes_on(installed_by_sail(extra.clone())), [""; 0], "{extra}");
    }
    println!("harden takeover: 0 writes in {count} takeovers");
}

/// The Sail Operator stores quantities in their canonical form.
#[test]
fn quantities_of_a_revision_are_canonical() {
    let extra =
        json!({"values": {"pilot": {"resources": {"requests": {"cpu": "2000m", "memory": "2097152Ki"}}}}});
    let state = installed_by_sail(extra);
    let revision = state
        .iter()
        .find(|object| object["kind"] == "IstioRevision")
        .unwrap();
    assert_eq!(
        revision["spec"]["values"]["pilot"]["resources"]["requests"],
        json!({"cpu": "2", "memory": "2Gi"})
    );
}

/// Returns the remaining objects of releases, selected by our label, and the remaining inventories.
async fn remaining_objects(world: &World) -> Vec<String> {
    let mut left = Vec::new();
    for selector in ["managed-by=sail-operator", "applyset.kubernetes.io/id"] {
        for kind in INSTALLED_KINDS {
            let found = world.list(kind, selector).await;
            left.extend(
                found
                    .into_iter()
                    .map(|object| ObjectPath::from_object(&with_kind(kind, object)).to_string()),
            );
        }
    }
    left
}

#[test]
fn a_revision_deleted_at_any_time_leaves_nothing() {
    for writes in [0, 1, 2, 3, 5, 8, 13, 21] {
        run(async {
            let world = World::simulated(&plain_options()).await;
            let mark = world.mark();
            let at = path::revision("default");
            world
                .create(fixtures::revision("default", NEW, "istio-system", json!({})))
                .await;
            for _ in 0..100_000 {
                if calls::writes(&world.calls(&mark)).len() >= writes {
                    break;
                }
                tokio::task::yield_now().await;
            }
            world.delete(&at).await;
            world.until_gone(&at).await;
            world.wait_until_idle().await;
            assert_eq!(
                remaining_objects(&world).await,
                [""; 0],
                "deleted after {writes} writes"
            );
            world.end().await;
        });
    }
}

/// An object with our owner reference is deleted with its release even if its Helm annotations were
/// removed.
#[test]
fn objects_without_helm_annotations_are_deleted() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        let at = path::revision("default");
        world
            .create(fixtures::revision("default", NEW, "istio-system", json!({})))
            .await;
        world.until_state(&at, "Healthy").await;
        world.settle().await;
        world.stop_operator().await;
        let service = ObjectPath::namespaced("Service", "istio-system", "istiod");
        let annotations = json!({"meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null});
        world
            .patch(&service, json!({"metadata": {"annotations": annotations}}))
            .await;
        world.delete(&at).await;
        let mark = world.mark();
        world.start_operator().await;
        world.until_gone(&at).await;
        let calls = world.calls(&mark);
        let deletes = |line: &&str| line.starts_with("DELETE ") && line.ends_with("/services/istiod");
        assert_eq!(calls::writes(&calls).into_iter().filter(deletes).count(), 1);
        world.end().await;
    });
}
