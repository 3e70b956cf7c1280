//! Scenarios of the CNI plugin: installation, update, repair and deletion.

use serde_json::json;

use mainstay_sim::script::Script;

use super::revision::replace_pods;
use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

fn daemon_set() -> ObjectPath {
    ObjectPath::namespaced("DaemonSet", "istio-cni", "istio-cni-node")
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
    world.set_script("istio-cni", "istio-cni-node", Script::never_ready());
    world.create(fixtures::cni(json!({}))).await;
    world.until_state(&path::cni(), "DaemonSetNotReady").await;
    world.set_script("istio-cni", "istio-cni-node", Script::default());
    replace_pods(&world, "istio-cni", "k8s-app=istio-cni-node").await;
    world.until_condition(&path::cni(), "Ready=True/Ready").await;
    world.until_state(&path::cni(), "Healthy").await;
    world
}

pub async fn its_objects_are_restored(world: World) -> World {
    world.create(fixtures::cni(json!({}))).await;
    world.until_state(&path::cni(), "Healthy").await;
    world
        .assert_no_calls("change of the pull secrets of a service account", async |world| {
            let account = ObjectPath::namespaced("ServiceAccount", "istio-cni", "istio-cni");
            let secrets = json!({"imagePullSecrets": [{"name": "pull"}]});
            world.patch(&account, secrets).await;
        })
        .await;
    let path = "/spec/template/spec/containers/0/image";
    let before = world.get(&daemon_set()).await.unwrap().pointer(path).cloned();
    world
        .edit(
            &daemon_set(),
            json!([{"op": "replace", "path": path, "value": "registry.example/evil:1"}]),
        )
        .await;
    world
        .until_object(&daemon_set(), "has its image back", |set| {
            set.pointer(path) == before.as_ref()
        })
        .await;
    let map = ObjectPath::namespaced("ConfigMap", "istio-cni", "istio-cni-config");
    world.delete(&map).await;
    world.until_exists(&map).await;
    let role = ObjectPath::cluster_scoped("ClusterRole", "istio-cni");
    world.delete(&role).await;
    world.until_exists(&role).await;
    world
}

pub async fn a_namespace_created_later(world: World) -> World {
    let namespace = format!("{}-later", world.namespace("").await);
    world
        .create(fixtures::cni(json!({"namespace": namespace.clone()})))
        .await;
    world
        .until_condition(&path::cni(), "Reconciled=False/ReconcileError")
        .await;
    world.settle().await;
    world.create(fixtures::namespace(&namespace, "")).await;
    world.until_state(&path::cni(), "Healthy").await;
    world.delete(&path::cni()).await;
    world.until_gone(&path::cni()).await;
    world
        .delete(&ObjectPath::cluster_scoped("Namespace", &namespace))
        .await;
    world
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
