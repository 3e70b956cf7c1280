//! Sends single API calls with a timeout, without retries.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use mainstay_gostd::url::path_escape;
use serde_json::{Value, json};

use super::error::{ApplyError, Verb};
use crate::desired::{Kind, ObjectId};

/// Sends API calls.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) deadline: Duration,
}

pub(super) struct ApiCall<'a> {
    pub(super) verb: Verb,
    pub(super) id: &'a ObjectId,
    pub(super) path: String,
    pub(super) format: &'static str,
    pub(super) body: Option<&'a Value>,
}

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";

impl Caller {
    /// Reads an object; `None` if it does not exist.
    pub(super) async fn get(&self, id: &ObjectId, kind: &Kind) -> Result<Option<Value>, ApplyError> {
        let call = ApiCall {
            verb: Verb::Get,
            id,
            path: path(id, kind),
            format: JSON,
            body: None,
        };
        match self.send_call(Method::GET, &call).await {
            Ok((_, object)) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object. Returns whether it was created, and the stored object.
    pub(super) async fn apply(&self, apply: Apply<'_>) -> Result<(bool, Value), ApplyError> {
        let force = if apply.force { "&force=true" } else { "" };
        let dry_run = if apply.dry_run { "&dryRun=All" } else { "" };
        let call = ApiCall {
            verb: apply.verb,
            id: apply.id,
            path: format!(
                "{}?fieldManager={}{force}{dry_run}",
                path(apply.id, apply.kind),
                apply.manager
            ),
            format: APPLY,
            body: Some(apply.body),
        };
        let (code, object) = self.send_call(Method::PATCH, &call).await?;
        Ok((code == StatusCode::CREATED, object))
    }

    /// Patches an object with a JSON patch.
    pub(super) async fn json_patch(
        &self,
        id: &ObjectId,
        kind: &Kind,
        patch: &Value,
        manager: &str,
    ) -> Result<Value, ApplyError> {
        let call = ApiCall {
            verb: Verb::Patch,
            id,
            path: format!("{}?fieldManager={manager}", path(id, kind)),
            format: JSON_PATCH,
            body: Some(patch),
        };
        Ok(self.send_call(Method::PATCH, &call).await?.1)
    }

    /// Deletes an object with background propagation; fails if it has another version than `seen`.
    /// Returns the response, or `None` if the object does not exist.
    pub(super) async fn delete(
        &self,
        id: &ObjectId,
        kind: &Kind,
        seen: &Value,
    ) -> Result<Option<Value>, ApplyError> {
        let text = |at: &str| seen.pointer(at).cloned().unwrap_or_default();
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": text("/metadata/uid"), "resourceVersion": text("/metadata/resourceVersion")},
        });
        let call = ApiCall {
            verb: Verb::Delete,
            id,
            path: path(id, kind),
            format: JSON,
            body: Some(&options),
        };
        match self.send_call(Method::DELETE, &call).await {
            Ok((_, response)) => Ok(Some(response)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the API resources of the group and version of `id`.
    pub(super) async fn discover(&self, id: &ObjectId) -> Result<Value, ApplyError> {
        let call = ApiCall {
            verb: Verb::Discover,
            id,
            path: group_path(id),
            format: JSON,
            body: None,
        };
        Ok(self.send_call(Method::GET, &call).await?.1)
    }

    async fn send_call(&self, method: Method, call: &ApiCall<'_>) -> Result<(StatusCode, Value), ApplyError> {
        let response = tokio::time::timeout(self.deadline, self.send(method, call)).await;
        let (code, headers, bytes) = response.map_err(|_| ApplyError::TimedOut {
            verb: call.verb,
            id: Box::new(call.id.clone()),
            after: self.deadline,
        })??;
        let body = serde_json::from_slice::<Value>(&bytes);
        if !code.is_success() {
            return Err(rejected(call, code, &headers, &body.unwrap_or_default()));
        }
        body.map(|body| (code, body))
            .map_err(|source| ApplyError::InvalidResponse {
                verb: call.verb,
                id: Box::new(call.id.clone()),
                source,
            })
    }

    async fn send(
        &self,
        method: Method,
        call: &ApiCall<'_>,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), ApplyError> {
        let failed = |source| ApplyError::Unreachable {
            verb: call.verb,
            id: Box::new(call.id.clone()),
            source: Box::new(source),
        };
        let body = call
            .body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(&call.path)
            .header(CONTENT_TYPE, call.format)
            .body(Body::from(body))
            .map_err(|source| failed(kube::Error::HttpError(source)))?;
        let response = self.client.send(request).await.map_err(failed)?;
        let (code, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect_bytes().await.map_err(failed)?;
        Ok((code, headers, bytes.to_vec()))
    }
}

/// Parameters of an apply.
pub(super) struct Apply<'a> {
    pub(super) verb: Verb,
    pub(super) id: &'a ObjectId,
    pub(super) kind: &'a Kind,
    pub(super) body: &'a Value,
    pub(super) manager: &'a str,
    pub(super) force: bool,
    /// Whether the server computes the result without storing it.
    pub(super) dry_run: bool,
}

/// Returns the API path of a group and version.
fn group_path(id: &ObjectId) -> String {
    if id.group.is_empty() {
        format!("/api/{}", path_escape(&id.version))
    } else {
        format!("/apis/{}/{}", path_escape(&id.group), path_escape(&id.version))
    }
}

fn path(id: &ObjectId, kind: &Kind) -> String {
    let group_path = group_path(id);
    let (plural, name) = (&kind.plural, path_escape(&id.name));
    if id.namespace.is_empty() {
        format!("{group_path}/{plural}/{name}")
    } else {
        format!(
            "{group_path}/namespaces/{}/{plural}/{name}",
            path_escape(&id.namespace)
        )
    }
}

fn rejected(call: &ApiCall<'_>, code: StatusCode, headers: &HeaderMap, status: &Value) -> ApplyError {
    let message = status.get("message").and_then(Value::as_str);
    ApplyError::Rejected {
        verb: call.verb,
        id: Box::new(call.id.clone()),
        code: code.as_u16(),
        message: message.map_or_else(|| code.to_string(), ToOwned::to_owned),
        retry_after: parse_seconds(headers, &RETRY_AFTER)
            .or_else(|| {
                status
                    .pointer("/details/retryAfterSeconds")
                    .and_then(Value::as_u64)
            })
            .map(Duration::from_secs),
    }
}

fn parse_seconds(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}
