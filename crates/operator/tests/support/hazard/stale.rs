//! A read that is behind: takes a question, gives what a real server would have answered some versions ago. It keeps its past for some minutes, and
//! shows it to whoever lists an exact version.

use http::{HeaderValue, Request, Response, Uri, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::{Answer, refusal, said};

/// What is asked.
pub(super) struct Question {
    uri: Uri,
    accept: HeaderValue,
}

impl Question {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let accept = request.headers().get(header::ACCEPT).cloned();
        Self {
            uri: request.uri().clone(),
            accept: accept.unwrap_or(HeaderValue::from_static("application/json")),
        }
    }

    /// The answer of `by` versions ago; nothing if the question is not about objects.
    pub(super) async fn answer(self, client: &Client, by: u64) -> Option<Response<Answer>> {
        let now = self.ask(client, &self.uri.to_string()).await?;
        let is_list = now["kind"].as_str()?.ends_with("List");
        let uri = match (is_list, self.uri.path().rsplit_once('/')?) {
            (true, _) => self.uri.to_string(),
            (false, (folder, name)) => format!("{folder}?fieldSelector=metadata.name%3D{name}&limit=1"),
        };
        let now = self.ask(client, &uri).await?;
        let version: u64 = now["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
        let then = version.saturating_sub(by);
        let sign = if uri.contains('?') { '&' } else { '?' };
        let uri = format!("{uri}{sign}resourceVersion={then}&resourceVersionMatch=Exact");
        let mut past = self.ask(client, &uri).await?;
        let objects = past["items"].as_array_mut()?;
        if is_list {
            return Some(said(200, &past));
        }
        let Some(mut object) = objects.pop() else {
            return Some(refusal(404));
        };
        object["kind"] = past["kind"].as_str()?.strip_suffix("List")?.into();
        object["apiVersion"] = past["apiVersion"].clone();
        Some(said(200, &object))
    }

    /// Asks the same of something else.
    async fn ask(&self, client: &Client, uri: &str) -> Option<Value> {
        let question = Request::get(uri).header(header::ACCEPT, &self.accept);
        let answer = client.send(question.body(Body::empty()).ok()?).await.ok()?;
        serde_json::from_slice(&answer.into_body().collect_bytes().await.ok()?).ok()
    }
}
