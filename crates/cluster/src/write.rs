//! Single API calls that read and write objects of our kinds, namespaces, workloads and events.
//! [`crate::apply`] applies releases.

use std::fmt;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use mainstay_api::{ObjectKind, OwnerReference, names};
use mainstay_gostd::error::chain;
use mainstay_mesh::plan::{NewObject, Precondition};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{ErrorClass, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use crate::connect::{MANAGER, MAX_RETRY_AFTER};

/// Error of a read or write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WriteError {
    /// HTTP status code; 0 without a response.
    pub code: u16,
    /// Class of the error, which determines retries.
    pub class: ErrorClass,
    /// The server's message.
    pub message: String,
    /// Time to wait before the next attempt, if the server sent one.
    pub retry_after: Option<Duration>,
}

impl WriteError {
    /// Creates an error that did not come from the server.
    #[must_use]
    pub fn local(class: ErrorClass, message: String) -> Self {
        Self {
            code: 0,
            class,
            message,
            retry_after: None,
        }
    }

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether the local version of the object may be outdated.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self.code, 404 | 409 | 410 | 422)
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            let seconds = status
                .details
                .as_ref()
                .map_or(0, |details| details.retry_after_seconds);
            let wait = Duration::from_secs(seconds.into()).min(MAX_RETRY_AFTER);
            return Self {
                code: status.code,
                class: ErrorClass::from_status(status.code, &status.message),
                message: status.message,
                retry_after: (!wait.is_zero()).then_some(wait),
            };
        }
        Self::local(ErrorClass::Unavailable, format_cause(&error))
    }
}

/// Formats an error and its causes without the text of kube's wrapper of service errors.
fn format_cause(error: &kube::Error) -> String {
    match error {
        kube::Error::Service(inner) => chain(inner.as_ref()),
        other => chain(other),
    }
}

