//! Scenarios of upgrades with and without workloads: creation of the new revision, pruning of the old one,
//! and tags.

use std::time::Duration;

use serde_json::{Value, json};

use mainstay_sim::script::Script;

use crate::support::World;
use crate::support::fault_scenarios::reject_tag;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

const OLD_REVISION: &str = "default-v1-28-2";
const NEW_REVISION: &str = "default-v1-29-1";

fn strategy(kind: &str, grace: u64) -> Value {
    json!({"updateStrategy": {"type": kind, "inactiveRevisionDeletionGracePeriodSeconds": grace, "revisionTags": []}})
}

fn istio(world: &World, kind: &str, version: &str) -> Value {
    fixtures::istio("default", version, strategy(kind, world.grace_seconds()))
}

async fn upgrade(world: &World) {
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
}

async fn change_strategy(world: &World, kind: &str) {
    let patch = json!({"spec": strategy(kind, world.grace_seconds())});
    world.patch(&path::istio("default"), patch).await;
}

/// Creates a namespace with a pod that is injected by a revision, and returns the name of the namespace.
async fn create_workload(world: &World, revision: &str) -> String {
    let namespace = world.namespace(&label(revision)).await;
    world
        .create(fixtures::pod(
            &namespace,
            "before",
            "",
            &format!("istio.io/rev={revision}"),
        ))
        .await;
    world
        .until_condition(&path::revision(revision), "InUse=True/ReferencedByWorkloads")
        .await;
    namespace
}

fn label(revision: &str) -> String {
    if revision == "default" {
        "istio-injection=enabled".into()
    } else {
        format!("istio.io/rev={revision}")
    }
}

/// Labels the namespace with the new revision, and replaces its pod.
async fn relabel_workload(world: &World, namespace: &str, to: &str) {
    let other = if to == "default" {
        "istio.io/rev="
    } else {
        "istio-injection="
    };
    world.label(namespace, &format!("{} {other}", label(to))).await;
    world
        .delete(&ObjectPath::namespaced("Pod", namespace, "before"))
        .await;
    world
        .create(fixtures::pod(
            namespace,
            "after",
            "",
            &format!("istio.io/rev={to}"),
        ))
        .await;
}

/// Checks that the old revision is kept while it is in use and during the grace period, and then deleted.
async fn check_pruning(world: &World, old: &str, new: &str, workload: Option<&str>) {
    world.until_state(&path::revision(new), "Healthy").await;
    if let Some(namespace) = workload {
        world
            .sleep(Duration::from_secs(
                world.grace_seconds() + world.grace_seconds() / 2,
            ))
            .await;
        world
            .until_condition(&path::revision(old), "InUse=True/ReferencedByWorkloads")
            .await;
        relabel_workload(world, namespace, new).await;
        world
            .until_condition(&path::revision(new), "InUse=True/ReferencedByWorkloads")
            .await;
        world
            .until_condition(&path::revision(old), "InUse=False/NotReferencedByAnything")
            .await;
        world.sleep(Duration::from_secs(world.grace_seconds() / 3)).await;
        assert!(
            world.get(&path::revision(old)).await.is_some(),
            "deleted before the end of the grace period"
        );
    }
    world.until_gone(&path::revision(old)).await;
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], new);
    world
        .until_object(&path::istio("default"), "counts one revision", |istio| {
            istio["status"]["revisions"]["total"] == 1
        })
        .await;
}

pub async fn the_namespace_cannot_change(world: World) -> World {
    for (name, object) in [
        ("default", istio(&world, "InPlace", OLD)),
        ("other", fixtures::revision_based("other", OLD, 1, &[])),
    ] {
        world.create(object).await;
        let patch = json!({"spec": {"namespace": "elsewhere"}});
        let rejection = world
            .try_patch(&path::istio(name), patch)
            .await
            .unwrap_err()
            .to_string();
        assert!(rejection.contains("Value is immutable"), "{rejection}");
        world.until_state(&path::istio(name), "Healthy").await;
    }
    world
}

async fn in_place(world: World, workloads: bool) -> World {
    world.create(istio(&world, "InPlace", OLD)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    if workloads {
        create_workload(&world, "default").await;
    }
    let before = world.get(&path::revision("default")).await.unwrap();
    upgrade(&world).await;
    let deployment = ObjectPath::namespaced("Deployment", "istio-system", "istiod");
    world
        .until_object(&deployment, "runs the new image", |object| {
            let image = object["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
            image.is_some_and(|image| image.ends_with(":1.29.1"))
        })
        .await;
    let after = world.until_state(&path::revision("default"), "Healthy").await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["version"], NEW);
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["revisions"]["total"], 1);
    world
}

