//! Scenarios of a revision without an Istio: dependencies, owned objects, references, and name conflicts.

use serde_json::{Value, json};

use mainstay_sim::script::Script;

use super::steps::{Workload, check_image_is_restored, check_missing_namespace};
use super::{cni, ztunnel};
use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

fn in_istio_system(kind: &str, name: &str) -> ObjectPath {
    ObjectPath::namespaced(kind, "istio-system", name)
}

async fn create_healthy(world: &World, object: Value) {
    let at = ObjectPath::from_object(&object);
    world.create(object).await;
    world.until_state(&at, "Healthy").await;
}

pub async fn validation_rules_reject_and_accept(world: World) -> World {
    let rejected = [
        (
            fixtures::revision(
                "default",
                NEW,
                "istio-system",
                json!({"values": {"revision": "other"}}),
            ),
            "spec.values.revision must match metadata.name or be empty when the name is 'default'",
        ),
        (
            fixtures::revision(
                "mine",
                NEW,
                "istio-system",
                json!({"values": {"revision": "other"}}),
            ),
            "spec.values.revision must match metadata.name or be empty when the name is 'default'",
        ),
        (
            fixtures::revision(
                "mine",
                NEW,
                "istio-system",
                json!({"values": {"global": {"istioNamespace": "other"}}}),
            ),
            "spec.values.global.istioNamespace must match spec.namespace",
        ),
    ];
    for (object, words) in rejected {
        let rejection = world.try_create(object).await.unwrap_err().to_string();
        assert!(rejection.contains(words), "{rejection}");
    }
    create_healthy(&world, fixtures::revision("mine", NEW, "istio-system", json!({}))).await;
    world
}

/// Checks that a revision with these values depends on a resource and on the pods of its `DaemonSet`.
async fn check_dependency(world: World, values: Value, resource: Value, daemon_set: &Workload) -> World {
    let values = json!({"values": values});
    world
        .create(fixtures::revision("mine", NEW, "istio-system", values))
        .await;
    let at = path::revision("mine");
    let kind = resource["kind"].as_str().unwrap().to_owned();
    world
        .until_condition(&at, &format!("DependenciesHealthy=False/{kind}NotFound"))
        .await;
    daemon_set.set_script(&world, Script::never_ready());
    world.create(resource).await;
    world
        .until_condition(&at, &format!("DependenciesHealthy=False/{kind}NotHealthy"))
        .await;
    daemon_set.restart(&world, Script::default()).await;
    world
        .until_condition(&at, "DependenciesHealthy=True/DependenciesHealthy")
        .await;
    world.until_state(&at, "Healthy").await;
    world
}

pub async fn needs_a_network_plug_in(world: World) -> World {
    let values = json!({"pilot": {"cni": {"enabled": true}}});
    check_dependency(world, values, fixtures::cni(json!({})), &cni::workload()).await
}

pub async fn needs_a_node_proxy(world: World) -> World {
    let values = json!({"pilot": {"env": {"PILOT_ENABLE_AMBIENT": "true"}}});
    check_dependency(world, values, fixtures::ztunnel(json!({})), &ztunnel::workload()).await
}

pub async fn a_namespace_may_be_created_later(world: World) -> World {
    check_missing_namespace(world, |namespace| {
        fixtures::revision("mine", NEW, namespace, json!({}))
    })
    .await
}

pub async fn readiness_follows_istiod(world: World) -> World {
    let istiod = Workload {
        at: in_istio_system("Deployment", "istiod-mine"),
        selector: "app=istiod",
    };
    istiod.set_script(&world, Script::never_ready());
    world
        .create(fixtures::revision("mine", NEW, "istio-system", json!({})))
        .await;
    let at = path::revision("mine");
    world.until_state(&at, "IstiodNotReady").await;
    istiod.restart(&world, Script::default()).await;
    world.until_condition(&at, "Ready=True/Ready").await;
    world.until_state(&at, "Healthy").await;
    istiod.restart(&world, Script::never_ready()).await;
    world.until_condition(&at, "Ready=False/IstiodNotReady").await;
    istiod.restart(&world, Script::default()).await;
    world.until_state(&at, "Healthy").await;
    world
}

