//! Names of all objects of a cluster, of every kind that its discovery lists.

use std::collections::BTreeSet;

use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// Returns all objects as `version kind namespace/name`, except those of the kinds `left_out`.
pub async fn inventory(client: &Client, left_out: &[&str]) -> Result<BTreeSet<String>, kube::Error> {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = get(client, "/apis").await?;
    for group in items(&groups, "groups") {
        let version = group.pointer("/preferredVersion/groupVersion");
        versions.extend(
            version
                .and_then(Value::as_str)
                .map(|name| format!("/apis/{name}")),
        );
    }
    let mut found = BTreeSet::new();
    for version in versions {
        let resources = get(client, &version).await?;
        for resource in items(&resources, "resources") {
            let name = text(resource, "/name");
            let can_list = items(resource, "verbs").contains(&json!("list"));
            if name.contains('/') || !can_list || left_out.contains(&text(resource, "/kind")) {
                continue;
            }
            let list = get(client, &format!("{version}/{name}")).await?;
            let label = |item| label(&version, text(resource, "/kind"), item);
            found.extend(items(&list, "items").iter().map(label));
        }
    }
    Ok(found)
}

fn label(version: &str, kind: &str, item: &Value) -> String {
    let (namespace, name) = (text(item, "/metadata/namespace"), text(item, "/metadata/name"));
    format!("{version} {kind} {namespace}/{name}")
}

async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
