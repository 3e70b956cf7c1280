//! JSON patch, merge patch and strategic merge patch, as pure functions of a tree and a patch.

use serde_json::{Map, Value};

mod json;
pub mod strategic;

pub use json::apply_json_patch;

/// Applies an RFC 7386 merge patch: maps are merged, null removes a key, any other value replaces the old
/// one.
#[must_use]
pub fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut out = match target {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    for (key, change) in changes {
        if change.is_null() {
            out.remove(key);
        } else {
            let merged = merge(out.get(key).unwrap_or(&Value::Null), change);
            out.insert(key.clone(), merged);
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merge_patches_follow_rfc_7386() {
        let check =
            |target: Value, patch: Value, expected: Value| assert_eq!(merge(&target, &patch), expected);
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b", "b": 1}), json!({"a": null}), json!({"b": 1}));
        check(
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        );
        check(json!({"a": [1]}), json!({"a": [2]}), json!({"a": [2]}));
        check(
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        );
    }
}
