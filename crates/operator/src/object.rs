//! Reads fields of objects in JSON form, and builds their JSON.

use mainstay_api::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

/// Returns the string at a JSON pointer, or an empty one.
pub(crate) fn string_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Converts one of our types to JSON. Cannot fail, because all keys of their maps are strings.
pub(crate) fn to_json_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns a JSON patch operation that adds or removes a finalizer and keeps all others.
pub(crate) fn finalizer_operation(metadata: &ObjectMeta, finalizer: &str, is_added: bool) -> Value {
    let others = metadata.finalizers.iter().filter(|name| *name != finalizer);
    let mut finalizers: Vec<&str> = others.map(String::as_str).collect();
    finalizers.extend(is_added.then_some(finalizer));
    json!({"op": "add", "path": "/metadata/finalizers", "value": finalizers})
}
