//! What a cluster has once (chart `base`): it comes with whoever is called `default`, and names that one's revision.

use serde_json::json;

use crate::support::World;
use crate::support::at::{self, At};
use crate::support::made::{self, NEW};

fn validator() -> At {
    at::validator("istiod-default-validator")
}

fn reader(namespace: &str) -> At {
    At::inside("ServiceAccount", namespace, "istio-reader-service-account")
}

async fn names(world: &World, service: &str, namespace: &str) {
    world
        .until_object(&validator(), &format!("names {namespace}/{service}"), |object| {
            let named = &object["webhooks"][0]["clientConfig"]["service"];
            named["name"] == service && named["namespace"] == namespace
        })
        .await;
}

pub async fn comes_and_goes_with_the_default_revision(world: World) -> World {
    world
        .create(made::revision("default", NEW, "istio-system", json!({})))
        .await;
    names(&world, "istiod", "istio-system").await;
    world.until_there(&reader("istio-system")).await;
    world.delete(&at::revision("default")).await;
    world.until_gone(&validator()).await;
    world.until_gone(&reader("istio-system")).await;
    world
}

pub async fn comes_and_goes_with_the_default_tag(world: World) -> World {
    world
        .create(made::revision("mine", NEW, "istio-system", json!({})))
        .await;
    world.until_state(&at::revision("mine"), "Healthy").await;
    assert!(world.get(&validator()).await.is_none());
    world.create(made::tag("default", "IstioRevision", "mine")).await;
    names(&world, "istiod-mine", "istio-system").await;
    world.until_there(&reader("istio-system")).await;
    world.delete(&at::tag("default")).await;
    world.until_gone(&validator()).await;
    world.until_gone(&reader("istio-system")).await;
    world
}

pub async fn its_objects_are_restored(world: World) -> World {
    world
        .create(made::revision("default", NEW, "istio-system", json!({})))
        .await;
    names(&world, "istiod", "istio-system").await;
    world.until_there(&reader("istio-system")).await;
    world.settle().await;
    for at in [validator(), reader("istio-system")] {
        world.delete(&at).await;
        world.until_there(&at).await;
    }
    let path = "/webhooks/0/clientConfig/service/name";
    world
        .edit(
            &validator(),
            json!([{"op": "replace", "path": path, "value": "nobody"}]),
        )
        .await;
    names(&world, "istiod", "istio-system").await;
    world
}

pub async fn follows_the_tag_within_a_namespace(world: World) -> World {
    for name in ["one", "two"] {
        world
            .create(made::revision(name, NEW, "istio-system", json!({})))
            .await;
        world.until_state(&at::revision(name), "Healthy").await;
    }
    world.create(made::tag("default", "IstioRevision", "one")).await;
    names(&world, "istiod-one", "istio-system").await;
    let target = json!({"spec": {"targetRef": {"kind": "IstioRevision", "name": "two"}}});
    world.patch(&at::tag("default"), target).await;
    names(&world, "istiod-two", "istio-system").await;
    world
}

pub async fn follows_the_tag_to_another_namespace(world: World) -> World {
    let other = world.namespace("").await;
    for (name, namespace) in [("one", "istio-system"), ("two", other.as_str())] {
        world
            .create(made::revision(name, NEW, namespace, json!({})))
            .await;
        world.until_state(&at::revision(name), "Healthy").await;
    }
    world.create(made::tag("default", "IstioRevision", "one")).await;
    names(&world, "istiod-one", "istio-system").await;
    world.until_there(&reader("istio-system")).await;
    let target = json!({"spec": {"targetRef": {"kind": "IstioRevision", "name": "two"}}});
    world.patch(&at::tag("default"), target).await;
    names(&world, "istiod-two", &other).await;
    world.until_there(&reader(&other)).await;
    world.until_gone(&reader("istio-system")).await;
    world
}
