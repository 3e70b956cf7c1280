//! Tests the comparison with `managedFields` as a server writes them.

use serde_json::json;

use super::*;

fn live(object: Value, fields: &Value) -> Value {
    let mut object = object;
    object["metadata"]["managedFields"] = json!([
        {"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {"f:other": {}}}},
        {"manager": "us", "operation": "Apply", "fieldsV1": fields},
        {"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
    ]);
    object
}

fn check(wanted: &Value, live: &Value, expected: Option<&str>) {
    let found = difference(wanted, live, "us").map(|difference| difference.to_string());
    assert_eq!(found.as_deref(), expected, "{wanted}");
}

fn service() -> Value {
    let object = json!({
        "metadata": {"name": "web", "labels": {"app": "web", "theirs": "x"}},
        "spec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}, {"port": 443, "protocol": "TCP"}],
            "selector": {"app": "web"},
            "clusterIP": "10.0.0.1",
            "finalizers": ["a", "b"],
        },
    });
    let fields = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:targetPort": {}},
            },
            "f:selector": {},
            "f:finalizers": {"v:\"a\"": {}},
        },
    });
    live(object, &fields)
}

fn wanted() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "ns", "labels": {"app": "web"}, "annotations": {}},
        "spec": {
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            "selector": {"app": "web"},
            "finalizers": ["a"],
        },
    })
}

#[test]
fn an_applied_object_has_no_difference() {
    check(&wanted(), &service(), None);
}

#[test]
fn an_object_that_was_never_applied_differs() {
    check(
        &wanted(),
        &json!({"metadata": {}}),
        Some("the object was never applied by our field manager"),
    );
}

#[test]
fn a_changed_value_is_found() {
    let mut other = service();
    other["spec"]["ports"][0]["targetPort"] = json!(9090);
    check(
        &wanted(),
        &other,
        Some(".spec.ports[port=80,protocol=\"TCP\"].targetPort was changed"),
    );
    let mut other = service();
    other["spec"]["selector"]["more"] = json!("x");
    check(&wanted(), &other, Some(".spec.selector was changed"));
}

#[test]
fn a_new_desired_field_is_found() {
    let mut more = wanted();
    more["spec"]["ports"] = json!([{"name": "http", "port": 80, "targetPort": 8080}, {"port": 443}]);
    check(&more, &service(), Some(".spec.ports[{\"port\":443}] is missing"));
    let mut more = wanted();
    more["metadata"]["labels"]["theirs"] = json!("x");
    check(&more, &service(), Some(".metadata.labels.theirs is missing"));
    let mut more = wanted();
    more["spec"]["finalizers"] = json!(["a", "b"]);
    check(&more, &service(), Some(".spec.finalizers[\"b\"] is missing"));
}

#[test]
fn a_field_that_is_no_longer_desired_is_found() {
    let mut less = wanted();
    less["spec"]["ports"] = json!([{"port": 80, "targetPort": 8080}]);
    check(
        &less,
        &service(),
        Some(".spec.ports[port=80,protocol=\"TCP\"].name is no longer desired"),
    );
    let mut less = wanted();
    less["metadata"]["labels"] = json!({});
    check(
        &less,
        &service(),
        Some(".metadata.labels.app is no longer desired"),
    );
    let mut less = wanted();
    less["spec"]["finalizers"] = json!([]);
    check(
        &less,
        &service(),
        Some(".spec.finalizers[\"a\"] is no longer desired"),
    );
}

#[test]
fn changes_to_fields_of_other_managers_are_no_difference() {
    let mut other = service();
    other["spec"]["clusterIP"] = json!("10.0.0.2");
    other["metadata"]["labels"]["theirs"] = json!("y");
    other["spec"]["ports"][1]["name"] = json!("added");
    check(&wanted(), &other, None);
}

#[test]
fn a_field_removed_from_the_live_object_is_missing() {
    let mut other = service();
    other["metadata"]["labels"] = json!({"theirs": "x"});
    check(&wanted(), &other, Some(".metadata.labels.app is missing"));
}