pub async fn changes_to_owned_objects_are_reverted(world: World) -> World {
    create_healthy(&world, fixtures::revision("mine", NEW, "istio-system", json!({}))).await;
    check_image_is_restored(&world, &in_istio_system("Deployment", "istiod-mine")).await;

    let autoscaler = in_istio_system("HorizontalPodAutoscaler", "istiod-mine");
    world
        .patch(&autoscaler, json!({"spec": {"maxReplicas": 17}}))
        .await;
    world
        .until_object(&autoscaler, "has its maximum back", |object| {
            object["spec"]["maxReplicas"] == 5
        })
        .await;

    let webhooks = [
        path::injector("istio-sidecar-injector-mine"),
        path::validator("istio-validator-mine-istio-system"),
    ];
    for at in webhooks {
        let path = "/webhooks/0/clientConfig/service/name";
        world
            .edit(&at, json!([{"op": "replace", "path": path, "value": "other"}]))
            .await;
        world
            .until_object(&at, "has its service back", |object| {
                object.pointer(path) == Some(&json!("istiod-mine"))
            })
            .await;
    }
    for at in [
        in_istio_system("ConfigMap", "istio-mine"),
        in_istio_system("Service", "istiod-mine"),
    ] {
        world.delete(&at).await;
        world.until_exists(&at).await;
    }
    world.until_state(&path::revision("mine"), "Healthy").await;
    world
}