pub async fn in_place_without_workloads(world: World) -> World {
    in_place(world, false).await
}

pub async fn in_place_with_workloads(world: World) -> World {
    in_place(world, true).await
}

async fn revision_based(world: World, workloads: bool) -> World {
    world.create(istio(&world, "RevisionBased", OLD)).await;
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], OLD_REVISION);
    let namespace = if workloads {
        Some(create_workload(&world, OLD_REVISION).await)
    } else {
        None
    };
    upgrade(&world).await;
    world.until_exists(&path::revision(NEW_REVISION)).await;
    assert!(
        world.get(&path::revision(OLD_REVISION)).await.is_some(),
        "the old revision was deleted when the new one was created"
    );
    check_pruning(&world, OLD_REVISION, NEW_REVISION, namespace.as_deref()).await;
    world
        .until_gone(&ObjectPath::namespaced(
            "Deployment",
            "istio-system",
            &format!("istiod-{OLD_REVISION}"),
        ))
        .await;
    world
}

pub async fn revision_based_without_workloads(world: World) -> World {
    revision_based(world, false).await
}

pub async fn revision_based_with_workloads(world: World) -> World {
    revision_based(world, true).await
}

async fn from_in_place(world: World, workloads: bool) -> World {
    world.create(istio(&world, "InPlace", NEW)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let namespace = if workloads {
        Some(create_workload(&world, "default").await)
    } else {
        None
    };
    change_strategy(&world, "RevisionBased").await;
    world.until_exists(&path::revision(NEW_REVISION)).await;
    check_pruning(&world, "default", NEW_REVISION, namespace.as_deref()).await;
    world
}

pub async fn from_in_place_to_revision_based_without_workloads(world: World) -> World {
    from_in_place(world, false).await
}

pub async fn from_in_place_to_revision_based_with_workloads(world: World) -> World {
    from_in_place(world, true).await
}

async fn from_revision_based(world: World, workloads: bool) -> World {
    world.create(istio(&world, "RevisionBased", NEW)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let namespace = if workloads {
        Some(create_workload(&world, NEW_REVISION).await)
    } else {
        None
    };
    change_strategy(&world, "InPlace").await;
    world.until_exists(&path::revision("default")).await;
    check_pruning(&world, NEW_REVISION, "default", namespace.as_deref()).await;
    world
}

pub async fn from_revision_based_to_in_place_without_workloads(world: World) -> World {
    from_revision_based(world, false).await
}

pub async fn from_revision_based_to_in_place_with_workloads(world: World) -> World {
    from_revision_based(world, true).await
}

/// Not an upstream scenario: a `RevisionBased` Istio without `revisionTags` has the tag `default`, for
/// `istio-injection=enabled`.
pub async fn the_default_tag_is_created_automatically(world: World) -> World {
    let object = fixtures::istio(
        "default",
        NEW,
        json!({"updateStrategy": {"type": "RevisionBased"}}),
    );
    let istio = world.create(object).await;
    let tag = world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    assert_eq!(tag["status"]["istioRevision"], NEW_REVISION);
    assert_eq!(
        tag["metadata"]["ownerReferences"][0]["uid"],
        istio["metadata"]["uid"]
    );
    let namespace = world.namespace("istio-injection=enabled").await;
    world.until_state(&path::tag("default"), "Healthy").await;
    world
        .until_condition(&path::revision(NEW_REVISION), "InUse=True/ReferencedByWorkloads")
        .await;
    world.label(&namespace, "istio-injection=").await;
    world
        .until_condition(&path::tag("default"), "InUse=False/NotReferencedByAnything")
        .await;
    world
}

/// Not an upstream scenario: an Istio with a revision that another operator created gets no implicit tag.
pub async fn an_istio_with_revisions_gets_no_default_tag(world: World) -> World {
    world.stop_operator().await;
    let strategy = json!({"updateStrategy": {"type": "RevisionBased"}});
    let istio = world.create(fixtures::istio("default", NEW, strategy)).await;
    let owner = json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "name": "default",
        "uid": istio["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
    let mut revision = fixtures::revision(NEW_REVISION, NEW, "istio-system", json!({}));
    revision["metadata"]["ownerReferences"] = json!([owner]);
    world.create(revision).await;
    world.start_operator().await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
        .until_condition(&path::istio("default"), "TagsReconciled=True/NoTagsRequested")
        .await;
    assert!(
        world.get(&path::tag("default")).await.is_none(),
        "an unrequested tag"
    );
    world.create(fixtures::tag("default", "Istio", "default")).await;
    let tag = world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    assert!(tag["metadata"]["ownerReferences"].is_null(), "{tag}");
    world
}

/// Not an upstream scenario: an injector that Helm installed continues to serve `istio-injection=enabled`.
pub async fn the_default_tag_waits_for_another_injector(world: World) -> World {
    let selector = json!({"matchExpressions": [
        {"key": "istio-injection", "operator": "In", "values": ["enabled"]},
        {"key": "istio.io/rev", "operator": "DoesNotExist"}]});
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "another-injector", "labels": {"app": "sidecar-injector"}},
        "webhooks": [{"name": "namespace.sidecar-injector.istio.io", "namespaceSelector": selector,
            "clientConfig": {"service": {"namespace": "elsewhere", "name": "istiod", "path": "/inject"}},
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}],
    });
    world.create(webhook).await;
    let strategy = json!({"updateStrategy": {"type": "RevisionBased"}});
    world.create(fixtures::istio("default", NEW, strategy)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
        .until_object(&path::istio("default"), "reports the injector", |istio| {
            istio["status"]["conditions"]
                .to_string()
                .contains("another-injector")
        })
        .await;
    assert!(
        world.get(&path::tag("default")).await.is_none(),
        "a second injector"
    );
    world
        .delete(&ObjectPath::cluster_scoped(
            "MutatingWebhookConfiguration",
            "another-injector",
        ))
        .await;
    world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    world
}

/// Not an upstream scenario: the schema rejects invalid names. A tag that is rejected at creation is
/// reported, and the others are created.
pub async fn a_rejected_tag_does_not_affect_the_others(world: World) -> World {
    let long = "a".repeat(44);
    let invalid = ["Prod", "a.b", "-a", "", &long];
    println!("harden tag-names: {} invalid names", invalid.len());
    for name in invalid {
        let istio = fixtures::revision_based("default", NEW, world.grace_seconds(), &["stable", name]);
        let rejected = world.try_create(istio).await.unwrap_err();
        assert!(
            rejected.message.contains("spec.updateStrategy.revisionTags[1]"),
            "{name}: {rejected:?}"
        );
    }
    reject_tag(&world, "blocked").await;
    let tags = ["a", "blocked", "stable"];
    world
        .create(fixtures::revision_based(
            "default",
            NEW,
            world.grace_seconds(),
            &tags,
        ))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    for tag in ["a", "stable"] {
        world
            .until_condition(&path::tag(tag), "Reconciled=True/Reconciled")
            .await;
    }
    world
        .until_condition(&path::istio("default"), "TagsReconciled=False/TagFailed")
        .await;
    world
        .delete(&ObjectPath::cluster_scoped(
            "ValidatingAdmissionPolicyBinding",
            "tags",
        ))
        .await;
    world
        .until_condition(&path::istio("default"), "TagsReconciled=True/TagsReconciled")
        .await;
    world
        .delete(&ObjectPath::cluster_scoped("ValidatingAdmissionPolicy", "tags"))
        .await;
    world
}

/// Not an upstream scenario: a managed tag moves when the new revision is ready. The old revision is
/// deleted when it is no longer in use.
pub async fn managed_tags_move_when_the_new_revision_is_ready(world: World) -> World {
    world
        .create(fixtures::revision_based(
            "default",
            OLD,
            world.grace_seconds(),
            &["stable"],
        ))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
        .until_object(&path::tag("stable"), "points to the old", |tag| {
            tag["status"]["istioRevision"] == OLD_REVISION
        })
        .await;
    world.namespace("istio.io/rev=stable").await;
    let istiod = format!("istiod-{NEW_REVISION}");
    world.set_script("istio-system", &istiod, Script::never_ready());
    upgrade(&world).await;
    world
        .until_condition(&path::revision(NEW_REVISION), "Ready=False/IstiodNotReady")
        .await;
    world.settle().await;
    let tag = world.get(&path::tag("stable")).await.unwrap();
    assert_eq!(
        tag["status"]["istioRevision"], OLD_REVISION,
        "moved to a revision that is not ready"
    );
    world.set_script("istio-system", &istiod, Script::default());
    for pod in world.list("Pod", &format!("istio.io/rev={NEW_REVISION}")).await {
        let name = pod["metadata"]["name"].as_str().unwrap();
        world
            .delete(&ObjectPath::namespaced("Pod", "istio-system", name))
            .await;
    }
    world
        .until_object(&path::tag("stable"), "points to the new", |tag| {
            tag["status"]["istioRevision"] == NEW_REVISION
        })
        .await;
    world.until_gone(&path::revision(OLD_REVISION)).await;
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], NEW_REVISION);
    world
}
