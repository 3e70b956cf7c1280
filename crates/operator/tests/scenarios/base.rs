//! Scenarios of the chart `base`, which is installed once per cluster together with the revision or tag
//! `default`, and refers to it.

use serde_json::json;

use crate::support::World;
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, ObjectPath};

fn validator() -> ObjectPath {
    path::validator("istiod-default-validator")
}

fn reader(namespace: &str) -> ObjectPath {
    ObjectPath::namespaced("ServiceAccount", namespace, "istio-reader-service-account")
}

async fn until_validator_refers_to(world: &World, service: &str, namespace: &str) {
    world
        .until_object(
            &validator(),
            &format!("refers to {namespace}/{service}"),
            |object| {
                let reference = &object["webhooks"][0]["clientConfig"]["service"];
                reference["name"] == service && reference["namespace"] == namespace
            },
        )
        .await;
}

pub async fn is_installed_and_deleted_with_the_default_revision(world: World) -> World {
    world
        .create(fixtures::revision("default", NEW, "istio-system", json!({})))
        .await;
    until_validator_refers_to(&world, "istiod", "istio-system").await;
    world.until_exists(&reader("istio-system")).await;
    world.delete(&path::revision("default")).await;
    world.until_gone(&validator()).await;
    world.until_gone(&reader("istio-system")).await;
    world
}

pub async fn is_installed_and_deleted_with_the_default_tag(world: World) -> World {
    world
        .create(fixtures::revision("mine", NEW, "istio-system", json!({})))
        .await;
    world.until_state(&path::revision("mine"), "Healthy").await;
    assert!(world.get(&validator()).await.is_none());
    world
        .create(fixtures::tag("default", "IstioRevision", "mine"))
        .await;
    until_validator_refers_to(&world, "istiod-mine", "istio-system").await;
    world.until_exists(&reader("istio-system")).await;
    world.delete(&path::tag("default")).await;
    world.until_gone(&validator()).await;
    world.until_gone(&reader("istio-system")).await;
    world
}

pub async fn owned_objects_are_restored(world: World) -> World {
    world
        .create(fixtures::revision("default", NEW, "istio-system", json!({})))
        .await;
    until_validator_refers_to(&world, "istiod", "istio-system").await;
    world.until_exists(&reader("istio-system")).await;
    world.settle().await;
    for at in [validator(), reader("istio-system")] {
        world.delete(&at).await;
        world.until_exists(&at).await;
    }
    let path = "/webhooks/0/clientConfig/service/name";
    world
        .edit(
            &validator(),
            json!([{"op": "replace", "path": path, "value": "other"}]),
        )
        .await;
    until_validator_refers_to(&world, "istiod", "istio-system").await;
    world
}

pub async fn follows_the_tag_within_a_namespace(world: World) -> World {
    for name in ["one", "two"] {
        world
            .create(fixtures::revision(name, NEW, "istio-system", json!({})))
            .await;
        world.until_state(&path::revision(name), "Healthy").await;
    }
    world
        .create(fixtures::tag("default", "IstioRevision", "one"))
        .await;
    until_validator_refers_to(&world, "istiod-one", "istio-system").await;
    let target = json!({"spec": {"targetRef": {"kind": "IstioRevision", "name": "two"}}});
    world.patch(&path::tag("default"), target).await;
    until_validator_refers_to(&world, "istiod-two", "istio-system").await;
    world
}

pub async fn follows_the_tag_to_another_namespace(world: World) -> World {
    let other = world.namespace("").await;
    for (name, namespace) in [("one", "istio-system"), ("two", other.as_str())] {
        world
            .create(fixtures::revision(name, NEW, namespace, json!({})))
            .await;
        world.until_state(&path::revision(name), "Healthy").await;
    }
    world
        .create(fixtures::tag("default", "IstioRevision", "one"))
        .await;
    until_validator_refers_to(&world, "istiod-one", "istio-system").await;
    world.until_exists(&reader("istio-system")).await;
    let target = json!({"spec": {"targetRef": {"kind": "IstioRevision", "name": "two"}}});
    world.patch(&path::tag("default"), target).await;
    until_validator_refers_to(&world, "istiod-two", &other).await;
    world.until_exists(&reader(&other)).await;
    world.until_gone(&reader("istio-system")).await;
    world
}
