//! API calls of the kubelet and the scheduler.

use http::Request;
use kube::Client;
use mainstay_sim::script::node_object;
use mainstay_sim::tree;
use serde_json::{Value, json};

use super::KubeletError;
use super::simulation::now;

/// Clients of the kubelet and of the scheduler. Their names appear in `managedFields`.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) kubelet: Client,
    pub(super) scheduler: Client,
}

type Reply = Result<Value, Box<kube::Error>>;

impl Api {
    /// Creates a ready node and removes the taint that admission adds to new nodes.
    pub(super) async fn make_node(&self, number: usize) -> Result<(), KubeletError> {
        let node = node_object(number, now());
        let name = tree::text(&node, &["metadata", "name"]).to_owned();
        let failed = |source| KubeletError::Node {
            name: name.clone(),
            source,
        };
        send(&self.kubelet, Request::post("/api/v1/nodes"), JSON, &node)
            .await
            .map_err(failed)?;
        let path = format!("/api/v1/nodes/{name}");
        let ready = json!({"spec": {"taints": null}});
        send(&self.kubelet, Request::patch(path), MERGE, &ready)
            .await
            .map(drop)
            .map_err(failed)
    }

    /// Binds a pod to a node.
    pub(super) async fn bind(&self, pod: &Value, node: &str) -> Reply {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": tree::text(pod, &["metadata", "name"]), "uid": tree::text(pod, &["metadata", "uid"])},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let request = Request::post(format!("{}/binding", path(pod)));
        send(&self.scheduler, request, JSON, &binding).await
    }

    /// Writes the status of `pod`.
    pub(super) async fn write_status(&self, pod: &Value, by_scheduler: bool) -> Reply {
        let patch = json!({"metadata": {"uid": tree::text(pod, &["metadata", "uid"])}, "status": tree::get(pod, &["status"])});
        let client = if by_scheduler {
            &self.scheduler
        } else {
            &self.kubelet
        };
        let request = Request::patch(format!("{}/status", path(pod)));
        send(client, request, MERGE, &patch).await
    }

    /// Deletes a stopped pod without a grace period.
    pub(super) async fn delete(&self, pod: &Value) -> Reply {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": tree::text(pod, &["metadata", "uid"])},
        });
        send(&self.kubelet, Request::delete(path(pod)), JSON, &options).await
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn path(pod: &Value) -> String {
    let text = |key| tree::text(pod, &["metadata", key]);
    format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))
}

async fn send(client: &Client, request: http::request::Builder, kind: &str, body: &Value) -> Reply {
    let request = request
        .header("content-type", kind)
        .body(body.to_string().into_bytes())
        .map_err(|error| Box::new(kube::Error::HttpError(error)))?;
    client.request(request).await.map_err(Box::new)
}
