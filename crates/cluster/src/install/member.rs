//! Objects of a set in the cluster, and conversion of rendered objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use mainstay_manifest::Object;
use mainstay_yaml::to_json as yaml_to_json;
use serde_json::Value;

use super::api::{self, ServedKind};
use super::error::InstallError;
use super::sets::InstalledSet;
use crate::connect::MANAGER;
use crate::desired::{APPLY_SET_PART, ObjectId, set_id};

/// Converts rendered objects to JSON.
pub(super) fn to_json(objects: &[Object]) -> Result<Vec<Value>, InstallError> {
    let convert = |object: &Object| {
        let text = yaml_to_json(&object.0).map_err(|error| InstallError::Object(Box::new(error)))?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    };
    objects.iter().map(convert).collect()
}

/// Returns all objects with the label of a set that this tool applied. Other tools may have copied the
/// label to their objects.
pub(super) async fn members(
    client: &Client,
    set: &InstalledSet,
) -> Result<BTreeMap<ObjectId, Arc<Value>>, InstallError> {
    let selector = format!("{APPLY_SET_PART}={}", set_id(&set.key));
    let mut found = BTreeMap::new();
    for kind in api::discover(client, &set.group_kinds).await? {
        let items = api::list(client, &kind.path(), &selector).await?;
        let ours = items.into_iter().filter(is_applied_by_us);
        found.extend(ours.filter_map(|item| Some((identity(&kind, &item)?, Arc::new(item)))));
    }
    Ok(found)
}

fn is_applied_by_us(object: &Value) -> bool {
    let managers = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        text("manager") == Some(MANAGER) && text("operation") == Some("Apply")
    })
}

/// Returns the identity of a list item. Its kind is passed separately, because list items do not contain
/// it.
fn identity(kind: &ServedKind, item: &Value) -> Option<ObjectId> {
    let text = |at: &str| item.pointer(at).and_then(Value::as_str).map(ToOwned::to_owned);
    Some(ObjectId {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        namespace: text("/metadata/namespace").unwrap_or_default(),
        name: text("/metadata/name")?,
    })
}

/// Whether an object has the resource policy `keep`, which prevents pruning but not a purge.
pub(super) fn is_kept(object: &Value) -> bool {
    let policy = object.pointer("/metadata/annotations/helm.sh~1resource-policy");
    policy.and_then(Value::as_str) == Some("keep")
}
