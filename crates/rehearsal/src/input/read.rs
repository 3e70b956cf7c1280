//! Reads the input from a cluster: lists the [`KINDS`](super::KINDS) page by page.

use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::stored::Reduced;
use super::{Input, InputKind, KINDS};
use crate::error::{InvalidObject, RehearsalError};
use crate::unmanaged::has_planes;

/// Kind that a rehearsal requires.
const ISTIO: &str = "Istio";

/// Page size of list requests: a compromise between the number of requests and the size of a response.
const PAGE_SIZE: usize = 500;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: Metadata,
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(rename = "continue")]
    next: String,
}

/// Reads the objects that a rehearsal requires. Kinds that cannot be listed are recorded as missing. Fails if
/// Istios cannot be listed.
pub async fn read_cluster(client: &Client, source: String, now: Timestamp) -> Result<Input, RehearsalError> {
    let (mut objects, mut missing) = (Vec::new(), Vec::new());
    let mut has_definition = true;
    for kind in &KINDS {
        match list(client, kind).await {
            Ok(items) => objects.extend(items),
            Err(ListError::NotServed) if kind.kind == ISTIO => has_definition = false,
            // The kind is not defined in the cluster, so it has no objects.
            Err(ListError::NotServed) => {}
            Err(error) if kind.kind == ISTIO => {
                return Err(RehearsalError::Cluster {
                    plural: kind.plural,
                    message: error.to_string(),
                });
            }
            Err(error) => missing.push((kind.kind, error.to_string())),
        }
    }
    let input = Input::sorted(source, objects)?;
    // Definitions are not required for a mesh of another installer.
    if !has_definition && !has_planes(&input) {
        return Err(RehearsalError::NoDefinitions { plural: "istios" });
    }
    Ok(Input {
        missing,
        taken: input.taken.max(Some(now)),
        ..input
    })
}

/// Reason why a kind cannot be listed.
#[derive(Debug, thiserror::Error)]
enum ListError {
    /// The server does not serve the kind.
    #[error("not served by this cluster")]
    NotServed,
    /// The server rejected the request with this message.
    #[error("{0}")]
    Rejected(String),
    /// The request cannot be built.
    #[error(transparent)]
    Request(#[from] http::Error),
}

async fn list(client: &Client, kind: &InputKind) -> Result<Vec<Result<Reduced, InvalidObject>>, ListError> {
    let root = if kind.api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let path = format!("{root}/{}/{}", kind.api_version, kind.plural);
    let (mut items, mut next) = (Vec::new(), String::new());
    loop {
        let token = if next.is_empty() {
            String::new()
        } else {
            format!("&continue={next}")
        };
        let request = Request::get(format!("{path}?limit={PAGE_SIZE}{token}")).body(Vec::new());
        let page: Page = client.request(request?).await.map_err(ListError::from)?;
        let page_items = page.items.into_iter().flatten();
        items.extend(page_items.map(|item| Reduced::from_object(with_type(item, kind))));
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(items);
        }
    }
}

impl From<kube::Error> for ListError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 404 => Self::NotServed,
            kube::Error::Api(status) => Self::Rejected(status.message.clone()),
            other => Self::Rejected(other.to_string()),
        }
    }
}

/// Adds `kind` and `apiVersion`, which items of a list do not have.
fn with_type(mut item: Value, kind: &InputKind) -> Value {
    if let Value::Object(fields) = &mut item {
        fields.insert("apiVersion".into(), kind.api_version.into());
        fields.insert("kind".into(), kind.kind.into());
    }
    item
}
