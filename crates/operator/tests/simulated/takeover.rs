//! Tests the takeover from the Sail Operator without a write, and the deletion of a revision at any time.

use serde_json::{Value, json};

use mainstay_sim::snapshot;

use crate::support::World;
use crate::support::calls;
use crate::support::fault_scenarios::{as_installed_by_sail, as_sample_of_sail};
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, INSTALLED_KINDS, ObjectPath};
use crate::support::virtual_time::run;
use crate::support::world::{Backing, injecting_options, plain_options, with_kind};

/// Returns the state as if the Sail Operator had installed an Istio. `extra` is merged into its spec.
fn installed_by_sail(extra: Value) -> Vec<Value> {
    run(async {
        let world = World::simulated(&injecting_options()).await;
        let is_revision_based = extra == revision_based();
        if is_revision_based {
            let none = json!({"updateStrategy": {"type": "RevisionBased", "revisionTags": []}});
            world.create(fixtures::istio("default", NEW, none)).await;
        } else {
            world.create(fixtures::istio("default", NEW, extra)).await;
        }
        let revision = if is_revision_based {
            "default-v1-29-1"
        } else {
            "default"
        };
        world
            .until_condition(&path::revision(revision), "Reconciled=True/Reconciled")
            .await;
        world.settle().await;
        world.stop_operator().await;
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        let state = sim.sim().with(|state| snapshot::dump(state));
        if is_revision_based {
            as_sample_of_sail(state)
        } else {
            as_installed_by_sail(state)
        }
    })
}

/// Returns the spec of a `RevisionBased` Istio without `revisionTags`.
fn revision_based() -> Value {
    json!({"updateStrategy": {"type": "RevisionBased"}})
}

/// Result of starting an operator with a state.
struct Takeover {
    /// Writes, except those of statuses and Events, which change because the loaded pods become ready again.
    writes: Vec<String>,
    /// Pods and webhooks before the start.
    before: Vec<Value>,
    /// Pods and webhooks after the operator was idle.
    after: Vec<Value>,
}

fn take_over(state: Vec<Value>) -> Takeover {
    run(async {
        let world = World::from_objects(&injecting_options(), state);
        let before = pods_and_webhooks(&world);
        world.start_operator().await;
        world.wait_until_idle().await;
        let calls = world.calls(&world.mark_start());
        assert!(!calls.is_empty(), "the operator has not started");
        let is_report = |line: &&str| line.ends_with("/status") || line.contains("/events");
        let writes = calls::writes(&calls).into_iter().filter(|line| !is_report(line));
        Takeover {
            writes: writes.map(str::to_owned).collect(),
            before,
            after: pods_and_webhooks(&world),
        }
    })
}

/// Returns identity and spec of all pods, and the webhooks of all configurations.
fn pods_and_webhooks(world: &World) -> Vec<Value> {
    let Backing::Sim(sim) = &world.backing else {
        panic!("no simulator")
    };
    let state = sim.sim().with(|state| snapshot::dump(state));
    let kinds = [
        "Pod",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let objects = state
        .into_iter()
        .filter(|object| kinds.iter().any(|kind| object["kind"] == *kind));
    let content = objects.map(|object| {
        let metadata = &object["metadata"];
        json!([
            object["kind"],
            metadata["name"],
            metadata["uid"],
            metadata["labels"],
            object["spec"],
            object["webhooks"]
        ])
    });
    content.collect()
}

#[test]
fn a_takeover_writes_nothing() {
    let specs = [
        json!({}),
        json!({"values": {"profile": "remote"}}),
        json!({"values": {"profile": "remote", "global": {"remotePilotAddress": "192.0.2.7"}}}),
        json!({"values": {"pilot": {"resources": {"requests": {"cpu": "2000m", "memory": "2097152Ki"}}}}}),
        // Unset `revisionTags` mean no tag for an Istio that has revisions.
        revision_based(),
    ];
    let count = specs.len();
    for extra in specs {
        let run = take_over(installed_by_sail(extra.clone()));
        assert_eq!(run.writes, [""; 0], "{extra}");
        assert!(!run.before.is_empty(), "{extra}");
        assert_eq!(run.after, run.before, "pods and webhooks of {extra}");
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
