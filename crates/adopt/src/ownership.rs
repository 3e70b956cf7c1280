//! Changes of the ownership of live objects, and their reversal. Pure.
//!
//! Only metadata changes. Labels of a pod template that identify the previous installer are preserved:
//! their ownership moves to the field manager [`ADOPTED_MANAGER`], and the operator does not change the
//! fields of pod templates that this manager owns.

use std::collections::BTreeMap;

use mainstay_api::names;
use mainstay_cluster::apply::{ADOPTED_MANAGER, LEGACY_MANAGERS};
use mainstay_cluster::connect::MANAGER;
use mainstay_cluster::desired::{HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE, ObjectId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Labels that identify the owner of an object. They are set to those of the new owner.
const OWNER_LABELS: [&str; 5] = [
    "helm.sh/chart",
    names::MANAGED_BY_LABEL,
    HELM_MANAGED_BY,
    "release",
    "app.kubernetes.io/instance",
];

/// Labels by which istioctl finds its objects. Unless the chart sets them too, they are removed so that
/// istioctl does not delete the objects.
const ISTIOCTL_LABELS: [&str; 6] = [
    "istio.io/rev",
    "operator.istio.io/component",
    "install.operator.istio.io/owning-resource",
    "install.operator.istio.io/owning-resource-namespace",
    "operator.istio.io/managed",
    "operator.istio.io/version",
];

/// Labels of pod templates that identify the installer and have no other effect.
const KEPT_LABELS: [&str; 2] = [
    "app.kubernetes.io/instance",
    "install.operator.istio.io/owning-resource",
];

/// Label of the members of an inventory.
const APPLY_SET_LABEL: &str = "applyset.kubernetes.io/part-of";

/// Field manager of Helm.
const HELM_MANAGER: &str = "helm";

/// Path of the labels of a pod template.
const POD_LABELS: &str = "/spec/template/metadata/labels";
/// Path of the labels of a pod template in `managedFields`.
const RECORDED_POD_LABELS: [&str; 4] = ["f:spec", "f:template", "f:metadata", "f:labels"];

/// Original state of the changed metadata of an object, sufficient to restore it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OriginalState {
    /// Group and version.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Changed labels with their original values; `None` if the label was absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Changed annotations with their original values; `None` if the annotation was absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// Original `managedFields` entries of the installer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Value>,
}

/// A change of the ownership of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnershipChange {
    /// Object after the change.
    pub object: Value,
    /// The original state of the changed metadata.
    pub original: OriginalState,
    /// JSON patch of the change; `None` if nothing changes.
    pub patch: Option<Value>,
    /// Owner references that were removed.
    pub released: Vec<Value>,
    /// Object with the marks of the new owner.
    pub wanted: Value,
}

