//! JSON patches (RFC 6902).

use serde_json::Value;

use crate::status::Status;
use crate::tree;

/// Reason for which a JSON patch is rejected.
enum PatchError {
    /// The patch is malformed.
    Malformed(String),
    /// The patch does not apply to the object.
    Inapplicable,
}

/// Maximum number of operations, as in the API server.
const MAX_OPERATIONS: usize = 10_000;

/// Maximum total size of the values that `copy` operations of a patch add, as in the API server.
const MAX_COPIED_SIZE: usize = 3 << 20;

/// Maximum total number of list items that a patch moves when it inserts or removes items before them.
/// Without this limit, 10,000 insertions at the start of a long list take minutes.
const MAX_SHIFTED_ITEMS: usize = 100_000_000;

/// Applies an RFC 6902 patch to a tree.
pub fn apply_json_patch(target: &Value, patch: &Value) -> Result<Value, Status> {
    let Value::Array(operations) = patch else {
        return Err(to_status(PatchError::Malformed(
            "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".into(),
        )));
    };
    if operations.len() > MAX_OPERATIONS {
        let text = format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {text}"),
        ));
    }
    let mut patched = PatchedObject {
        value: target.clone(),
        remaining_copy_size: MAX_COPIED_SIZE,
        remaining_shifts: MAX_SHIFTED_ITEMS,
    };
    for operation in operations {
        patched.apply(operation).map_err(to_status)?;
    }
    Ok(patched.value)
}

fn to_status(error: PatchError) -> Status {
    match error {
        PatchError::Malformed(text) => Status::bad_request(format!("error decoding patch: {text}")),
        PatchError::Inapplicable => Status::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with_details(),
    }
}

/// A partially patched object.
struct PatchedObject {
    value: Value,
    /// Remaining size of values that `copy` operations may add, in bytes.
    remaining_copy_size: usize,
    /// Remaining number of list items that may be moved.
    remaining_shifts: usize,
}

impl PatchedObject {
    fn apply(&mut self, operation: &Value) -> Result<(), PatchError> {
        let text = |key: &str| operation.get(key).and_then(Value::as_str);
        let path = text("path").ok_or(PatchError::Inapplicable)?;
        let value = || operation.get("value").cloned().ok_or(PatchError::Inapplicable);
        match text("op").unwrap_or("") {
            "add" => self.add(path, value()?),
            "remove" => self.remove(path).map(drop),
            "replace" => {
                if let Some(existing) = self.value.pointer_mut(path) {
                    *existing = value()?;
                    return Ok(());
                }
                // The API server's library allows replacing a missing key of a map.
                let (parent, _) = split_pointer(path)?;
                match self.value.pointer(parent) {
                    Some(Value::Object(_)) => self.add(path, value()?),
                    _ => Err(PatchError::Inapplicable),
                }
            }
            "move" => {
                let from = text("from").ok_or(PatchError::Inapplicable)?;
                let moved = self.remove(from)?;
                self.add(path, moved)
            }
            "copy" => {
                let copied = self.copy(text("from").ok_or(PatchError::Inapplicable)?)?;
                self.add(path, copied)
            }
            "test" => {
                let expected = operation.get("value").cloned().unwrap_or(Value::Null);
                let found = self.value.pointer(path).unwrap_or(&Value::Null);
                if *found == expected {
                    Ok(())
                } else {
                    Err(PatchError::Inapplicable)
                }
            }
            _ => Err(PatchError::Inapplicable),
        }
    }

    fn copy(&mut self, from: &str) -> Result<Value, PatchError> {
        let value = self.value.pointer(from).ok_or(PatchError::Inapplicable)?;
        let size = tree::json_size(value, self.remaining_copy_size).ok_or(PatchError::Inapplicable)?;
        self.remaining_copy_size -= size;
        Ok(value.clone())
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), PatchError> {
        if path.is_empty() {
            self.value = value;
            return Ok(());
        }
        let (parent, last) = split_pointer(path)?;
        match self.value.pointer_mut(parent).ok_or(PatchError::Inapplicable)? {
            Value::Object(map) => {
                map.insert(last, value);
                Ok(())
            }
            Value::Array(items) => {
                let at = if last == "-" {
                    items.len()
                } else {
                    parse_index(&last, items.len() + 1)?
                };
                spend_shifts(&mut self.remaining_shifts, items.len() - at)?;
                items.insert(at, value);
                Ok(())
            }
            _ => Err(PatchError::Inapplicable),
        }
    }

