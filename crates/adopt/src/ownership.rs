//! Ownership of live objects: what changes when another tool manages them, and back. Pure.
//!
//! Only metadata changes. Labels of a pod template that name the previous installer stay as they are: their
//! record moves to the field manager [`ADOPTED_MANAGER`], and the operator leaves its fields of pod templates
//! alone.

use std::collections::BTreeMap;

use mainstay_api::names;
use mainstay_cluster::apply::{ADOPTED_MANAGER, LEGACY_MANAGERS, MANAGER};
use mainstay_cluster::desired::{HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE, ObjectId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Labels of an object that name its owner; they are set to the new owner's.
const OWNER_LABELS: [&str; 5] = [
    "helm.sh/chart",
    names::MANAGED_BY_LABEL,
    HELM_MANAGED_BY,
    "release",
    "app.kubernetes.io/instance",
];

/// Labels by which istioctl finds its objects, unless the chart sets them, too; they are removed, so that it
/// does not delete them.
const ISTIOCTL_LABELS: [&str; 6] = [
    "istio.io/rev",
    "operator.istio.io/component",
    "install.operator.istio.io/owning-resource",
    "install.operator.istio.io/owning-resource-namespace",
    "operator.istio.io/managed",
    "operator.istio.io/version",
];

/// Labels of pod templates that name the installer and have no other effect.
const KEPT_LABELS: [&str; 2] = [
    "app.kubernetes.io/instance",
    "install.operator.istio.io/owning-resource",
];

/// Label of the inventory's members.
const APPLY_SET_LABEL: &str = "applyset.kubernetes.io/part-of";

/// Path of the labels of a pod template.
const POD_LABELS: &str = "/spec/template/metadata/labels";
/// The same as recorded by the server.
const RECORDED_POD_LABELS: [&str; 4] = ["f:spec", "f:template", "f:metadata", "f:labels"];

/// What an object had before: enough for the way back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Before {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Changed labels with their old values; `None` if a label was added.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Changed annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// Records of the installer's field managers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Value>,
}

/// An object with a new owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// The object afterwards.
    pub object: Value,
    /// What changed.
    pub before: Before,
    /// JSON patch; `None` if nothing changes.
    pub patch: Option<Value>,
    /// Owners that were removed.
    pub released: Vec<Value>,
}

/// Returns `live` with the ownership marks of `wanted`.
#[must_use]
pub fn adopt(id: &ObjectId, live: &Value, wanted: &Value) -> Owned {
    let mut object = live.clone();
    let mut before = Before {
        api_version: id.api_version(),
        kind: id.kind.clone(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        records: legacy_records(live),
        ..Before::default()
    };
    for name in OWNER_LABELS {
        if let Some(value) = text_in(wanted, "labels", name) {
            set(&mut object, "labels", name, Some(value), &mut before.labels);
        }
    }
    for name in ISTIOCTL_LABELS {
        if text_in(wanted, "labels", name).is_none() {
            set(&mut object, "labels", name, None, &mut before.labels);
        }
    }
    if has_free_annotations(id) {
        for name in [HELM_NAME, HELM_NAMESPACE] {
            let value = text_in(wanted, "annotations", name);
            set(&mut object, "annotations", name, value, &mut before.annotations);
        }
    }
    add_owners(&mut object, wanted);
    keep_pod_labels(&mut object, wanted);
    let patch = patch(live, &object);
    Owned {
        object,
        before,
        patch,
        released: Vec::new(),
    }
}

/// Returns `live` with the ownership marks that Helm expects, without the operator's and istioctl's.
#[must_use]
pub(crate) fn hand_to_helm(id: &ObjectId, live: &Value, wanted: &Value) -> Owned {
    let mut owned = adopt(id, live, wanted);
    let (object, before) = (&mut owned.object, &mut owned.before);
    for name in [names::MANAGED_BY_LABEL, APPLY_SET_LABEL] {
        set(object, "labels", name, None, &mut before.labels);
    }
    for name in ISTIOCTL_LABELS {
        if let Some(value) = text_in(wanted, "labels", name) {
            set(object, "labels", name, Some(value), &mut before.labels);
        }
    }
    owned.released = take_owners(object);
    owned.patch = patch(live, object);
    owned
}

/// Removes and returns the owners of our kinds.
fn take_owners(object: &mut Value) -> Vec<Value> {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return Vec::new();
    };
    let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else {
        return Vec::new();
    };
    let is_ours = |owner: &Value| owner.get("apiVersion").and_then(Value::as_str) == Some(names::API_VERSION);
    let (taken, left): (Vec<Value>, Vec<Value>) = std::mem::take(owners).into_iter().partition(is_ours);
    if left.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        *owners = left;
    }
    taken
}