/// Writer of objects of our kinds, webhook configurations, namespaces and workloads.
#[derive(Clone)]
pub struct Writer {
    client: Client,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Creates a writer that uses `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads an object of our kinds; `None` if it does not exist.
    pub async fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, WriteError> {
        match self.call(Method::GET, &object_path(kind, name), None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a namespace or a workload; `None` if it does not exist. Sends a list request limited to the
    /// name, so that permission to `list` and `watch` is sufficient.
    pub async fn find(&self, subject: &Subject) -> Result<Option<Value>, WriteError> {
        let collection = match subject {
            Subject::Namespace(_) => "/api/v1/namespaces".to_owned(),
            Subject::Workload(key) => workloads_path(key),
            Subject::Object(..) | Subject::Webhook(_) => return Ok(None),
        };
        let name = subject.name();
        let path = format!("{collection}?fieldSelector=metadata.name%3D{name}&limit=1");
        let mut list = self.call(Method::GET, &path, None).await?;
        Ok(list.pointer_mut("/items/0").map(Value::take))
    }

    /// Creates one of our objects.
    pub async fn create<S: Serialize>(
        &self,
        kind: ObjectKind,
        new: &NewObject<S>,
    ) -> Result<Value, WriteError> {
        let spec = serde_json::to_value(&new.spec)
            .map_err(|error| WriteError::local(ErrorClass::Other, error.to_string()))?;
        let mut body = json!({
            "apiVersion": names::API_VERSION,
            "kind": kind.name(),
            "metadata": {"name": new.name, "ownerReferences": [new.owner], "finalizers": new.finalizers},
            "spec": spec,
        });
        if let (false, Some(Value::Object(metadata))) = (new.annotations.is_empty(), body.get_mut("metadata"))
        {
            metadata.insert("annotations".into(), json!(new.annotations));
        }
        let place = format!("{}?fieldManager={MANAGER}", collection_path(kind));
        self.call(Method::POST, &place, Some(Body::Json(body))).await
    }

    /// Replaces the spec and the owner references.
    pub async fn update(
        &self,
        seen: &Precondition,
        owners: &[OwnerReference],
        spec: Value,
    ) -> Result<Value, WriteError> {
        let changes = [
            add_operation("/metadata/ownerReferences", json!(owners)),
            add_operation("/spec", spec),
        ];
        self.patch(seen, "", changes).await
    }

    /// Replaces the finalizers.
    pub async fn set_finalizers(
        &self,
        seen: &Precondition,
        finalizers: &[String],
    ) -> Result<Value, WriteError> {
        let changes = [add_operation("/metadata/finalizers", json!(finalizers))];
        self.patch(seen, "", changes).await
    }

    /// Replaces the status.
    pub async fn set_status(&self, seen: &Precondition, status: Value) -> Result<Value, WriteError> {
        self.patch(seen, "/status", [add_operation("/status", status)])
            .await
    }

    /// Deletes an object. A missing object counts as deleted. Returns the object if finalizers delay its
    /// removal.
    pub async fn delete(&self, seen: &Precondition) -> Result<Option<Value>, WriteError> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": seen.uid, "resourceVersion": seen.resource_version},
            "propagationPolicy": "Background",
        });
        let Some(path) = precondition_path(seen) else {
            return Ok(None);
        };
        match self.call(Method::DELETE, &path, Some(Body::Json(body))).await {
            Ok(object) => Ok(Some(object).filter(|object| object.get("kind") != Some(&json!("Status")))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets annotations on a webhook configuration.
    pub async fn annotate_webhook(
        &self,
        seen: &Precondition,
        annotations: &[(&str, &str)],
    ) -> Result<Value, WriteError> {
        let pairs = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)));
        let body = json!({"metadata": {
            "uid": seen.uid,
            "resourceVersion": seen.resource_version,
            "annotations": pairs.collect::<serde_json::Map<_, _>>(),
        }});
        let path = format!("{WEBHOOKS}/{}?fieldManager={MANAGER}", seen.name());
        self.call(Method::PATCH, &path, Some(Body::Merge(body))).await
    }

    /// Sends a merge patch; `change` must contain the expected resource version.
    pub async fn merge(&self, subject: &Subject, change: Value) -> Result<Value, WriteError> {
        let path = match subject {
            Subject::Namespace(name) => format!("/api/v1/namespaces/{name}"),
            Subject::Workload(key) => format!("{}/{}", workloads_path(key), key.name()),
            Subject::Object(kind, name) => object_path(*kind, name),
            Subject::Webhook(name) => format!("{WEBHOOKS}/{name}"),
        };
        let path = format!("{path}?fieldManager={MANAGER}");
        self.call(Method::PATCH, &path, Some(Body::Merge(change))).await
    }

    /// Patches one of our objects; fails if the object has another version.
    async fn patch<const N: usize>(
        &self,
        seen: &Precondition,
        subresource: &str,
        changes: [Value; N],
    ) -> Result<Value, WriteError> {
        let Some(path) = precondition_path(seen) else {
            let message = format!("{} cannot be patched", seen.subject);
            return Err(WriteError::local(ErrorClass::Other, message));
        };
        let body = Body::for_version(&seen.uid, &seen.resource_version, changes);
        let path = format!("{path}{subresource}?fieldManager={MANAGER}");
        self.call(Method::PATCH, &path, Some(body)).await
    }

    /// Sends one call and parses the JSON response.
    pub async fn call(&self, method: Method, path: &str, body: Option<Body>) -> Result<Value, WriteError> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(body) = &body {
            request = request.header(http::header::CONTENT_TYPE, body.content_type());
        }
        let bytes = body.map(Body::into_bytes).unwrap_or_default();
        let request = request.body(bytes).map_err(kube::Error::HttpError)?;
        Ok(self.client.request(request).await?)
    }
}

/// Body of a call.
#[derive(Clone, Debug)]
pub enum Body {
    /// An object or delete options.
    Json(Value),
    /// A merge patch.
    Merge(Value),
    /// A JSON patch.
    Patch(Value),
    /// A server-side apply.
    Apply(Value),
}

impl Body {
    /// Returns a JSON patch that fails on any other version of an object. The version is replaced rather
    /// than tested: a failed `test` is reported as 422, an outdated `resourceVersion` as a conflict.
    #[must_use]
    pub fn for_version(uid: &str, resource_version: &str, changes: impl IntoIterator<Item = Value>) -> Self {
        let same = [
            json!({"op": "test", "path": "/metadata/uid", "value": uid}),
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}),
        ];
        Self::Patch(same.into_iter().chain(changes).collect())
    }

    fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Patch(_) => "application/json-patch+json",
            Self::Apply(_) => "application/apply-patch+yaml",
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let (Self::Json(value) | Self::Merge(value) | Self::Patch(value) | Self::Apply(value)) = self;
        value.to_string().into_bytes()
    }
}

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

fn collection_path(kind: ObjectKind) -> String {
    format!("/apis/{}/{}", names::API_VERSION, kind.plural())
}

fn object_path(kind: ObjectKind, name: &str) -> String {
    format!("{}/{name}", collection_path(kind))
}

/// Returns the API path of the workloads of this kind in this namespace.
fn workloads_path(key: &WorkloadKey) -> String {
    let kind = key.kind().name().to_lowercase();
    format!("/apis/apps/v1/namespaces/{}/{kind}s", key.namespace())
}

fn precondition_path(seen: &Precondition) -> Option<String> {
    match &seen.subject {
        Subject::Object(kind, name) => Some(object_path(*kind, name)),
        Subject::Webhook(_) | Subject::Namespace(_) | Subject::Workload(_) => None,
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it becomes part of the patch")]
fn add_operation(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}