    fn remove(&mut self, path: &str) -> Result<Value, PatchError> {
        let (parent, last) = split_pointer(path)?;
        match self.value.pointer_mut(parent).ok_or(PatchError::Inapplicable)? {
            Value::Object(map) => map.remove(&last).ok_or(PatchError::Inapplicable),
            Value::Array(items) => {
                let at = parse_index(&last, items.len())?;
                spend_shifts(&mut self.remaining_shifts, items.len() - at)?;
                Ok(items.remove(at))
            }
            _ => Err(PatchError::Inapplicable),
        }
    }
}

fn spend_shifts(remaining: &mut usize, items: usize) -> Result<(), PatchError> {
    *remaining = remaining.checked_sub(items).ok_or(PatchError::Inapplicable)?;
    Ok(())
}

fn split_pointer(path: &str) -> Result<(&str, String), PatchError> {
    let (parent, last) = path.rsplit_once('/').ok_or(PatchError::Inapplicable)?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

/// Parses an index below `bound`. Negative indexes count from the end, as in the API server's library.
fn parse_index(text: &str, bound: usize) -> Result<usize, PatchError> {
    let number: i64 = text.parse().map_err(|_| PatchError::Inapplicable)?;
    let at = if number < 0 {
        number + i64::try_from(bound).unwrap_or(0)
    } else {
        number
    };
    usize::try_from(at)
        .ok()
        .filter(|at| *at < bound)
        .ok_or(PatchError::Inapplicable)
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(patch: Value, expected: Value) {
        let target = json!({"a": {"b": [1, 2]}, "c/d": 1});
        let shown = apply_json_patch(&target, &patch).unwrap_or_else(|status| json!(status.message()));
        assert_eq!(shown, expected, "{patch}");
    }

    #[test]
    fn applies_operations_in_order() {
        check(
            json!([{"op": "add", "path": "/a/b/-", "value": 3}]),
            json!({"a": {"b": [1, 2, 3]}, "c/d": 1}),
        );
        check(
            json!([{"op": "add", "path": "/a/b/0", "value": 0}]),
            json!({"a": {"b": [0, 1, 2]}, "c/d": 1}),
        );
        check(
            json!([{"op": "remove", "path": "/c~1d"}]),
            json!({"a": {"b": [1, 2]}}),
        );
        check(
            json!([{"op": "move", "from": "/a/b", "path": "/x"}]),
            json!({"a": {}, "c/d": 1, "x": [1, 2]}),
        );
        check(
            json!([{"op": "test", "path": "/a/b/1", "value": 2}, {"op": "replace", "path": "/a", "value": 1}]),
            json!({"a": 1, "c/d": 1}),
        );
    }

    #[test]
    fn rejects_inapplicable_operations() {
        let rejected = json!("the server rejected our request due to an error in our request");
        check(
            json!([{"op": "test", "path": "/a/b/1", "value": 3}]),
            rejected.clone(),
        );
        check(json!([{"op": "remove", "path": "/nope"}]), rejected.clone());
        check(
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            rejected.clone(),
        );
        check(json!([{"op": "add", "path": "/a/b/7", "value": 1}]), rejected);
    }

    #[test]
    fn copies_and_shifted_items_are_bounded() {
        let apply = |target: &Value, patch: Vec<Value>| apply_json_patch(target, &Value::Array(patch));
        let double = |number: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/{number}")});
        let target = json!({"a": {"x": "y".repeat(1000)}});
        assert!(apply(&target, (0..8).map(double).collect()).is_ok());
        assert!(apply(&target, (0..30).map(double).collect()).is_err());
        let long = json!({"a": vec![0; 500_000]});
        let insert = json!({"op": "add", "path": "/a/0", "value": 0});
        assert!(apply(&long, vec![insert.clone(); 100]).is_ok());
        assert!(apply(&long, vec![insert; 10_000]).is_err());
    }
}
