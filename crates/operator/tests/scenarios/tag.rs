//! Scenarios of tags: resolution of the target, updates, references, and name conflicts.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

const USED: &str = "InUse=True/ReferencedByWorkloads";
const UNUSED: &str = "InUse=False/NotReferencedByAnything";

/// Creates, uses and deletes the tag `default` with this kind of target and this strategy. The Istio `mesh`
/// owns the revisions.
async fn check_life_cycle(world: World, kind: &str, strategy: &str) -> World {
    let is_in_place = strategy == "InPlace";
    let (old, new) = if is_in_place {
        ("mesh", "mesh")
    } else {
        ("mesh-v1-28-2", "mesh-v1-29-1")
    };
    let spec = json!({"updateStrategy": {
        "type": strategy,
        "inactiveRevisionDeletionGracePeriodSeconds": world.grace_seconds(),
        "revisionTags": [],
    }});
    world.create(fixtures::istio("mesh", OLD, spec)).await;
    world.until_state(&path::istio("mesh"), "Healthy").await;
    let target = if kind == "Istio" { "mesh" } else { old };
    world.create(fixtures::tag("default", kind, target)).await;
    let tag = world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    assert_eq!(tag["status"]["istioRevision"], old);
    assert_eq!(tag["status"]["istiodNamespace"], "istio-system");
    world
        .until_state(&path::tag("default"), "NotReferencedByAnything")
        .await;
    world.until_condition(&path::revision(old), USED).await;
    until_tag_refers_to(&world, old).await;

    world
        .assert_no_calls("changes of caBundle and failurePolicy", async |world| {
            let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="}]);
            world
                .edit(&path::injector("istio-revision-tag-default"), bundle)
                .await;
            let policy = json!([
                {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="},
                {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
            ]);
            world
                .edit(&path::validator("istiod-default-validator"), policy)
                .await;
        })
        .await;

    let namespace = world.namespace("istio-injection=enabled").await;
    world.until_condition(&path::tag("default"), USED).await;
    world.until_state(&path::tag("default"), "Healthy").await;

    world
        .patch(&path::istio("mesh"), json!({"spec": {"version": NEW}}))
        .await;
    world.until_state(&path::revision(new), "Healthy").await;
    let expected = if kind == "Istio" { new } else { old };
    world
        .until_object(&path::tag("default"), "points to the expected revision", |tag| {
            tag["status"]["istioRevision"] == expected
        })
        .await;
    until_tag_refers_to(&world, expected).await;
    let kept = !is_in_place && kind == "IstioRevision";
    if kept {
        world.sleep(Duration::from_secs(world.grace_seconds() * 2)).await;
        world.until_condition(&path::revision(old), USED).await;
    } else if !is_in_place {
        world.until_gone(&path::revision(old)).await;
    }

    world.label(&namespace, "istio-injection=").await;
    world.until_condition(&path::tag("default"), UNUSED).await;
    if kept {
        // A revision with a tag is in use, even if no workload refers to the tag.
        world.sleep(Duration::from_secs(world.grace_seconds() * 2)).await;
        world.until_condition(&path::revision(old), USED).await;
    }
    let pod = fixtures::pod(&namespace, "labeled", "sidecar.istio.io/inject=true", "");
    world.create(pod).await;
    world.until_condition(&path::tag("default"), USED).await;
    world
        .delete(&ObjectPath::namespaced("Pod", &namespace, "labeled"))
        .await;
    world.until_condition(&path::tag("default"), UNUSED).await;
    world
}

/// Waits until injector, Service and validator of the tag `default` refer to this revision.
async fn until_tag_refers_to(world: &World, revision: &str) {
    world
        .until_object(
            &path::validator("istiod-default-validator"),
            "refers to the revision",
            |object| {
                let service = format!("istiod-{revision}");
                object["webhooks"][0]["clientConfig"]["service"]["name"] == service.as_str()
                    && object["metadata"]["labels"]["istio.io/rev"] == revision
            },
        )
        .await;
    world
        .until_object(
            &path::injector("istio-revision-tag-default"),
            "refers to the revision",
            |object| object["metadata"]["labels"]["istio.io/rev"] == revision,
        )
        .await;
    let service = ObjectPath::namespaced("Service", "istio-system", "istiod-revision-tag-default");
    world
        .until_object(&service, "selects the revision", |object| {
            object["spec"]["selector"]["istio.io/rev"] == revision
        })
        .await;
}

pub async fn tag_of_an_istio_in_place(world: World) -> World {
    check_life_cycle(world, "Istio", "InPlace").await
}

pub async fn tag_of_a_revision_based_istio(world: World) -> World {
    check_life_cycle(world, "Istio", "RevisionBased").await
}

pub async fn tag_of_a_revision_in_place(world: World) -> World {
    check_life_cycle(world, "IstioRevision", "InPlace").await
}

pub async fn tag_of_a_revision_based_revision(world: World) -> World {
    check_life_cycle(world, "IstioRevision", "RevisionBased").await
}

pub async fn name_conflict_with_an_istio_in_place(world: World) -> World {
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world.sleep(Duration::from_millis(1100)).await;
    world.create(fixtures::tag("default", "Istio", "default")).await;
    world
        .until_condition(&path::tag("default"), "Reconciled=False/NameAlreadyExists")
        .await;
    world.settle().await;
    world.until_state(&path::istio("default"), "Healthy").await;
    // Deleting the tag must not delete the objects of the revision. The Sail Operator deletes them.
    world.delete(&path::tag("default")).await;
    world.until_gone(&path::tag("default")).await;
    world.settle().await;
    assert!(
        world
            .get(&path::validator("istiod-default-validator"))
            .await
            .is_some(),
        "the validator of the revision was deleted with the tag"
    );
    world
}

pub async fn a_missing_target_is_reported(world: World) -> World {
    world
        .create(fixtures::tag("stable", "IstioRevision", "mine"))
        .await;
    world
        .until_condition(&path::tag("stable"), "Reconciled=False/RefNotFound")
        .await;
    world
        .create(fixtures::revision("mine", NEW, "istio-system", json!({})))
        .await;
    let tag = world
        .until_condition(&path::tag("stable"), "Reconciled=True/Reconciled")
        .await;
    assert_eq!(tag["status"]["istioRevision"], "mine");
    // Without its target, the tag reports an error and can still be deleted.
    world.delete(&path::revision("mine")).await;
    world
        .until_condition(&path::tag("stable"), "Reconciled=False/RefNotFound")
        .await;
    world.delete(&path::tag("stable")).await;
    world.until_gone(&path::tag("stable")).await;
    world
}

pub async fn a_tag_is_not_affected_by_a_later_revision_of_its_name(world: World) -> World {
    world
        .create(fixtures::revision("mine", NEW, "istio-system", json!({})))
        .await;
    world.until_state(&path::revision("mine"), "Healthy").await;
    world
        .create(fixtures::tag("stable", "IstioRevision", "mine"))
        .await;
    world
        .until_condition(&path::tag("stable"), "Reconciled=True/Reconciled")
        .await;
    world.sleep(Duration::from_millis(1100)).await;
    world
        .create(fixtures::revision("stable", NEW, "istio-system", json!({})))
        .await;
    world
        .until_condition(&path::revision("stable"), "Reconciled=False/NameAlreadyExists")
        .await;
    world.settle().await;
    world
        .until_condition(&path::tag("stable"), "Reconciled=True/Reconciled")
        .await;
    world
}

fn target(name: &str) -> Value {
    json!({"spec": {"targetRef": {"kind": "IstioRevision", "name": name}}})
}

pub async fn a_tag_may_move_to_another_namespace(world: World) -> World {
    let other = world.namespace("").await;
    world
        .create(fixtures::revision("one", NEW, "istio-system", json!({})))
        .await;
    world
        .create(fixtures::revision("two", NEW, &other, json!({})))
        .await;
    world.until_state(&path::revision("one"), "Healthy").await;
    world.until_state(&path::revision("two"), "Healthy").await;
    world
        .create(fixtures::tag("stable", "IstioRevision", "one"))
        .await;
    let here = ObjectPath::namespaced("Service", "istio-system", "istiod-revision-tag-stable");
    let there = ObjectPath::namespaced("Service", &other, "istiod-revision-tag-stable");
    world.until_exists(&here).await;
    world.patch(&path::tag("stable"), target("two")).await;
    world.until_exists(&there).await;
    world.until_gone(&here).await;
    world
        .until_gone(&path::injector("istio-revision-tag-stable"))
        .await;
    world
        .until_exists(&path::injector(&format!("istio-revision-tag-stable-{other}")))
        .await;
    world
        .until_object(&path::tag("stable"), "reports the new namespace", |tag| {
            tag["status"]["istiodNamespace"] == other.as_str()
        })
        .await;
    world.delete(&path::tag("stable")).await;
    world.until_gone(&path::tag("stable")).await;
    world.until_gone(&there).await;
    world
}
