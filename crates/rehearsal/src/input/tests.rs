//! What is kept, what is refused, and in which words.

use serde_json::{Value, json};

use super::Input;

fn object(kind: &str, version: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

fn refusal(object: Value) -> String {
    Input::of_objects("x".into(), vec![object])
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
    let input = Input::of_objects("x".into(), objects).unwrap();
    let shown: Vec<String> = input
        .objects
        .iter()
        .map(|object| {
            format!(
                "{} {} {}",
                super::text(object, "/kind"),
                super::text(object, "/metadata/namespace"),
                super::text(object, "/metadata/name")
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
fn webhooks_of_others_are_named_and_not_played() {
    let hook = |name: &str, service: &str, path: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name}, "webhooks": [{"clientConfig": {"service": {"name": service, "path": path}}}]})
    };
    let objects = vec![
        hook("policy", "kyverno", "/mutate"),
        hook("injector", "istiod-a", "/inject"),
    ];
    let input = Input::of_objects("x".into(), objects).unwrap();
    assert_eq!(input.foreign_webhooks, ["policy"]);
    assert_eq!(input.objects.len(), 1);
}

#[test]
fn what_no_cluster_holds_is_refused() {
    let begin = "object 1 of the input is no object of a cluster: ";
    let check = |object: Value, why: &str| assert_eq!(refusal(object), format!("{begin}{why}"));
    check(json!([]), "it is no map");
    check(json!({"kind": "Pod"}), "it has no kind or no apiVersion");
    check(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": []}),
        "a Pod without a name",
    );
    check(
        object("Pod", "v1", "a", "../../x"),
        "the name of a Pod is none: \"../../x\"",
    );
    check(
        object("Pod", "v1", "a/b", "p"),
        "the namespace of Pod \"p\" is none",
    );
    let long = "x".repeat(300);
    check(
        object("Pod", "v1", "a", &long),
        &format!("the name of a Pod is none: {:?}", "x".repeat(60)),
    );
}

#[test]
fn workloads_that_no_server_accepts_are_refused() {
    let begin = "object 1 of the input is no object of a cluster: ";
    let deployment = |replicas: Value, app: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": app}}}}})
    };
    let check = |object: Value, why: &str| assert_eq!(refusal(object), format!("{begin}{why}"));
    check(
        deployment(json!(1), "other"),
        "Deployment \"web\" does not select the pods of its own template",
    );
    for strange in [json!(-1), json!("many"), json!(0.5)] {
        check(
            deployment(strange, "web"),
            "the replicas of Deployment \"web\" are no number of pods",
        );
    }
    check(
        deployment(json!(2_147_483_647), "web"),
        "with it there are more than 500000 pods",
    );
    assert!(Input::of_objects("x".into(), vec![deployment(Value::Null, "web")]).is_ok());
}

#[test]
fn the_youngest_moment_is_when_it_was_taken() {
    let mut pod = object("Pod", "v1", "a", "p");
    pod["metadata"]["creationTimestamp"] = json!("2026-11-15T10:00:00Z");
    pod["status"] =
        json!({"conditions": [{"lastTransitionTime": "2026-11-15T10:00:07Z"}, {"lastTransitionTime": "?"}]});
    let input = Input::of_objects("x".into(), vec![pod]).unwrap();
    assert_eq!(
        input.taken.map(|taken| taken.to_string()).as_deref(),
        Some("2026-11-15T10:00:07Z")
    );
}