pub async fn ignored_changes_cause_no_calls(world: World) -> World {
    let values = json!({"values": {"pilot": {"autoscaleMin": 2}}});
    create_healthy(&world, fixtures::revision("mine", NEW, "istio-system", values)).await;
    let autoscaler = in_istio_system("HorizontalPodAutoscaler", "istiod-mine");
    world
        .assert_no_calls("status change of an autoscaler", async |world| {
            let status =
                json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": [], "currentMetrics": null});
            world.patch_status(&autoscaler, status).await;
        })
        .await;
    let budget = in_istio_system("PodDisruptionBudget", "istiod-mine");
    world
        .assert_no_calls("status change of a disruption budget", async |world| {
            let now =
                json!({"disruptionsAllowed": 7, "currentHealthy": 7, "desiredHealthy": 1, "expectedPods": 7});
            world.patch_status(&budget, now).await;
        })
        .await;
    world
        .assert_no_calls("change of the pull secrets of a service account", async |world| {
            let secrets = json!({"imagePullSecrets": [{"name": "pull"}]});
            world
                .patch(&in_istio_system("ServiceAccount", "istiod-mine"), secrets)
                .await;
        })
        .await;
    let service = in_istio_system("Service", "istiod-mine");
    world
        .patch(
            &service,
            json!({"metadata": {"annotations": {"sailoperator.io/ignore": "true"}}}),
        )
        .await;
    world
        .assert_no_calls("change of an object with the ignore annotation", async |world| {
            let patch = json!({"metadata": {"labels": {"istio": "mine-now"}}});
            world.patch(&service, patch).await;
        })
        .await;
    let injector = path::injector("istio-sidecar-injector-mine");
    world
        .assert_no_calls("change of the caBundle of an injector", async |world| {
            let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="}]);
            world.edit(&injector, bundle).await;
        })
        .await;
    let validator = path::validator("istio-validator-mine-istio-system");
    world
        .assert_no_calls(
            "change of caBundle and failurePolicy of a validator",
            async |world| {
                let changes = json!([
                    {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="},
                    {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
                ]);
                world.edit(&validator, changes).await;
            },
        )
        .await;
    world
}

async fn check_references(world: World, name: &str, label: &str, pod_label: &str) -> World {
    create_healthy(&world, fixtures::revision(name, NEW, "istio-system", json!({}))).await;
    let at = path::revision(name);
    let (used, unused) = (
        "InUse=True/ReferencedByWorkloads",
        "InUse=False/NotReferencedByAnything",
    );
    world.until_condition(&at, unused).await;
    let namespace = world.namespace("").await;
    world.label(&namespace, label).await;
    world.until_condition(&at, used).await;
    let key = label.split('=').next().unwrap();
    world.label(&namespace, &format!("{key}=")).await;
    world.until_condition(&at, unused).await;

    let annotation = format!("istio.io/rev={name}");
    for (pod, label, annotation) in [("labeled", pod_label, ""), ("injected", "", &annotation)] {
        world
            .create(fixtures::pod(&namespace, pod, label, annotation))
            .await;
        world.until_condition(&at, used).await;
        world
            .delete(&ObjectPath::namespaced("Pod", &namespace, pod))
            .await;
        world.until_condition(&at, unused).await;
    }

    world
        .assert_no_calls("namespaces and pods that refer to nothing", async |world| {
            world.label(&namespace, "team=red").await;
            world
                .create(fixtures::pod(&namespace, "plain", "app=plain", ""))
                .await;
            world
                .delete(&ObjectPath::namespaced("Pod", &namespace, "plain"))
                .await;
        })
        .await;
    world
}

pub async fn namespaces_and_pods_refer_to_the_default_revision(world: World) -> World {
    check_references(
        world,
        "default",
        "istio-injection=enabled",
        "sidecar.istio.io/inject=true",
    )
    .await
}

pub async fn namespaces_and_pods_refer_to_a_named_revision(world: World) -> World {
    check_references(world, "mine", "istio.io/rev=mine", "istio.io/rev=mine").await
}

pub async fn two_control_planes_at_once(world: World) -> World {
    let other = world.namespace("").await;
    world
        .create(fixtures::revision("one", NEW, "istio-system", json!({})))
        .await;
    world
        .create(fixtures::revision("two", OLD, &other, json!({})))
        .await;
    for name in ["one", "two"] {
        world.until_state(&path::revision(name), "Healthy").await;
    }
    assert!(
        world
            .get(&in_istio_system("Deployment", "istiod-one"))
            .await
            .is_some()
    );
    assert!(
        world
            .get(&ObjectPath::namespaced("Deployment", &other, "istiod-two"))
            .await
            .is_some()
    );
    world.delete(&path::revision("one")).await;
    world.until_gone(&path::revision("one")).await;
    world.settle().await;
    world.until_state(&path::revision("two"), "Healthy").await;
    world
}

pub async fn an_older_tag_keeps_its_name(world: World) -> World {
    create_healthy(&world, fixtures::revision("mine", NEW, "istio-system", json!({}))).await;
    world
        .create(fixtures::tag("default", "IstioRevision", "mine"))
        .await;
    world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    // Creation times have a precision of one second. Of two objects with the same time, the one with the
    // lower UID has precedence.
    world.sleep(std::time::Duration::from_millis(1100)).await;
    world
        .create(fixtures::revision("default", NEW, "istio-system", json!({})))
        .await;
    world
        .until_condition(&path::revision("default"), "Reconciled=False/NameAlreadyExists")
        .await;
    assert!(
        world
            .get(&in_istio_system("Deployment", "istiod"))
            .await
            .is_none()
    );
    let webhook = path::injector("istio-revision-tag-default");
    world.delete(&webhook).await;
    world.until_exists(&webhook).await;
    world
        .until_condition(&path::tag("default"), "Reconciled=True/Reconciled")
        .await;
    // Once the tag is deleted, the revision can use the name.
    world.delete(&path::tag("default")).await;
    world.until_state(&path::revision("default"), "Healthy").await;
    world
}

pub async fn gateway_classes_are_written_to_a_config_map(world: World) -> World {
    let classes =
        json!({"values": {"gatewayClasses": {"istio": {"service": {"spec": {"type": "ClusterIP"}}}}}});
    create_healthy(&world, fixtures::revision("mine", NEW, "istio-system", classes)).await;
    let map = world
        .until_exists(&in_istio_system("ConfigMap", "istio-mine-gatewayclass-istio"))
        .await;
    assert_eq!(map["data"]["service"], "spec:\n  type: ClusterIP\n");
    world
}

/// A remote control plane has an injector but no istiod. It cannot be probed without a CA bundle.
pub async fn remote_control_plane_has_no_istiod(world: World) -> World {
    let values = json!({"values": {"profile": "remote"}});
    world
        .create(fixtures::revision("mine", NEW, "istio-system", values))
        .await;
    world
        .until_condition(&path::revision("mine"), "Reconciled=True/Reconciled")
        .await;
    world
        .until_condition(&path::revision("mine"), "Ready=False/RemoteIstiodNotReady")
        .await;
    world
        .until_exists(&path::injector("istio-sidecar-injector-mine"))
        .await;
    assert!(
        world
            .get(&in_istio_system("Deployment", "istiod-mine"))
            .await
            .is_none()
    );
    world
}

/// A remote istiod with an IP address has an `EndpointSlice`, whose changes are reverted.
pub async fn the_endpoint_slice_of_a_remote_istiod_is_reverted(world: World) -> World {
    let values = json!({"values": {"profile": "remote", "global": {"remotePilotAddress": "192.0.2.7"}}});
    world
        .create(fixtures::revision("mine", NEW, "istio-system", values))
        .await;
    let slice = in_istio_system("EndpointSlice", "istiod-mine");
    let address = "/endpoints/0/addresses/0";
    let is_unchanged = |object: &Value| object.pointer(address) == Some(&json!("192.0.2.7"));
    world
        .until_object(&slice, "contains the address of istiod", is_unchanged)
        .await;
    world
        .edit(
            &slice,
            json!([{"op": "replace", "path": address, "value": "192.0.2.66"}]),
        )
        .await;
    world
        .until_object(&slice, "contains the address of istiod again", is_unchanged)
        .await;
    world.delete(&slice).await;
    world.until_exists(&slice).await;
    world
}
