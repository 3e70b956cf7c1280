//! Reads and single writes that the apply engine does not provide.

use std::collections::BTreeSet;

use http::Method;
use kube::Client;
use mainstay_gostd::url::path_escape;
use serde_json::Value;

use super::error::InstallError;
use crate::write::{Body, WriteError, Writer};

/// Maximum number of objects per page.
const PAGE_SIZE: usize = 500;

/// A kind that the server serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Preferred version of the group.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Plural resource name in URLs, such as `deployments`.
    pub plural: String,
}

impl ServedKind {
    /// Returns the API path of all objects of the kind.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", group_path(&self.group, &self.version), self.plural)
    }
}

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

/// Reads one object; `None` if it does not exist.
pub(super) async fn get(client: &Client, path: &str) -> Result<Option<Value>, InstallError> {
    let response = Writer::new(client.clone()).call(Method::GET, path, None).await;
    match response {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(InstallError::read(path, error)),
    }
}

/// Sends a call with a body.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: Body,
) -> Result<Value, WriteError> {
    Writer::new(client.clone()).call(method, path, Some(body)).await
}

/// Lists all objects at `path` that match the label selector; empty if the kind is not served.
pub(super) async fn list(client: &Client, path: &str, selector: &str) -> Result<Vec<Value>, InstallError> {
    let mut items = Vec::new();
    let mut page = String::new();
    loop {
        let query = format!("labelSelector={}&limit={PAGE_SIZE}{page}", path_escape(selector));
        let Some(mut list) = get(client, &format!("{path}?{query}")).await? else {
            return Ok(items);
        };
        if let Some(Value::Array(found)) = list.get_mut("items").map(Value::take) {
            items.extend(found);
        }
        let next = list.pointer("/metadata/continue").and_then(Value::as_str);
        match next.filter(|next| !next.is_empty()) {
            Some(next) => page = format!("&continue={}", path_escape(next)),
            None => return Ok(items),
        }
    }
}

/// Returns those of the kinds, such as `Deployment.apps`, that the server serves.
pub(super) async fn discover(
    client: &Client,
    group_kinds: &BTreeSet<String>,
) -> Result<Vec<ServedKind>, InstallError> {
    let split = |text: &String| {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        (group.to_owned(), kind.to_owned())
    };
    let wanted: BTreeSet<(String, String)> = group_kinds.iter().map(split).collect();
    let groups: BTreeSet<&String> = wanted.iter().map(|(group, _)| group).collect();
    let mut served = Vec::new();
    for group in groups {
        let kinds = discover_group(client, group).await?;
        served.extend(
            kinds
                .into_iter()
                .filter(|one| wanted.contains(&(one.group.clone(), one.kind.clone()))),
        );
    }
    Ok(served)
}

async fn discover_group(client: &Client, group: &str) -> Result<Vec<ServedKind>, InstallError> {
    let version = if group.is_empty() {
        Some("v1".to_owned())
    } else {
        let found = get(client, &format!("/apis/{group}")).await?;
        let version = found
            .as_ref()
            .and_then(|found| found.pointer("/preferredVersion/version"));
        version.and_then(Value::as_str).map(ToOwned::to_owned)
    };
    let Some(version) = version else {
        return Ok(Vec::new());
    };
    let resources = get(client, &group_path(group, &version))
        .await?
        .unwrap_or_default();
    let rows = resources
        .get("resources")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let kind = |row: &Value| {
        let text = |name: &str| {
            row.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        ServedKind {
            group: group.to_owned(),
            version: version.clone(),
            kind: text("kind"),
            plural: text("name"),
        }
    };
    Ok(rows.map(kind).filter(|one| !one.plural.contains('/')).collect())
}
