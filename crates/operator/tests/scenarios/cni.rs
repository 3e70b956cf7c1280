//! Scenarios of the CNI plugin: installation, update, repair and deletion.

use serde_json::json;

use super::steps::{Workload, check_image_is_restored, check_missing_namespace, check_readiness};
use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

fn daemon_set() -> ObjectPath {
    ObjectPath::namespaced("DaemonSet", "istio-cni", "istio-cni-node")
}

pub fn workload() -> Workload {
    Workload {
        at: daemon_set(),
        selector: "k8s-app=istio-cni-node",
    }
}

pub async fn is_installed_updated_and_deleted(world: World) -> World {
    world.create(fixtures::cni(json!({"version": OLD}))).await;
    world.until_state(&path::cni(), "Healthy").await;
    let set = world.until_exists(&daemon_set()).await;
    assert_eq!(
        set["metadata"]["annotations"]["meta.helm.sh/release-name"],
        "istio-cni"
    );
    world.patch(&path::cni(), json!({"spec": {"version": NEW}})).await;
    world
        .until_object(&daemon_set(), "runs the new image", |set| {
            let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
            image.is_some_and(|image| image.ends_with(":1.29.1"))
        })
        .await;
    world.until_state(&path::cni(), "Healthy").await;
    let values = json!({"spec": {"values": {"cni": {"podLabels": {"scenario": "update"}}}}});
    world.patch(&path::cni(), values).await;
    world
        .until_object(&daemon_set(), "has the label", |set| {
            set["spec"]["template"]["metadata"]["labels"]["scenario"] == "update"
        })
        .await;
    world.delete(&path::cni()).await;
    world.until_gone(&path::cni()).await;
    world.until_gone(&daemon_set()).await;
    world
}

pub async fn readiness_follows_the_daemon_set(world: World) -> World {
    check_readiness(world, fixtures::cni(json!({})), &workload()).await
}

pub async fn owned_objects_are_restored(world: World) -> World {
    world.create(fixtures::cni(json!({}))).await;
    world.until_state(&path::cni(), "Healthy").await;
    world
        .assert_no_calls("change of the pull secrets of a service account", async |world| {
            let account = ObjectPath::namespaced("ServiceAccount", "istio-cni", "istio-cni");
            let secrets = json!({"imagePullSecrets": [{"name": "pull"}]});
            world.patch(&account, secrets).await;
        })
        .await;
    check_image_is_restored(&world, &daemon_set()).await;
    let map = ObjectPath::namespaced("ConfigMap", "istio-cni", "istio-cni-config");
    world.delete(&map).await;
    world.until_exists(&map).await;
    let role = ObjectPath::cluster_scoped("ClusterRole", "istio-cni");
    world.delete(&role).await;
    world.until_exists(&role).await;
    world
}

pub async fn a_namespace_may_be_created_later(world: World) -> World {
    check_missing_namespace(world, |namespace| fixtures::cni(json!({"namespace": namespace}))).await
}

pub async fn only_the_name_default_is_accepted(world: World) -> World {
    let mut other = fixtures::cni(json!({}));
    other["metadata"]["name"] = "other".into();
    let rejection = world.try_create(other).await.unwrap_err().to_string();
    assert!(
        rejection.contains("metadata.name must be 'default'"),
        "{rejection}"
    );
    let mut other = fixtures::ztunnel(json!({}));
    other["metadata"]["name"] = "other".into();
    let rejection = world.try_create(other).await.unwrap_err().to_string();
    assert!(
        rejection.contains("metadata.name must be 'default'"),
        "{rejection}"
    );
    world
}
