//! Requests to a served simulator.

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// Sends a request; returns the object or the message of the rejection.
pub(crate) async fn call(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string().into_bytes())).unwrap();
    let response = client.send(request).await.unwrap();
    let is_success = response.status().is_success();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    if is_success {
        Ok(serde_json::from_slice(&bytes).unwrap())
    } else {
        Err(String::from_utf8_lossy(&bytes).into_owned())
    }
}
