//! Compares two renderings field by field, without the labels that identify the installer. Pure.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_cluster::installer::text;
use serde_json::{Map, Value};

use crate::differences::{FieldChange, FieldDifference, describe_field};
use crate::found::ComponentKind;

/// Labels that identify the installer. They differ between any two installers.
const INSTALLER_LABELS: [&str; 6] = [
    "helm.sh/chart",
    "release",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "install.operator.istio.io/owning-resource",
    "managed-by",
];

/// Rendered objects by `KIND NAMESPACE/NAME`.
pub(super) type Objects = BTreeMap<String, Value>;

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    /// Number of equal objects.
    pub(super) equal: usize,
    /// Fields that differ.
    pub(super) differences: Vec<FieldDifference>,
}

/// Compares the objects that are rendered before and after the conversion.
pub(super) fn compare(kind: ComponentKind, before: &Objects, after: &Objects) -> Comparison {
    let mut comparison = Comparison::default();
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for id in all.into_iter().filter(|id| !is_informational(id)) {
        let mut found = Vec::new();
        diff(String::new(), before.get(id), after.get(id), &mut found);
        comparison.equal += usize::from(found.is_empty());
        let described = found.into_iter().map(|one| describe_field(kind, id, one));
        comparison.differences.extend(described);
    }
    comparison
}

/// Whether an object only records the values of a chart. Such objects always differ.
fn is_informational(id: &str) -> bool {
    id.starts_with("ConfigMap ")
        && id
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("values"))
}

/// Removes the labels of a definition. They differ between the chart and the file of definitions, and nothing
/// reads them.
fn remove_definition_labels(object: &mut Value) {
    if text(object, "/kind") == "CustomResourceDefinition"
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.remove("labels");
    }
}

/// Indexes rendered objects by identity, and removes the labels that identify the installer and those of
/// definitions.
pub(super) fn index_objects(rendered: impl Iterator<Item = Value>) -> Objects {
    let normalized = rendered.map(|mut object| {
        remove_definition_labels(&mut object);
        for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(Value::Object(labels)) = object.pointer_mut(labels) {
                labels.retain(|key, _| !INSTALLER_LABELS.contains(&key.as_str()));
            }
        }
        let id = format!(
            "{} {}/{}",
            text(&object, "/kind"),
            text(&object, "/metadata/namespace"),
            text(&object, "/metadata/name")
        );
        (id, object)
    });
    normalized.collect()
}

/// Collects the fields in which two values differ. Lists of named items are compared by name.
fn diff(at: String, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<FieldChange>) {
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                diff(format!("{at}.{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if is_named(a) && is_named(b) => {
            let (a, b) = (by_name(a), by_name(b));
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let (old, new) = (a.get(name), b.get(name));
                diff(format!("{at}[name=\"{name}\"]"), old, new, found);
            }
        }
        // istioctl removes line breaks at the end of documents.
        (Some(Value::String(a)), Some(Value::String(b))) if a.trim_end() == b.trim_end() => {}
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (old, new)) in a.iter().zip(b).enumerate() {
                diff(format!("{at}[{index}]"), Some(old), Some(new), found);
            }
        }
        _ if old == new => {}
        _ => found.push(FieldChange {
            path: at,
            before: old.cloned(),
            after: new.cloned(),
        }),
    }
}

fn is_named(list: &[Value]) -> bool {
    !list.is_empty()
        && list
            .iter()
            .all(|item| item.get("name").is_some_and(Value::is_string))
}

fn by_name(list: &[Value]) -> Map<String, Value> {
    let named = list
        .iter()
        .map(|item| (text(item, "/name").to_owned(), item.clone()));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_named_items_are_compared_by_name() {
        let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x"]});
        let new = json!({"env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}], "args": ["x"]});
        let mut found = Vec::new();
        diff(String::new(), Some(&old), Some(&new), &mut found);
        let expected = FieldChange {
            path: ".env[name=\"B\"].value".to_owned(),
            before: Some(json!("2")),
            after: Some(json!("3")),
        };
        assert_eq!(found, [expected]);
    }
}
