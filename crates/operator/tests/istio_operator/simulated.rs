//! Scenarios that need the simulator: pods that never become ready, several resources, and virtual time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scenarios::life_cycle;
use crate::virtual_time::run;
use crate::world::{NAMESPACE, World, operator, operator_path, path};

fn minimal() -> Value {
    json!({"profile": "minimal"})
}

fn revision(name: &str) -> Value {
    json!({"profile": "minimal", "revision": name})
}

fn condition<'a>(live: &'a Value, kind: &str) -> &'a Value {
    let conditions = live["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|one| one["type"] == kind).unwrap()
}

#[test]
fn life_cycle_of_a_control_plane() {
    run(async {
        let mut world = World::simulated().await;
        let objects = life_cycle(&mut world, "default").await;
        println!("istio operator life cycle simulated: {objects} installed, {objects} deleted");
        assert!(objects >= 40, "{objects}");
    });
}

#[test]
fn an_invalid_resource_affects_no_other_one() {
    run(async {
        let mut world = World::simulated().await;
        let mesh_config = json!({"connectTimeout": "soon"});
        let invalid = json!({"profile": "minimal", "revision": "bad", "meshConfig": mesh_config});
        world.create(&operator("bad", invalid)).await.unwrap();
        world.create(&operator("mesh", minimal())).await.unwrap();
        world.until_state("mesh", "HEALTHY").await;
        let live = world.until_state("bad", "ERROR").await;
        let reconciled = condition(&live, "Reconciled");
        assert_eq!(reconciled["reason"], "InvalidSpec");
        assert!(
            reconciled["message"]
                .as_str()
                .unwrap()
                .starts_with("spec.meshConfig.connectTimeout: "),
            "{reconciled}"
        );
        assert!(world.event_reasons("bad").await.contains("InvalidSpec"));
        // The deletion of an invalid resource does not require a valid configuration.
        world.delete(&operator_path("bad")).await;
        world.until_gone(&operator_path("bad")).await;
    });
}

const INJECTORS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Returns a webhook configuration of another tool that handles the pods of the default tag.
fn other_injector() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "other-injector", "labels": {"istio.io/rev": "other"}},
        "webhooks": [{
            "name": "namespace.sidecar-injector.istio.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/inject"},
            "namespaceSelector": {"matchLabels": {"istio-injection": "enabled"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    })
}

#[test]
fn overlapping_webhooks_prevent_a_change() {
    run(async {
        let mut world = World::simulated().await;
        let mut old = operator("mesh", minimal());
        old["metadata"]["annotations"] = json!({"install.mainstay.dev/istio-version": "1.28.2"});
        world.create(&old).await.unwrap();
        world.until_state("mesh", "HEALTHY").await;
        world.until_idle().await;
        let istiod = path("apis/apps/v1", "deployments", "istiod");
        world
            .send("POST", INJECTORS, Some(&other_injector()))
            .await
            .unwrap();
        let installed = (world.inventory().await, world.get(&istiod).await);
        let upgrade = json!({"metadata": {"annotations": {"install.mainstay.dev/istio-version": null}}});
        world.patch(&operator_path("mesh"), upgrade).await;
        let live = world.until_state("mesh", "ERROR").await;
        let reconciled = condition(&live, "Reconciled");
        assert_eq!(reconciled["reason"], "WebhookOverlap", "{live}");
        let message = reconciled["message"].as_str().unwrap();
        assert!(
            message.contains("other-injector/namespace.sidecar-injector.istio.io")
                && message.contains("handle the same pods (namespace istio-injection=enabled"),
            "{message}"
        );
        assert!(world.event_reasons("mesh").await.contains("WebhookOverlap"));
        world.sleep(Duration::from_mins(15)).await;
        assert_eq!(installed, (world.inventory().await, world.get(&istiod).await));
        world.delete(&format!("{INJECTORS}/other-injector")).await;
        let live = world.until_state("mesh", "HEALTHY").await;
        assert_ne!(live["status"]["componentStatus"]["Pilot"]["version"], "1.28.2");
    });
}

#[test]
fn an_annotation_disables_the_controller() {
    run(async {
        let mut world = World::simulated().await;
        let mut ignored = operator("mesh", minimal());
        ignored["metadata"]["annotations"] = json!({"install.istio.io/ignoreReconcile": "true"});
        world.create(&ignored).await.unwrap();
        world.sleep(Duration::from_mins(2)).await;
        let live = world.get(&operator_path("mesh")).await.unwrap();
        assert!(
            live.get("status").is_none() && live["metadata"].get("finalizers").is_none(),
            "{live}"
        );
        let on = json!({"metadata": {"annotations": {"install.istio.io/ignoreReconcile": null}}});
        world.patch(&operator_path("mesh"), on).await;
        world.until_state("mesh", "HEALTHY").await;
        // The objects stay when a resource with the ignore annotation is deleted.
        let off = json!({"metadata": {"annotations": {"install.istio.io/ignoreReconcile": "true"}}});
        world.patch(&operator_path("mesh"), off).await;
        world.delete(&operator_path("mesh")).await;
        world.until_gone(&operator_path("mesh")).await;
        let istiod = path("apis/apps/v1", "deployments", "istiod");
        assert!(world.get(&istiod).await.is_some());
    });
}

