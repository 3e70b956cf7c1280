//! Tests filtering and validation of input objects, and the messages for rejected ones.

use serde_json::{Value, json};

use super::Input;

fn object(kind: &str, version: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

fn rejection(object: Value) -> String {
    Input::from_objects("x".into(), vec![object])
        .unwrap_err()
        .to_string()
}

#[test]
fn only_known_kinds_are_kept_each_once_and_in_order() {
    let objects = vec![
        object("Pod", "v1", "b", "p"),
        object("Secret", "v1", "b", "s"),
        object("Namespace", "v1", "", "b"),
        object("Deployment", "extensions/v1beta1", "b", "old"),
        object("Pod", "v1", "a", "p"),
        object("Pod", "v1", "a", "p"),
        object("ConfigMap", "v1", "a", "settings"),
        object("ConfigMap", "v1", "a", "istio-sidecar-injector"),
    ];
    let input = Input::from_objects("x".into(), objects).unwrap();
    let shown: Vec<String> = input
        .all()
        .map(|object| {
            format!(
                "{} {} {}",
                super::text(&object, "/kind"),
                super::text(&object, "/metadata/namespace"),
                super::text(&object, "/metadata/name")
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "Namespace  b",
            "ConfigMap a istio-sidecar-injector",
            "Pod a p",
            "Pod b p"
        ]
    );
    let missing: Vec<&str> = input.missing.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        missing,
        [
            "Istio",
            "IstioRevision",
            "Service",
            "Deployment",
            "ReplicaSet",
            "PodDisruptionBudget",
            "MutatingWebhookConfiguration"
        ]
    );
}

#[test]
fn webhooks_of_other_vendors_are_listed_and_not_simulated() {
    let hook = |name: &str, service: &str, path: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name}, "webhooks": [{"clientConfig": {"service": {"name": service, "path": path}}}]})
    };
    let objects = vec![
        hook("policy", "kyverno", "/mutate"),
        hook("injector", "istiod-a", "/inject"),
    ];
    let input = Input::from_objects("x".into(), objects).unwrap();
    assert_eq!(input.foreign_webhooks, ["policy"]);
    assert_eq!(input.object_count(), 1);
}

#[test]
fn injectors_with_a_url_are_recognized_by_label_or_owner() {
    let hook = |name: &str, metadata: Value| {
        let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{"clientConfig": {"url": "https://istiod.example.com:15017/inject/cluster/a"}}]});
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        object
    };
    let owner =
        json!([{"apiVersion": "sailoperator.io/v1", "kind": "IstioRevision", "name": "a", "uid": "b"}]);
    let objects = vec![
        hook(
            "by-label",
            json!({"labels": {"app": "sidecar-injector", "istio.io/rev": "a"}}),
        ),
        hook(
            "by-owner",
            json!({"labels": {"istio.io/rev": "a"}, "ownerReferences": owner}),
        ),
        hook("no-revision", json!({"labels": {"app": "sidecar-injector"}})),
        hook(
            "another",
            json!({"labels": {"app": "policy", "istio.io/rev": "a"}}),
        ),
    ];
    let input = Input::from_objects("x".into(), objects).unwrap();
    assert_eq!(input.foreign_webhooks, ["another", "no-revision"]);
    assert_eq!(input.object_count(), 2);
}

#[test]
fn invalid_objects_are_rejected() {
    let begin = "invalid object 1 in the input: ";
    let check = |object: Value, why: &str| assert_eq!(rejection(object), format!("{begin}{why}"));
    check(json!([]), "not a map");
    check(json!({"kind": "Pod"}), "kind or apiVersion is missing");
    check(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": []}),
        "Pod without a name",
    );
    check(
        object("Pod", "v1", "a", "../../x"),
        "invalid name of Pod: \"../../x\"",
    );
    check(object("Pod", "v1", "a/b", "p"), "invalid namespace of Pod \"p\"");
    let long = "x".repeat(300);
    check(
        object("Pod", "v1", "a", &long),
        &format!("invalid name of Pod: {:?}", "x".repeat(60)),
    );
}

#[test]
fn invalid_workloads_are_rejected() {
    let begin = "invalid object 1 in the input: ";
    let deployment = |replicas: Value, app: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": app}}}}})
    };
    let check = |object: Value, why: &str| assert_eq!(rejection(object), format!("{begin}{why}"));
    check(
        deployment(json!(1), "other"),
        "Deployment \"web\" does not select the pods of its template",
    );
    for strange in [json!(-1), json!("many"), json!(0.5)] {
        check(
            deployment(strange, "web"),
            "invalid replicas of Deployment \"web\"",
        );
    }
    check(
        deployment(json!(2_147_483_647), "web"),
        "more than 500000 pods in total",
    );
    assert!(Input::from_objects("x".into(), vec![deployment(Value::Null, "web")]).is_ok());
}

#[test]
fn the_latest_timestamp_is_the_time_of_capture() {
    let mut pod = object("Pod", "v1", "a", "p");
    pod["metadata"]["creationTimestamp"] = json!("2026-11-15T10:00:00Z");
    pod["status"] =
        json!({"conditions": [{"lastTransitionTime": "2026-11-15T10:00:07Z"}, {"lastTransitionTime": "?"}]});
    let input = Input::from_objects("x".into(), vec![pod]).unwrap();
    assert_eq!(
        input.taken.map(|taken| taken.to_string()).as_deref(),
        Some("2026-11-15T10:00:07Z")
    );
}

#[test]
fn discarded_objects_count() {
    let objects = vec![
        object("Pod", "v1", "a", "p"),
        object("Pod", "v1", "a", "q"),
        object("Namespace", "v1", "", "a"),
    ];
    let mut input = Input::from_objects("x".into(), objects).unwrap();
    input.discard("Pod");
    input.discard("Secret");
    assert_eq!(input.of_kind("Pod").count(), 0);
    assert_eq!(
        ["Pod", "Namespace", "Secret"].map(|kind| input.count(kind)),
        [2, 1, 0]
    );
    assert_eq!((input.object_count(), input.all().count()), (3, 1));
}