/// Whether annotations can change without a new generation: those of a Deployment count as its spec.
pub(crate) fn has_free_annotations(id: &ObjectId) -> bool {
    id.kind != "Deployment"
}

/// The entries of the managers that are taken over.
fn legacy_records(live: &Value) -> Vec<Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    entries.filter(|entry| is_legacy(entry)).cloned().collect()
}

fn is_legacy(entry: &Value) -> bool {
    LEGACY_MANAGERS.contains(&manager(entry)) && entry.get("subresource").is_none()
}

/// Restores the records that `live` had before, in a separate patch: the server records every other change of
/// a patch for its sender.
#[must_use]
pub fn restore_records(live: &Value, before: &Before) -> Option<Value> {
    let mut object = live.clone();
    let entries = object.pointer_mut("/metadata/managedFields")?.as_array_mut()?;
    entries.retain(|entry| !is_legacy(entry) && ![MANAGER, ADOPTED_MANAGER].contains(&manager(entry)));
    entries.splice(0..0, before.records.iter().cloned());
    patch(live, &object)
}

/// Restores the ownership that `live` had before; `owners` are the uids of owners to remove.
#[must_use]
pub fn restore(live: &Value, before: &Before, owners: &[String]) -> Option<Value> {
    let mut object = live.clone();
    for (name, value) in &before.labels {
        set(
            &mut object,
            "labels",
            name,
            value.as_deref(),
            &mut BTreeMap::new(),
        );
    }
    for (name, value) in &before.annotations {
        set(
            &mut object,
            "annotations",
            name,
            value.as_deref(),
            &mut BTreeMap::new(),
        );
    }
    remove_owners(&mut object, owners);
    if !before.labels.contains_key(APPLY_SET_LABEL) {
        set(&mut object, "labels", APPLY_SET_LABEL, None, &mut BTreeMap::new());
    }
    patch(live, &object)
}

fn text_in<'a>(object: &'a Value, map: &str, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(name)?.as_str()
}

/// Sets or removes an entry and records the old value if it differs.
fn set(
    object: &mut Value,
    map: &str,
    name: &str,
    value: Option<&str>,
    before: &mut BTreeMap<String, Option<String>>,
) {
    let old = text_in(object, map, name).map(ToOwned::to_owned);
    if old.as_deref() == value {
        return;
    }
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let entries = metadata.entry(map).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entries) = entries {
        match value {
            Some(value) => entries.insert(name.to_owned(), value.into()),
            None => entries.remove(name),
        };
        if entries.is_empty() {
            metadata.remove(map);
        }
    }
    before.insert(name.to_owned(), old);
}

fn add_owners(object: &mut Value, wanted: &Value) {
    let wanted = wanted
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
    if let Value::Array(owners) = owners {
        for owner in wanted.into_iter().flatten() {
            if !owners.iter().any(|known| known.get("uid") == owner.get("uid")) {
                owners.push(owner.clone());
            }
        }
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}

fn remove_owners(object: &mut Value, uids: &[String]) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        let is_ours = |owner: &Value| {
            let uid = owner.get("uid").and_then(Value::as_str);
            uid.is_some_and(|uid| uids.iter().any(|ours| ours == uid))
        };
        owners.retain(|owner| !is_ours(owner));
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}

/// Moves the record of labels that differ only because of the installer.
fn keep_pod_labels(object: &mut Value, wanted: &Value) {
    for label in KEPT_LABELS {
        let of = |object: &Value| {
            object
                .pointer(POD_LABELS)
                .and_then(|labels| labels.get(label))
                .cloned()
        };
        let (live, desired) = (of(object), of(wanted));
        if live.is_none() || live == desired || is_kept(object, label) {
            continue;
        }
        if !move_record(object, label) && desired.is_some() {
            record(object, label);
        }
    }
}

