//! Tokens of service accounts, as the kubelet requests them for pods.

use http::Request;
use kube::Client;
use mainstay_sim::tree;
use serde_json::{Value, json};

/// Requests a token of the pod's service account, so that RBAC applies to the process.
pub(crate) async fn token(client: &Client, pod: &Value) -> Result<String, kube::Error> {
    let namespace = tree::text(pod, &["metadata", "namespace"]);
    let account = tree::text(pod, &["spec", "serviceAccountName"]);
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 43_200}});
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes());
    let request = request.map_err(kube::Error::HttpError)?;
    let reply: Value = client.request(request).await?;
    Ok(tree::text(&reply, &["status", "token"]).to_owned())
}
