//! Tests that the plan of an `IstioOperator` resource contains only objects of its charts, in the namespaces
//! of its components.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "tests fail by panicking, and use a part of the helpers"
)]

#[path = "support/mod.rs"]
mod support;

use mainstay_api::istio_operator::IstioOperator;
use mainstay_manifest::Package;
use mainstay_manifest::controller::{describe_errors, plan_operator};
use serde_json::{Value, json};
use support::{VERSION, with_package};

/// Returns the number of planned objects, or the errors.
fn plan(spec: &Value) -> Result<usize, String> {
    let operator: IstioOperator = serde_json::from_value(json!({
        "apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator",
        "metadata": {"name": "mesh", "namespace": "istio-system", "uid": "u"}, "spec": spec,
    }))
    .unwrap();
    with_package(|package| {
        let package = Package {
            charts: package,
            profiles: package,
        };
        let planned = plan_operator(&operator, package, &VERSION.parse().unwrap(), "v1.36.4");
        let (plan, _) = planned.map_err(|problems| describe_errors(&problems))?;
        Ok(plan.components.iter().map(|one| one.objects.len()).sum())
    })
}

fn check_rejected(spec: &Value, expected: &str) {
    let error = plan(spec).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

fn with_overlay(path: &str, value: &str) -> Value {
    let patches = json!([{"path": path, "value": value}]);
    let overlays = json!([{"kind": "Service", "name": "istiod", "patches": patches}]);
    json!({"profile": "minimal", "components": {"pilot": {"k8s": {"overlays": overlays}}}})
}

#[test]
fn a_line_break_in_a_value_cannot_add_an_object() {
    let level = |namespace: &str, name: &str| {
        let text = format!(
            "default:info\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
             spec:\n  template:\n    spec:\n      hostPID: true\n      containers:\n        - name: evil\n          args:\n\
             \u{20}         - rest"
        );
        json!({"profile": "minimal", "values": {"global": {"logging": {"level": text}}}})
    };
    let expected = "is not part of chart \"istiod\": a value with a line break adds it";
    for (namespace, name) in [
        ("istio-system", "evil"),
        // The added object has the identity of an object of the chart.
        ("istio-system", "istiod"),
        ("shop", "evil"),
    ] {
        let object = format!("Deployment {namespace}/{name} ");
        check_rejected(&level(namespace, name), &format!("{object}{expected}"));
    }
    let outside = "Deployment kube-system/evil is outside the namespace \"istio-system\" of the component";
    check_rejected(&level("kube-system", "evil"), outside);
    let unvalidated = json!({"profile": "minimal", "unvalidatedValues": level("shop", "evil")["values"]});
    check_rejected(&unvalidated, "Deployment shop/evil is not part of chart");
}

#[test]
fn a_line_break_in_a_namespace_is_rejected() {
    let gateway = json!([{"name": "gate", "enabled": true, "namespace": "a\n---\nkind: Pod\nb: c"}]);
    check_rejected(
        &json!({"profile": "minimal", "components": {"ingressGateways": gateway}}),
        "the namespace contains a line break",
    );
}

#[test]
fn an_overlay_cannot_move_an_object_or_change_its_kind() {
    check_rejected(
        &with_overlay("metadata.namespace", "kube-system"),
        "Service kube-system/istiod is outside the namespace \"istio-system\" of the component",
    );
    check_rejected(
        &with_overlay("kind", "Secret"),
        "an overlay changes Service istio-system/istiod to Secret istio-system/istiod",
    );
    let renamed = plan(&with_overlay("metadata.name", "other"));
    assert_eq!(renamed, plan(&json!({"profile": "minimal"})), "a name may change");
}

#[test]
fn values_with_line_breaks_that_add_no_object_are_accepted() {
    let template = "spec:\n  containers: []\n---\nkind: Deployment\n";
    let spec = json!({
        "profile": "minimal",
        "meshConfig": {"extensionProviders": [{"name": "a\nb"}]},
        "values": {
            "sidecarInjectorWebhook": {"templates": {"own": template}},
            "pilot": {"podAnnotations": {"note": "one\ntwo"}},
        },
    });
    assert_eq!(plan(&spec), plan(&json!({"profile": "minimal"})));
}

#[test]
fn components_may_have_namespaces_of_their_own() {
    let gateways = json!([{"name": "gate", "enabled": true, "namespace": "edge"}]);
    let with = plan(&json!({"profile": "minimal", "components": {"ingressGateways": gateways}}));
    assert!(with.unwrap() > plan(&json!({"profile": "minimal"})).unwrap());
    for profile in [
        "default",
        "demo",
        "ambient",
        "openshift",
        "openshift-ambient",
        "remote",
        "preview",
    ] {
        let planned = plan(&json!({"profile": profile}));
        assert!(
            planned.as_ref().is_ok_and(|count| *count > 0),
            "{profile}: {planned:?}"
        );
    }
}
