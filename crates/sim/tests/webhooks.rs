//! Webhooks in this process: pods created by controllers are reviewed, too, and a rejection appears where it
//! does on a real cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::time::Duration;

use futures::FutureExt as _;
use mainstay_sim::Cluster;
use mainstay_sim::api::{ApiRequest, Query};
use mainstay_sim::auth::{Authenticator, User};
use mainstay_sim::context::Destination;
use serde_json::{Value, json};

fn configuration(to: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "inject"},
        "webhooks": [{
            "name": "inject.example.com", "clientConfig": to, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "failurePolicy": "Fail", "timeoutSeconds": 5,
        }],
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    })
}

/// A cluster with controllers whose pods are reviewed by a webhook with this response.
fn cluster(response: Value) -> Cluster {
    let cluster = Cluster::default();
    let service = Destination::service("default", "injector", "/inject");
    cluster.handle_webhook(&service, move |review| {
        let mut response = response.clone();
        response["uid"] = review["request"]["uid"].clone();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    });
    cluster.run_workloads(1);
    let to = json!({"service": {"namespace": "default", "name": "injector", "path": "/inject"}});
    post(
        &cluster,
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        &configuration(&to),
    );
    post(
        &cluster,
        "/apis/apps/v1/namespaces/default/deployments",
        &deployment(),
    );
    cluster.advance(Duration::from_secs(30));
    cluster
}

fn post(cluster: &Cluster, path: &str, value: &Value) {
    let call = ApiRequest {
        client: "test".into(),
        user: User::admin(),
        impersonation: None,
        method: http::Method::POST,
        path: path.to_owned(),
        query: Query::default(),
        accept: "application/json".into(),
        content_type: "application/json".into(),
        user_agent: "test".into(),
        body: value.to_string().into(),
        webhook_replies: Vec::new(),
    };
    let connection = cluster.connect("test");
    let response = connection.send(call).now_or_never().unwrap().unwrap();
    assert_eq!(response.status(), 201, "{path}");
}

fn all(cluster: &Cluster, table: &str) -> Vec<Value> {
    cluster.with(|state| state.store.all(table).map(|object| object.value()).collect())
}

#[test]
fn pods_of_controllers_are_injected() {
    // `[{"op": "add", "path": "/spec/containers/-", "value": {"name": "proxy", "image": "p"}}]`
    let patch = "W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL3NwZWMvY29udGFpbmVycy8tIiwgInZhbHVlIjogeyJuYW1lIjogInByb3h5IiwgImltYWdlIjogInAifX1d";
    let cluster = cluster(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}));
    let pods = all(&cluster, "pods");
    assert_eq!(pods.len(), 2);
    for pod in pods {
        let containers = pod["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 2);
        // The container that the webhook added was defaulted and got the account's token.
        assert_eq!(containers[1]["imagePullPolicy"], "Always");
        assert_eq!(containers[1]["volumeMounts"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn rejected_pods_appear_in_the_conditions_of_their_owners() {
    let cluster = cluster(json!({"allowed": false, "status": {"message": "not here", "code": 403}}));
    assert!(all(&cluster, "pods").is_empty());
    for table in ["replicasets.apps", "deployments.apps"] {
        let owner = all(&cluster, table).remove(0);
        let conditions = owner["status"]["conditions"].as_array().unwrap();
        let failure = conditions
            .iter()
            .find(|one| one["type"] == "ReplicaFailure")
            .unwrap();
        assert_eq!(failure["reason"], "FailedCreate", "{table}");
        let message = "admission webhook \"inject.example.com\" denied the request: not here";
        assert_eq!(failure["message"], message, "{table}");
    }
}

#[test]
fn tokens_and_headers_identify_the_caller() {
    let cluster = Cluster::default();
    let known = User::named("alice", &["team-a"]);
    cluster.with(|state| {
        state
            .access
            .credentials
            .tokens
            .insert("secret".into(), known.clone())
    });
    let authenticator = Authenticator::new(&cluster);
    let who = |header: &str| {
        let mut headers = http::HeaderMap::new();
        if !header.is_empty() {
            headers.insert("authorization", header.parse().unwrap());
        }
        authenticator.authenticate(&headers, None)
    };
    assert_eq!(who("Bearer secret").unwrap(), known);
    assert_eq!(who("").unwrap(), User::anonymous());
    assert_eq!(who("Bearer wrong").unwrap_err().code(), 401);
    cluster.with(|state| state.access.credentials.anonymous = false);
    assert_eq!(who("").unwrap_err().code(), 401);
}
