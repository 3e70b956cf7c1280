//! Steps that several scenarios share.

use serde_json::{Value, json};

use mainstay_sim::script::Script;

use crate::support::World;
use crate::support::fixtures;
use crate::support::path::ObjectPath;
use crate::support::world::summarize;

/// A workload of a release, and the selector of its pods.
pub struct Workload {
    pub at: ObjectPath,
    pub selector: &'static str,
}

impl Workload {
    /// Sets the behavior of pods that are created from now on.
    pub fn set_script(&self, world: &World, script: Script) {
        world.set_script(&self.at.namespace, &self.at.name, script);
    }

    /// Replaces the pods by pods with this behavior.
    pub async fn restart(&self, world: &World, script: Script) {
        self.set_script(world, script);
        replace_pods(world, &self.at.namespace, self.selector).await;
    }
}

/// Deletes pods, so that their controller creates new ones. A script applies only to pods that are created
/// after it was set.
pub async fn replace_pods(world: &World, namespace: &str, selector: &str) {
    for pod in world.list("Pod", selector).await {
        let name = pod["metadata"]["name"].as_str().unwrap();
        world
            .delete(&ObjectPath::namespaced("Pod", namespace, name))
            .await;
    }
}

/// Checks that the readiness of a resource follows the pods of its `DaemonSet`.
pub async fn check_readiness(world: World, resource: Value, daemon_set: &Workload) -> World {
    let at = ObjectPath::from_object(&resource);
    daemon_set.set_script(&world, Script::never_ready());
    world.create(resource).await;
    world.until_state(&at, "DaemonSetNotReady").await;
    daemon_set.restart(&world, Script::default()).await;
    world.until_condition(&at, "Ready=True/Ready").await;
    world.until_state(&at, "Healthy").await;
    world
}

/// Checks that the image of a workload is restored after a change by another client.
pub async fn check_image_is_restored(world: &World, workload: &ObjectPath) {
    let image = "/spec/template/spec/containers/0/image";
    let before = world.get(workload).await.unwrap().pointer(image).cloned();
    world
        .edit(
            workload,
            json!([{"op": "replace", "path": image, "value": "registry.example/evil:1"}]),
        )
        .await;
    world
        .until_object(workload, "has its image back", |object| {
            object.pointer(image) == before.as_ref()
        })
        .await;
}

/// Checks that a resource reports its missing namespace, and is installed after the namespace is created.
/// `resource` returns the resource for a namespace.
pub async fn check_missing_namespace(world: World, resource: impl FnOnce(&str) -> Value) -> World {
    let namespace = format!("{}-later", world.namespace("").await);
    let resource = resource(&namespace);
    let at = ObjectPath::from_object(&resource);
    world.create(resource).await;
    let object = world
        .until_condition(&at, "Reconciled=False/ReconcileError")
        .await;
    let summary = summarize(&object);
    assert!(
        summary.contains(&format!("namespace {namespace:?} doesn't exist")),
        "{summary}"
    );
    world.settle().await;
    world.create(fixtures::namespace(&namespace, "")).await;
    world.until_state(&at, "Healthy").await;
    world.delete(&at).await;
    world.until_gone(&at).await;
    world
        .delete(&ObjectPath::cluster_scoped("Namespace", &namespace))
        .await;
    world
}
