//! Checks that sizes of requests and objects are limited as in a real API server, so that a single request
//! cannot exhaust the simulator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use mainstay_sim::Cluster;
use mainstay_sim::api::{ApiRequest, Outcome, Query, handle};
use mainstay_sim::auth::User;
use serde_json::{Value, json};

const JSON: &str = "application/json";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

/// Sends a request. Returns the status code, and the object or the error message.
fn send(cluster: &Cluster, method: Method, path: &str, content_type: &str, body: String) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = ApiRequest {
        client: "test".into(),
        user: User::admin(),
        impersonation: None,
        method,
        path: path.to_owned(),
        query: Query::parse(query),
        accept: JSON.into(),
        content_type: content_type.into(),
        user_agent: "test".into(),
        body: Bytes::from(body),
        webhook_replies: Vec::new(),
    };
    let started = Instant::now();
    let outcome = cluster.with(|state| handle(state, &request));
    assert!(started.elapsed() < Duration::from_secs(20), "{path}");
    let Outcome::Response(response) = outcome else {
        panic!("no response");
    };
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    match value.get("message") {
        Some(message) if response.code >= 400 => (response.code, message.clone()),
        _ => (response.code, value),
    }
}

fn define(cluster: &Cluster, spec: &Value) {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(
        send(cluster, Method::POST, path, JSON, definition.to_string()).0,
        201
    );
    cluster.advance(Duration::from_secs(5));
}

fn thing(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

#[test]
fn objects_are_limited_by_the_request_size_of_etcd() {
    let cluster = Cluster::default();
    define(
        &cluster,
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    let create = |name: &str, size: usize| {
        let body = thing(name, &json!({"text": "x".repeat(size)}));
        send(&cluster, Method::POST, THINGS, JSON, body)
    };
    assert_eq!(create("small", 1 << 20).0, 201);
    assert_eq!(
        create("large", 1600 << 10),
        (500, json!("etcdserver: request is too large"))
    );
    let body = json!({"spec": {"more": "x".repeat(600 << 10)}}).to_string();
    let path = format!("{THINGS}/small");
    let patched = send(
        &cluster,
        Method::PATCH,
        &path,
        "application/merge-patch+json",
        body,
    );
    assert_eq!(patched, (500, json!("etcdserver: request is too large")));
    let (code, unchanged) = send(&cluster, Method::GET, &path, JSON, String::new());
    assert_eq!((code, &unchanged["spec"]["more"]), (200, &Value::Null));
}

#[test]
fn defaults_of_a_definition_cannot_inflate_an_object() {
    let cluster = Cluster::default();
    let item = json!({"type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(100 << 10)}}});
    define(
        &cluster,
        &json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}}),
    );
    let create = |name: &str, items: usize| {
        let body = thing(name, &json!({"items": vec![json!({}); items]}));
        send(&cluster, Method::POST, THINGS, JSON, body)
    };
    assert_eq!(create("small", 10).0, 201);
    assert_eq!(
        create("large", 100_000),
        (500, json!("etcdserver: request is too large"))
    );
}

#[test]
fn json_patches_cannot_copy_without_limit() {
    let cluster = Cluster::default();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x".repeat(1000)}});
    assert_eq!(send(&cluster, Method::POST, maps, JSON, map.to_string()).0, 201);
    let copy =
        |number: usize| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/{number}")});
    let patch = Value::Array((0..64).map(copy).collect()).to_string();
    let patched = send(
        &cluster,
        Method::PATCH,
        &format!("{maps}/a"),
        "application/json-patch+json",
        patch,
    );
    let message = "the server rejected our request due to an error in our request";
    assert_eq!(patched, (422, json!(message)));
}

#[test]
fn aliases_of_an_applied_document_cannot_expand_without_limit() {
    let cluster = Cluster::default();
    let apply = |anchor: usize, aliases: usize| {
        let mut body = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\ndata:\n  a: &a {}\n",
            "x".repeat(anchor)
        );
        for number in 0..aliases {
            writeln!(body, "  a{number}: *a").unwrap();
        }
        let path = "/api/v1/namespaces/default/configmaps/b?fieldManager=test";
        send(
            &cluster,
            Method::PATCH,
            path,
            "application/apply-patch+yaml",
            body,
        )
    };
    assert_eq!(apply(10, 100).0, 201);
    let (code, message) = apply(1 << 20, 10_000);
    assert_eq!(code, 400);
    assert!(
        message.as_str().unwrap().starts_with("error decoding YAML: "),
        "{message}"
    );
}