/// Whether the label is recorded as kept.
fn is_kept(object: &Value, label: &str) -> bool {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let mut kept = entries
        .into_iter()
        .flatten()
        .filter(|entry| manager(entry) == ADOPTED_MANAGER);
    kept.any(|entry| {
        let record = entry.get("fieldsV1").unwrap_or(&Value::Null);
        let labels = RECORDED_POD_LABELS
            .iter()
            .try_fold(record, |record, key| record.get(key));
        labels.is_some_and(|labels| labels.get(format!("f:{label}")).is_some())
    })
}

/// Records a kept pod label besides its other managers.
fn record(object: &mut Value, label: &str) {
    let version = object.get("apiVersion").cloned().unwrap_or_default();
    if let Some(entries) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        record_for(entries, &version, label);
    }
}

/// Moves the record of a pod label from the previous installer; returns whether it had one.
fn move_record(object: &mut Value, label: &str) -> bool {
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    let mut is_moved = false;
    for entry in entries.into_iter().flatten().filter(|entry| is_legacy(entry)) {
        let record = entry.get_mut("fieldsV1").and_then(Value::as_object_mut);
        is_moved |= record.is_some_and(|record| take(record, &RECORDED_POD_LABELS, &format!("f:{label}")));
    }
    if is_moved {
        record(object, label);
    }
    is_moved
}

fn manager(entry: &Value) -> &str {
    entry.get("manager").and_then(Value::as_str).unwrap_or_default()
}

/// Adds the record of a kept pod label to the entry of the adoption, which is created if necessary.
fn record_for(entries: &mut Vec<Value>, version: &Value, label: &str) {
    entries.retain(|entry| entry.get("fieldsV1").is_none_or(|record| record != &json!({})));
    let is_target = |entry: &&mut Value| manager(entry) == ADOPTED_MANAGER;
    let name = format!("f:{label}");
    if let Some(entry) = entries.iter_mut().find(is_target)
        && let Some(record) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut)
    {
        put(record, &RECORDED_POD_LABELS, &name);
        return;
    }
    let mut record = Map::new();
    put(&mut record, &RECORDED_POD_LABELS, &name);
    entries.push(json!({
        "manager": ADOPTED_MANAGER,
        "operation": "Update",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": record,
    }));
}

/// Removes a key below `path` and maps that become empty: an empty one would claim the whole field.
fn take(record: &mut Map<String, Value>, path: &[&str], key: &str) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return record.remove(key).is_some();
    };
    let Some(Value::Object(inner)) = record.get_mut(*first) else {
        return false;
    };
    let is_taken = take(inner, rest, key);
    if is_taken && inner.is_empty() {
        record.remove(*first);
    }
    is_taken
}

fn put(record: &mut Map<String, Value>, path: &[&str], key: &str) {
    let Some((first, rest)) = path.split_first() else {
        record.insert(key.to_owned(), json!({}));
        return;
    };
    let inner = record.entry(*first).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        put(inner, rest, key);
    }
}

/// Metadata that may change.
const PATCHED: [&str; 4] = ["labels", "annotations", "ownerReferences", "managedFields"];

/// Returns a JSON patch of the metadata that fails on any other version of the object.
fn patch(live: &Value, object: &Value) -> Option<Value> {
    let field = |object: &Value, name: &str| object.get("metadata").and_then(|map| map.get(name)).cloned();
    let mut changes = Vec::new();
    for name in PATCHED {
        let path = format!("/metadata/{name}");
        match (field(live, name), field(object, name)) {
            (old, new) if old == new => {}
            (_, Some(new)) => changes.push(json!({"op": "add", "path": path, "value": new})),
            (_, None) => changes.push(json!({"op": "remove", "path": path})),
        }
    }
    if changes.is_empty() {
        return None;
    }
    let version = field(live, "resourceVersion").unwrap_or_default();
    changes.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
    Some(Value::Array(changes))
}

#[cfg(test)]
mod tests;