/// Returns the change that sets the ownership marks of `wanted` on `live`.
#[must_use]
pub fn adopt(id: &ObjectId, live: &Value, wanted: &Value) -> OwnershipChange {
    let mut object = live.clone();
    let mut original = OriginalState {
        api_version: id.api_version(),
        kind: id.kind.clone(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        records: legacy_records(live),
        ..OriginalState::default()
    };
    for name in OWNER_LABELS {
        if let Some(value) = text_in(wanted, "labels", name) {
            set(&mut object, "labels", name, Some(value), &mut original.labels);
        }
    }
    for name in ISTIOCTL_LABELS {
        if text_in(wanted, "labels", name).is_none() {
            set(&mut object, "labels", name, None, &mut original.labels);
        }
    }
    if has_free_annotations(id) {
        for name in [HELM_NAME, HELM_NAMESPACE] {
            let value = text_in(wanted, "annotations", name);
            set(&mut object, "annotations", name, value, &mut original.annotations);
        }
    }
    add_owners(&mut object, wanted);
    keep_pod_labels(&mut object, wanted);
    let patch = patch(live, &object);
    OwnershipChange {
        object,
        original,
        patch,
        released: Vec::new(),
        wanted: wanted.clone(),
    }
}

/// Returns the change that sets the ownership marks of Helm on `live`, and removes those of the operator
/// and istioctl.
#[must_use]
pub(crate) fn transfer_to_helm(id: &ObjectId, live: &Value, wanted: &Value) -> OwnershipChange {
    let mut owned = adopt(id, live, wanted);
    let (object, original) = (&mut owned.object, &mut owned.original);
    for name in [names::MANAGED_BY_LABEL, APPLY_SET_LABEL] {
        set(object, "labels", name, None, &mut original.labels);
    }
    for name in ISTIOCTL_LABELS {
        if let Some(value) = text_in(wanted, "labels", name) {
            set(object, "labels", name, Some(value), &mut original.labels);
        }
    }
    owned.released = take_owners(object);
    transfer_fields(object);
    owned.patch = patch(live, object);
    owned
}

/// Makes Helm the manager of the fields of the operator and of previous installers. Otherwise Helm could not
/// change or remove these fields with server-side apply. Helm 4 converts entries of its updates itself.
fn transfer_fields(object: &mut Value) {
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    let Some(entries) = entries else { return };
    let (transferred, mut kept): (Vec<Value>, Vec<Value>) =
        std::mem::take(entries).into_iter().partition(is_transferred);
    for entry in transferred {
        let same = kept.iter_mut().find(|known| {
            manager(known) == HELM_MANAGER
                && known.get("operation") == Some(&"Update".into())
                && known.get("subresource").is_none()
                && known.get("apiVersion") == entry.get("apiVersion")
        });
        match same {
            Some(known) => merge_fields(known, &entry),
            None => kept.push(with_manager(entry)),
        }
    }
    *entries = kept;
}

fn is_transferred(entry: &Value) -> bool {
    (is_legacy(entry) || manager(entry) == MANAGER && entry.get("subresource").is_none())
        && manager(entry) != HELM_MANAGER
}

/// Returns an entry as an update of Helm.
fn with_manager(mut entry: Value) -> Value {
    if let Value::Object(entry) = &mut entry {
        entry.insert("manager".to_owned(), HELM_MANAGER.into());
        entry.insert("operation".to_owned(), "Update".into());
    }
    entry
}

/// Adds the fields of another entry.
fn merge_fields(entry: &mut Value, other: &Value) {
    let other = other.get("fieldsV1").and_then(Value::as_object);
    if let (Some(Value::Object(fields)), Some(other)) = (entry.get_mut("fieldsV1"), other) {
        crate::derive::merge(fields, other.clone());
    }
}

/// Removes and returns the owner references to our kinds.
fn take_owners(object: &mut Value) -> Vec<Value> {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return Vec::new();
    };
    let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else {
        return Vec::new();
    };
    let is_ours = |owner: &Value| owner.get("apiVersion").and_then(Value::as_str) == Some(names::API_VERSION);
    let (removed, left): (Vec<Value>, Vec<Value>) = std::mem::take(owners).into_iter().partition(is_ours);
    if left.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        *owners = left;
    }
    removed
}

/// Whether annotations can change without a new generation. Changing those of a Deployment increments its
/// generation.
pub(crate) fn has_free_annotations(id: &ObjectId) -> bool {
    id.kind != "Deployment"
}

/// Returns the `managedFields` entries of the managers that are taken over.
fn legacy_records(live: &Value) -> Vec<Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    entries.filter(|entry| is_legacy(entry)).cloned().collect()
}

fn is_legacy(entry: &Value) -> bool {
    LEGACY_MANAGERS.contains(&manager(entry)) && entry.get("subresource").is_none()
}

/// Returns a JSON patch that restores the original `managedFields` entries; `None` if nothing changes. It
/// must be sent separately, because the server records all other changes of a patch as owned by its
/// sender.
#[must_use]
pub fn restore_records(live: &Value, original: &OriginalState) -> Option<Value> {
    let mut object = live.clone();
    let entries = object.pointer_mut("/metadata/managedFields")?.as_array_mut()?;
    entries.retain(|entry| !is_legacy(entry) && ![MANAGER, ADOPTED_MANAGER].contains(&manager(entry)));
    entries.splice(0..0, original.records.iter().cloned());
    patch(live, &object)
}

/// Returns a JSON patch that restores the original ownership of `live`; `None` if nothing changes.
/// `owners` contains the UIDs of the owners to remove.
#[must_use]
pub fn restore(live: &Value, original: &OriginalState, owners: &[String]) -> Option<Value> {
    let mut object = live.clone();
    for (name, value) in &original.labels {
        set(
            &mut object,
            "labels",
            name,
            value.as_deref(),
            &mut BTreeMap::new(),
        );
    }
    for (name, value) in &original.annotations {
        set(
            &mut object,
            "annotations",
            name,
            value.as_deref(),
            &mut BTreeMap::new(),
        );
    }
    remove_owners(&mut object, owners);
    if !original.labels.contains_key(APPLY_SET_LABEL) {
        set(&mut object, "labels", APPLY_SET_LABEL, None, &mut BTreeMap::new());
    }
    patch(live, &object)
}

