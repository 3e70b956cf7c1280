//! Reduces an object to the metadata that identifies the object, its owners and its release.

use mainstay_api::names;
use serde_json::{Map, Value, json};

use crate::desired::{APPLY_SET_PART, HELM_NAME, HELM_NAMESPACE};

/// Fields of the metadata that are kept.
const FIELDS: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "deletionTimestamp"];
/// Annotations that are kept.
const ANNOTATIONS: [&str; 4] = [
    HELM_NAME,
    HELM_NAMESPACE,
    "helm.sh/resource-policy",
    names::IGNORE_ANNOTATION,
];
/// Maximum length of an annotation that is kept, in bytes. We never write longer ones.
const MAX_ANNOTATION: usize = 256;
/// Maximum number of owners that are kept.
const MAX_OWNERS: usize = 8;

/// Returns the identifying metadata of an object. Bounds the memory that objects of other users can
/// occupy.
pub(super) fn identity(object: &Value) -> Value {
    let Some(Value::Object(metadata)) = object.get("metadata") else {
        return json!({"metadata": {}});
    };
    let fields = FIELDS.iter().filter_map(|field| metadata.get_key_value(*field));
    let mut kept: Map<String, Value> = fields.map(|(key, value)| (key.clone(), value.clone())).collect();
    let owners: Vec<Value> = own_owners(object).take(MAX_OWNERS).cloned().collect();
    kept.insert("ownerReferences".into(), owners.into());
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten().filter(|(key, value)| {
        let is_short = value.as_str().is_some_and(|text| text.len() <= MAX_ANNOTATION);
        is_short && ANNOTATIONS.contains(&key.as_str())
    });
    let annotations: Map<String, Value> = annotations
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    kept.insert("annotations".into(), annotations.into());
    let set = metadata
        .get("labels")
        .and_then(|labels| labels.get(APPLY_SET_PART));
    if let Some(set) = set {
        kept.insert("labels".into(), json!({APPLY_SET_PART: set}));
    }
    json!({"metadata": kept})
}

/// Whether an object has an owner of our kinds.
pub(super) fn has_own_owner(object: &Value) -> bool {
    own_owners(object).next().is_some()
}

fn own_owners(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    owners.into_iter().flatten().filter(|owner| {
        let api_version = owner.get("apiVersion").and_then(Value::as_str);
        api_version == Some(names::API_VERSION)
    })
}
