//! Tests ownership marks and the normalization of rendered objects.

use serde_json::json;

use super::*;

fn desired(rendered: Vec<Value>) -> Desired {
    let key = ReleaseKey {
        owner: "u".into(),
        namespace: "istio-system".into(),
        name: "prod-istiod".into(),
    };
    let owner = OwnerReference {
        api_version: "sailoperator.io/v1".into(),
        kind: "IstioRevision".into(),
        name: "prod".into(),
        uid: "u".into(),
        controller: true,
        block_owner_deletion: true,
    };
    Desired::new(key, owner, rendered, &Kinds::default()).unwrap()
}

#[test]
fn objects_are_marked_with_owner_and_release() {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": "x", "labels": {"app": "a", "gone": null}, "annotations": null}, "rules": null,
    });
    let desired = desired(vec![role]);
    assert_eq!(
        desired.objects[0].body,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": "r",
                "labels": {
                    "app": "a", "app.kubernetes.io/managed-by": "Helm", "managed-by": "sail-operator",
                    // ID by KEP-3659, calculated with another program: SHA-256 of
                    // "mainstay-prod-istiod.istio-system.ConfigMap.".
                    "applyset.kubernetes.io/part-of": "applyset-ZyTETck-bmSAseQ2gLvHwVi2C829n33SWQ1IZVbOWac-v1",
                },
                "annotations": {
                    "meta.helm.sh/release-name": "prod-istiod", "meta.helm.sh/release-namespace": "istio-system",
                },
                "ownerReferences": [{
                    "apiVersion": "sailoperator.io/v1", "kind": "IstioRevision", "name": "prod", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    );
}

#[test]
fn an_object_without_a_namespace_gets_that_of_its_release() {
    let map = |namespace: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}});
    let desired = desired(vec![map(json!(null)), map(json!("other"))]);
    let found: Vec<&str> = desired
        .objects
        .iter()
        .map(|one| one.id.namespace.as_str())
        .collect();
    assert_eq!(found, ["istio-system", "other"]);
    let inventory = desired.inventory.body(std::iter::empty());
    let annotations = &inventory["metadata"]["annotations"];
    assert_eq!(
        annotations["applyset.kubernetes.io/additional-namespaces"],
        "other"
    );
    assert_eq!(
        annotations["applyset.kubernetes.io/contains-group-kinds"],
        "ConfigMap"
    );
    assert!(desired.contains(&desired.inventory.id));
}

#[test]
fn targets_of_autoscalers_are_marked_as_scaled() {
    let workload =
        |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}});
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "s"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    });
    let desired = desired(vec![workload("a"), workload("b"), scaler]);
    let found: Vec<bool> = desired.objects.iter().map(|one| one.is_scaled).collect();
    assert_eq!(found, [true, false, false]);
}

#[test]
fn the_last_of_duplicate_variables_is_kept() {
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "c", "env": [variable("A", "1"), variable("B", "1"), variable("A", "2")]},
        ]}}},
    });
    let desired = desired(vec![workload]);
    let found = desired.objects[0]
        .body
        .pointer("/spec/template/spec/containers/0/env");
    assert_eq!(found, Some(&json!([variable("B", "1"), variable("A", "2")])));
}