fn text_in<'a>(object: &'a Value, map: &str, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(name)?.as_str()
}

/// Sets or removes an entry, and adds the old value to `original` if it differs.
fn set(
    object: &mut Value,
    map: &str,
    name: &str,
    value: Option<&str>,
    original: &mut BTreeMap<String, Option<String>>,
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
    original.insert(name.to_owned(), old);
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

/// Moves the ownership of pod labels that differ only because of the installer to the field manager of
/// the adoption.
fn keep_pod_labels(object: &mut Value, wanted: &Value) {
    for label in KEPT_LABELS {
        let label_of = |object: &Value| {
            object
                .pointer(POD_LABELS)
                .and_then(|labels| labels.get(label))
                .cloned()
        };
        let (live, desired) = (label_of(object), label_of(wanted));
        if live.is_none() || live == desired || is_owned_by_adoption(object, label) {
            continue;
        }
        if !move_label_ownership(object, label) && desired.is_some() {
            own_label(object, label);
        }
    }
}

/// Whether the field manager of the adoption owns the label.
fn is_owned_by_adoption(object: &Value, label: &str) -> bool {
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

/// Adds a pod label to the fields of the adoption, in addition to its other managers.
fn own_label(object: &mut Value, label: &str) {
    let version = object.get("apiVersion").cloned().unwrap_or_default();
    if let Some(entries) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        add_label_to_entries(entries, &version, label);
    }
}

/// Moves the ownership of a pod label from the previous installer to the adoption. Returns whether the
/// previous installer owned it.
fn move_label_ownership(object: &mut Value, label: &str) -> bool {
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    let mut is_moved = false;
    for entry in entries.into_iter().flatten().filter(|entry| is_legacy(entry)) {
        let record = entry.get_mut("fieldsV1").and_then(Value::as_object_mut);
        is_moved |=
            record.is_some_and(|record| remove_field(record, &RECORDED_POD_LABELS, &format!("f:{label}")));
    }
    if is_moved {
        own_label(object, label);
    }
    is_moved
}

fn manager(entry: &Value) -> &str {
    entry.get("manager").and_then(Value::as_str).unwrap_or_default()
}

/// Adds a pod label to the `managedFields` entry of the adoption, which is created if necessary.
fn add_label_to_entries(entries: &mut Vec<Value>, version: &Value, label: &str) {
    entries.retain(|entry| entry.get("fieldsV1").is_none_or(|record| record != &json!({})));
    let is_target = |entry: &&mut Value| manager(entry) == ADOPTED_MANAGER;
    let name = format!("f:{label}");
    if let Some(entry) = entries.iter_mut().find(is_target)
        && let Some(record) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut)
    {
        insert_field(record, &RECORDED_POD_LABELS, &name);
        return;
    }
    let mut record = Map::new();
    insert_field(&mut record, &RECORDED_POD_LABELS, &name);
    entries.push(json!({
        "manager": ADOPTED_MANAGER,
        "operation": "Update",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": record,
    }));
}

/// Removes a key below `path`, and maps that become empty, because an empty map means ownership of the
/// whole field. Returns whether the key existed.
fn remove_field(record: &mut Map<String, Value>, path: &[&str], key: &str) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return record.remove(key).is_some();
    };
    let Some(Value::Object(inner)) = record.get_mut(*first) else {
        return false;
    };
    let is_removed = remove_field(inner, rest, key);
    if is_removed && inner.is_empty() {
        record.remove(*first);
    }
    is_removed
}

/// Inserts a key below `path`.
fn insert_field(record: &mut Map<String, Value>, path: &[&str], key: &str) {
    let Some((first, rest)) = path.split_first() else {
        record.insert(key.to_owned(), json!({}));
        return;
    };
    let inner = record.entry(*first).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        insert_field(inner, rest, key);
    }
}

/// Fields of the metadata that may change.
const PATCHED: [&str; 4] = ["labels", "annotations", "ownerReferences", "managedFields"];

/// Returns a JSON patch from the metadata of `live` to that of `object`; `None` if they are equal. The
/// patch fails on any other version of the object.
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
