//! The fields of objects, and the changes between two sets of objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

/// Labels that identify the installer. A migration does not report them.
const INSTALLER_LABELS: [&str; 6] = [
    "helm.sh/chart",
    "release",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "install.operator.istio.io/owning-resource",
    "managed-by",
];

/// An object and the path of a field.
type Place = (String, String);
/// Values of the fields that have no fields themselves.
pub(super) type Fields = BTreeMap<Place, Value>;
/// Values of fields before and after.
pub(super) type Changes = BTreeMap<Place, (Option<Value>, Option<Value>)>;

/// Returns the fields of all objects, except for the labels of the installer, the labels of definitions, and
/// the `ConfigMap`s that record the values of a chart.
pub(super) fn fields_of(objects: &[Value]) -> Fields {
    let (mut fields, mut ids) = (Fields::new(), BTreeSet::new());
    for object in objects {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        if kind == "ConfigMap" && name.starts_with("values") {
            continue;
        }
        let id = format!("{kind} {}/{name}", text("/metadata/namespace"));
        let mut object = object.clone();
        for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(Value::Object(labels)) = object.pointer_mut(labels) {
                labels.retain(|key, _| !INSTALLER_LABELS.contains(&key.as_str()));
            }
        }
        if kind == "CustomResourceDefinition" {
            object["metadata"].as_object_mut().unwrap().remove("labels");
        }
        assert!(ids.insert(id.clone()), "{id} is rendered twice");
        add(&id, String::new(), &object, &mut fields);
    }
    fields
}

/// Returns the fields of a value at a path of an object.
pub(super) fn below(object: &str, path: &str, value: Option<&Value>) -> Fields {
    let mut fields = Fields::new();
    if let Some(value) = value {
        add(object, path.to_owned(), value, &mut fields);
    }
    fields
}

fn add(object: &str, path: String, value: &Value, fields: &mut Fields) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                add(object, format!("{path}.{key}"), value, fields);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let is_named = items.iter().all(|item| item["name"].is_string());
            for (index, item) in items.iter().enumerate() {
                let key = if is_named {
                    format!("name={}", item["name"])
                } else {
                    index.to_string()
                };
                add(object, format!("{path}[{key}]"), item, fields);
            }
        }
        value => {
            // istioctl removes line breaks at the end of documents.
            let value = value
                .as_str()
                .map_or_else(|| value.clone(), |text| text.trim_end().into());
            let known = fields.insert((object.to_owned(), path), value);
            assert!(known.is_none(), "{object} has items with the same name");
        }
    }
}

/// Returns the fields with different values. An empty map and a map with fields differ in these fields only.
pub(super) fn changes(before: &Fields, after: &Fields) -> Changes {
    let mut changes = Changes::new();
    for place in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(place), after.get(place));
        let is_map = match (old, new) {
            (Some(old), None) => *old == json!({}) && has_fields(after, place),
            (None, Some(new)) => *new == json!({}) && has_fields(before, place),
            _ => false,
        };
        if old != new && !is_map {
            changes.insert(place.clone(), (old.cloned(), new.cloned()));
        }
    }
    changes
}

/// Whether a field of an object has fields.
fn has_fields(fields: &Fields, (object, path): &Place) -> bool {
    let first = (object.clone(), format!("{path}."));
    let mut following = fields.range(first.clone()..);
    following
        .next()
        .is_some_and(|((other, field), _)| other == object && field.starts_with(&first.1))
}

/// Returns the changes that `others` does not contain.
pub(super) fn without(changes: &Changes, others: &Changes) -> Changes {
    let kept = changes
        .iter()
        .filter(|(place, change)| others.get(*place) != Some(*change));
    kept.map(|(place, change)| (place.clone(), change.clone()))
        .collect()
}

/// Formats changes, one per line.
pub(super) fn describe(changes: &Changes) -> String {
    let mut out = String::new();
    for ((object, path), (before, after)) in changes {
        let _ = writeln!(out, "  {object} {path}: {before:?} -> {after:?}");
    }
    out
}
