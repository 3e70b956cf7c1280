//! Scenarios of ztunnel, the node proxy of ambient mode: installation, update, repair and deletion, with
//! and without a target.

use serde_json::{Value, json};

use super::steps::{Workload, check_image_is_restored, check_readiness};
use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

fn daemon_set() -> ObjectPath {
    ObjectPath::namespaced("DaemonSet", "ztunnel", "ztunnel")
}

pub fn workload() -> Workload {
    Workload {
        at: daemon_set(),
        selector: "app=ztunnel",
    }
}

/// Returns the value of an environment variable of the proxy's container.
fn env_variable<'a>(set: &'a Value, name: &str) -> Option<&'a Value> {
    let list = set.pointer("/spec/template/spec/containers/0/env")?.as_array()?;
    let found = list.iter().find(|one| one["name"] == name)?;
    Some(&found["value"])
}

pub async fn is_installed_updated_and_deleted(world: World) -> World {
    world.create(fixtures::ztunnel(json!({"version": OLD}))).await;
    world.until_state(&path::ztunnel(), "Healthy").await;
    world
        .patch(&path::ztunnel(), json!({"spec": {"version": NEW}}))
        .await;
    world
        .until_object(&daemon_set(), "runs the new image", |set| {
            let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
            image.is_some_and(|image| image.contains(":1.29.1"))
        })
        .await;
    let values = json!({"spec": {"values": {"ztunnel": {"env": {"SCENARIO": "update"}}}}});
    world.patch(&path::ztunnel(), values).await;
    world
        .until_object(&daemon_set(), "has the variable", |set| {
            env_variable(set, "SCENARIO") == Some(&json!("update"))
        })
        .await;
    world.until_state(&path::ztunnel(), "Healthy").await;
    world.delete(&path::ztunnel()).await;
    world.until_gone(&path::ztunnel()).await;
    world.until_gone(&daemon_set()).await;
    world
}

pub async fn readiness_follows_the_daemon_set(world: World) -> World {
    check_readiness(world, fixtures::ztunnel(json!({})), &workload()).await
}

pub async fn owned_objects_are_restored(world: World) -> World {
    world.create(fixtures::ztunnel(json!({}))).await;
    world.until_state(&path::ztunnel(), "Healthy").await;
    check_image_is_restored(&world, &daemon_set()).await;
    let account = ObjectPath::namespaced("ServiceAccount", "ztunnel", "ztunnel");
    world.delete(&account).await;
    world.until_exists(&account).await;
    world.until_state(&path::ztunnel(), "Healthy").await;
    world
}

pub async fn values_of_the_target_are_used(world: World) -> World {
    let values = json!({"values": {"meshConfig": {"trustDomain": "scenario.example"}, "global": {"network": "net-7"}}});
    world
        .create(fixtures::revision("mine", NEW, "istio-system", values))
        .await;
    world.until_state(&path::revision("mine"), "Healthy").await;
    let target = json!({"targetRef": {"kind": "IstioRevision", "name": "mine"}});
    world.create(fixtures::ztunnel(target)).await;
    let ztunnel = world.until_state(&path::ztunnel(), "Healthy").await;
    assert_eq!(ztunnel["status"]["istioRevision"], "mine");
    let set = world.get(&daemon_set()).await.unwrap();
    let text = set["spec"].to_string();
    assert!(text.contains("istiod-mine"), "{text}");
    // A change of the values of the target updates the DaemonSet.
    let values = json!({"spec": {"values": {"global": {"network": "net-8"}}}});
    world.patch(&path::revision("mine"), values).await;
    world
        .until_object(&daemon_set(), "has the new network", |set| {
            set["spec"].to_string().contains("net-8")
        })
        .await;
    world
}

pub async fn a_missing_target_is_reported(world: World) -> World {
    let target = json!({"targetRef": {"kind": "Istio", "name": "mesh"}});
    world.create(fixtures::ztunnel(target)).await;
    world
        .until_condition(&path::ztunnel(), "Reconciled=False/ReconcileError")
        .await;
    world.create(fixtures::istio("mesh", NEW, json!({}))).await;
    let ztunnel = world.until_state(&path::ztunnel(), "Healthy").await;
    assert_eq!(ztunnel["status"]["istioRevision"], "mesh");
    world
}

pub async fn fips_mode_enables_tls_1_2(world: World) -> World {
    world.change_settings(|settings| settings.fips = true).await;
    world.create(fixtures::ztunnel(json!({}))).await;
    world.until_state(&path::ztunnel(), "Healthy").await;
    let set = world.get(&daemon_set()).await.unwrap();
    assert_eq!(env_variable(&set, "TLS12_ENABLED"), Some(&json!("true")));
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    let revision = world.until_exists(&path::revision("default")).await;
    assert_eq!(
        revision["spec"]["values"]["pilot"]["env"]["COMPLIANCE_POLICY"],
        "fips-140-2"
    );
    world
}
