//! Paginated lists of full objects or of their metadata.

use std::collections::BTreeMap;

use http::Request;
use http::header::ACCEPT;
use kube::Client;
use mainstay_api::OwnerReference;
use mainstay_mesh::workload::{PodController, WorkloadKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::write::WriteError;

/// Maximum number of objects per page.
const PAGE_SIZE: usize = 500;

/// Part of each object that a list contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectContent {
    Full,
    Metadata,
}

/// An object with metadata only.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetadataOnly {
    pub(super) metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) owner_references: Vec<OwnerReference>,
}

impl Metadata {
    /// Returns the workload that a pod with this metadata belongs to.
    pub(super) fn workload(&self) -> Option<WorkloadKey> {
        let owner = self.owner_references.iter().find(|owner| owner.controller)?;
        let controller = PodController {
            kind: &owner.kind,
            name: &owner.name,
        };
        WorkloadKey::for_pod(&self.namespace, controller, &self.labels)
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default = "Vec::new", deserialize_with = "null_or_list")]
    items: Vec<T>,
}

/// Parses a list or null: a real server returns null for an empty metadata list.
fn null_or_list<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: String,
}

/// Returns all items at `path` that match `selector`, which is a query parameter or empty.
pub(crate) async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    selector: &str,
    content: ObjectContent,
) -> Result<Vec<T>, WriteError> {
    let (mut items, mut next) = (Vec::new(), String::new());
    loop {
        let request = Request::get(format!(
            "{path}?limit={PAGE_SIZE}{}{}",
            query_parameter("", selector),
            query_parameter("continue=", &next)
        ))
        .header(ACCEPT, accept_header(content))
        .body(Vec::new());
        let page: Page<T> = client.request(request.map_err(kube::Error::HttpError)?).await?;
        items.extend(page.items);
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(items);
        }
    }
}

fn query_parameter(key: &str, value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else {
        format!("&{key}{value}")
    }
}

fn accept_header(content: ObjectContent) -> &'static str {
    match content {
        ObjectContent::Full => "application/json",
        ObjectContent::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    }
}
