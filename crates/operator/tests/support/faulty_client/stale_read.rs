//! Stale reads, which return the response of an earlier version. A real server keeps its history for some
//! minutes and serves lists at an exact version.

use http::{HeaderValue, Request, Response, Uri, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::{ResponseBody, json_response, rejection};

pub(super) struct ReadRequest {
    uri: Uri,
    accept: HeaderValue,
}

impl ReadRequest {
    pub(super) fn new(request: &Request<Body>) -> Self {
        let accept = request.headers().get(header::ACCEPT).cloned();
        Self {
            uri: request.uri().clone(),
            accept: accept.unwrap_or(HeaderValue::from_static("application/json")),
        }
    }

    /// Returns the response as of `by` versions ago, or `None` if the request does not read objects.
    pub(super) async fn stale_response(self, client: &Client, by: u64) -> Option<Response<ResponseBody>> {
        let now = self.send(client, &self.uri.to_string()).await?;
        let is_list = now["kind"].as_str()?.ends_with("List");
        let uri = match (is_list, self.uri.path().rsplit_once('/')?) {
            (true, _) => self.uri.to_string(),
            (false, (collection, name)) => {
                format!("{collection}?fieldSelector=metadata.name%3D{name}&limit=1")
            }
        };
        let now = self.send(client, &uri).await?;
        let version: u64 = now["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
        let then = version.saturating_sub(by);
        let sign = if uri.contains('?') { '&' } else { '?' };
        let uri = format!("{uri}{sign}resourceVersion={then}&resourceVersionMatch=Exact");
        let mut past = self.send(client, &uri).await?;
        let objects = past["items"].as_array_mut()?;
        if is_list {
            return Some(json_response(200, &past));
        }
        let Some(mut object) = objects.pop() else {
            return Some(rejection(404));
        };
        object["kind"] = past["kind"].as_str()?.strip_suffix("List")?.into();
        object["apiVersion"] = past["apiVersion"].clone();
        Some(json_response(200, &object))
    }

    /// Sends the request to another URI, and returns the JSON of the response.
    async fn send(&self, client: &Client, uri: &str) -> Option<Value> {
        let request = Request::get(uri).header(header::ACCEPT, &self.accept);
        let response = client.send(request.body(Body::empty()).ok()?).await.ok()?;
        serde_json::from_slice(&response.into_body().collect_bytes().await.ok()?).ok()
    }
}