#[test]
fn the_filter_selects_one_revision() {
    run(async {
        let mut world = World::without_definition().await;
        world.install_definition().await;
        world.options.revision = Some("canary".into());
        world.start();
        world.create(&operator("mesh", minimal())).await.unwrap();
        world
            .create(&operator("canary", revision("canary")))
            .await
            .unwrap();
        world.until_state("canary", "HEALTHY").await;
        let live = world.get(&operator_path("mesh")).await.unwrap();
        assert!(live.get("status").is_none(), "{live}");
    });
}

#[test]
fn the_older_of_two_resources_owns_a_revision() {
    run(async {
        let mut world = World::simulated().await;
        let before = world.inventory().await;
        world.create(&operator("first", minimal())).await.unwrap();
        world.until_state("first", "HEALTHY").await;
        world.create(&operator("second", minimal())).await.unwrap();
        let live = world.until_state("second", "ERROR").await;
        assert_eq!(
            condition(&live, "Reconciled")["message"],
            format!("IstioOperator {NAMESPACE}/first installs the same revision")
        );
        world.until_state("first", "HEALTHY").await;
        world.delete(&operator_path("first")).await;
        world.until_gone(&operator_path("first")).await;
        world.until_state("second", "HEALTHY").await;
        world.delete(&operator_path("second")).await;
        world.until_gone(&operator_path("second")).await;
        world.until_inventory(&before).await;
    });
}

#[test]
fn several_revisions_share_the_definitions() {
    run(async {
        let mut world = World::simulated().await;
        let before = world.inventory().await;
        let mut old = operator("old", minimal());
        old["metadata"]["annotations"] = json!({"install.mainstay.dev/istio-version": "1.28.2"});
        world.create(&old).await.unwrap();
        let live = world.until_state("old", "HEALTHY").await;
        assert_eq!(live["status"]["componentStatus"]["Pilot"]["version"], "1.28.2");
        world.create(&operator("new", revision("canary"))).await.unwrap();
        world.until_state("new", "HEALTHY").await;
        let live = world.until_state("old", "HEALTHY").await;
        assert!(live["status"]["componentStatus"].get("Base").is_none(), "{live}");
        world.until_idle().await;
        let writes = world.writes();
        world.sleep(Duration::from_mins(25)).await;
        assert_eq!(
            world.writes(),
            writes,
            "the resources do not overwrite each other"
        );
        world.delete(&operator_path("new")).await;
        world.until_gone(&operator_path("new")).await;
        world
            .until(&operator_path("old"), "Base again", |object| {
                object["status"]["componentStatus"]["Base"]["version"] == "1.28.2"
            })
            .await;
        world.delete(&operator_path("old")).await;
        world.until_gone(&operator_path("old")).await;
        world.until_inventory(&before).await;
    });
}

#[test]
fn definitions_with_objects_are_kept() {
    run(async {
        let mut world = World::simulated().await;
        world.create(&operator("mesh", minimal())).await.unwrap();
        world.until_state("mesh", "HEALTHY").await;
        let sidecar = json!({"apiVersion": "networking.istio.io/v1", "kind": "Sidecar",
            "metadata": {"name": "s", "namespace": "default"}, "spec": {}});
        world.create(&sidecar).await.unwrap();
        world.delete(&operator_path("mesh")).await;
        world.until_gone(&operator_path("mesh")).await;
        let definition =
            |name: &str| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        assert!(
            world
                .get(&definition("sidecars.networking.istio.io"))
                .await
                .is_some()
        );
        assert!(
            world
                .get(&definition("gateways.networking.istio.io"))
                .await
                .is_none()
        );
    });
}

#[test]
fn a_component_that_never_becomes_ready_is_an_error_after_the_timeout() {
    run(async {
        let mut world = World::simulated().await;
        let script = mainstay_sim::script::Script::never_ready();
        world.simulator().sim().with(|state| {
            state.scripts.add_workload(NAMESPACE, "istiod", script.clone());
        });
        world.create(&operator("mesh", minimal())).await.unwrap();
        let live = world.until_state("mesh", "RECONCILING").await;
        assert_eq!(live["status"]["componentStatus"]["Base"]["status"], "HEALTHY");
        let live = world.until_state("mesh", "ERROR").await;
        let pilot = &live["status"]["componentStatus"]["Pilot"];
        assert_eq!(pilot["status"], "ERROR");
        assert!(
            pilot["error"].as_str().unwrap().contains("Deployment istiod: "),
            "{pilot}"
        );
    });
}

#[test]
fn nothing_happens_without_the_definition() {
    run(async {
        let mut world = World::without_definition().await;
        world.start();
        world.sleep(Duration::from_mins(5)).await;
        assert_eq!(world.writes(), 0);
        world.install_definition().await;
        world.create(&operator("mesh", minimal())).await.unwrap();
        world.until_state("mesh", "HEALTHY").await;
    });
}
