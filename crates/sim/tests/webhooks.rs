//! Tests of webhooks in this process: webhooks also review the pods of controllers, and a rejection appears
//! in the same conditions as on a real cluster.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use mainstay_sim::api::{ApiRequest, Query};
use mainstay_sim::auth::{Authenticator, User};
use mainstay_sim::context::{Destination, WebhookCall, WebhookReply};
use mainstay_sim::{Cluster, Options, ReplyFuture, WebhookTransport};
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

/// Creates a cluster with a Deployment and a webhook that reviews its pods and returns `response`.
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

fn objects(cluster: &Cluster, table: &str) -> Vec<Value> {
    cluster.with(|state| state.store.all(table).map(|object| object.value()).collect())
}

#[test]
fn pods_of_controllers_are_injected() {
    // `[{"op": "add", "path": "/spec/containers/-", "value": {"name": "proxy", "image": "p"}}]`
    let patch = "W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL3NwZWMvY29udGFpbmVycy8tIiwgInZhbHVlIjogeyJuYW1lIjogInByb3h5IiwgImltYWdlIjogInAifX1d";
    let cluster = cluster(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}));
    let pods = objects(&cluster, "pods");
    assert_eq!(pods.len(), 2);
    for pod in pods {
        let containers = pod["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 2);
        // The container that the webhook added has the defaults and the token of the service account.
        assert_eq!(containers[1]["imagePullPolicy"], "Always");
        assert_eq!(containers[1]["volumeMounts"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn rejected_pods_appear_in_the_conditions_of_their_owners() {
    let cluster = cluster(json!({"allowed": false, "status": {"message": "not here", "code": 403}}));
    assert!(objects(&cluster, "pods").is_empty());
    for table in ["replicasets.apps", "deployments.apps"] {
        let owner = objects(&cluster, table).remove(0);
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

/// A transport that cannot reach any webhook.
struct Unreachable;

impl WebhookTransport for Unreachable {
    fn call(&self, _: WebhookCall) -> ReplyFuture {
        let reply = WebhookReply::Failed("dial tcp 127.0.0.1:1: connect: connection refused".into());
        Box::pin(std::future::ready(reply))
    }
}

/// Creates a cluster with Event objects and eleven Deployments. The pods of ten of them need a webhook that
/// cannot be reached; the pods of one Deployment in another namespace do not.
fn blocked_cluster() -> Cluster {
    let cluster = Cluster::new(Options {
        events: true,
        ..Options::default()
    });
    cluster.set_webhook_transport(Arc::new(Unreachable));
    cluster.run_workloads(3);
    let blocked = json!({"metadata": {"name": "blocked", "labels": {"hooked": "yes"}}});
    post(&cluster, "/api/v1/namespaces", &blocked);
    let mut hooks = configuration(&json!({"url": "https://127.0.0.1:1/inject"}));
    hooks["webhooks"][0]["namespaceSelector"] = json!({"matchLabels": {"hooked": "yes"}});
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    post(&cluster, path, &hooks);
    let create = |namespace: &str, name: &str| {
        let mut deployment = deployment();
        deployment["metadata"] = json!({"name": name, "namespace": namespace});
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        post(&cluster, &path, &deployment);
    };
    for number in 0..10 {
        create("blocked", &format!("web-{number}"));
    }
    create("default", "web");
    cluster
}

#[tokio::test]
async fn controllers_back_off_when_a_webhook_is_unreachable() {
    let cluster = blocked_cluster();
    let version = || cluster.with(|state| state.store.version());
    let (start, mut ready_after) = (version(), None);
    let mut after_a_minute = 0;
    for tick in 1_u32..=1_200 {
        cluster.advance(Duration::from_millis(100));
        cluster.send_pending_webhook_calls().await;
        if ready_after.is_none() {
            let deployments = objects(&cluster, "deployments.apps");
            let mut free = deployments
                .iter()
                .filter(|one| one["metadata"]["namespace"] == "default");
            let is_ready = free.any(|one| one["status"]["readyReplicas"] == 2);
            ready_after = is_ready.then_some(tick * 100);
        }
        if tick == 600 {
            after_a_minute = version();
        }
    }
    let first = after_a_minute - start;
    let second = version() - after_a_minute;
    println!(
        "harden controllers: 10 blocked Deployments: {first} writes in the first minute, {second} in the second; the other is ready after {} ms",
        ready_after.unwrap()
    );
    // The limit allows the creation of the objects, one condition for each, and the first events.
    assert!(first < 500, "{first} writes in a minute");
    assert!(second < 60, "{second} writes in a minute");
    assert!(ready_after.unwrap() <= 2_000, "{ready_after:?}");
    let sets = objects(&cluster, "replicasets.apps");
    let reported = sets.iter().filter(|set| {
        let condition = &set["status"]["conditions"][0];
        condition["type"] == "ReplicaFailure" && condition["reason"] == "FailedCreate"
    });
    assert_eq!(reported.count(), 10);
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
