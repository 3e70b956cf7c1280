//! Walking JSON trees: takes a value and a path of keys, gives what is there. Knows nothing of Kubernetes.

use serde_json::{Map, Value};

/// What lies at `path`, keys only.
#[must_use]
pub fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, key| at.as_object()?.get(*key))
}

/// The text at `path`; empty when there is none.
#[must_use]
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    get(value, path).and_then(Value::as_str).unwrap_or("")
}

/// The whole number at `path`.
#[must_use]
pub fn int(value: &Value, path: &[&str]) -> Option<i64> {
    get(value, path).and_then(Value::as_i64)
}

/// Whether `true` lies at `path`.
#[must_use]
pub fn flag(value: &Value, path: &[&str]) -> bool {
    get(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at `path`; empty when there is none.
#[must_use]
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The map at `path`.
#[must_use]
pub fn map<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    get(value, path).and_then(Value::as_object)
}

/// What lies at `path`, to be changed.
pub fn get_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter()
        .try_fold(value, |at, key| at.as_object_mut()?.get_mut(*key))
}

/// The list at `path`, to be changed.
pub fn list_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    get_mut(value, path).and_then(Value::as_array_mut)
}

/// The map at `path`, made when it is not there; `None` when something else stands in the way.
pub fn map_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut at = value;
    for key in path {
        at = at
            .as_object_mut()?
            .entry(*key)
            .or_insert_with(|| Value::Object(Map::new()));
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    at.as_object_mut()
}

/// Puts `new` at `path`, making maps on the way.
pub fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, front)) = path.split_last()
        && let Some(map) = map_mut(value, front)
    {
        map.insert((*last).to_owned(), new.into());
    }
}

/// Puts `new` at `path` unless something is there; says whether it did.
pub fn set_default(value: &mut Value, path: &[&str], new: impl Into<Value>) -> bool {
    if get(value, path).is_some_and(|there| !there.is_null()) {
        return false;
    }
    set(value, path, new);
    true
}

/// Like [`set_default`], also when an empty text is there (the zero value of a Go string).
pub fn set_default_text(value: &mut Value, path: &[&str], new: &str) -> bool {
    if !text(value, path).is_empty() {
        return false;
    }
    set(value, path, new);
    true
}

/// Takes away what lies at `path`.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, front) = path.split_last()?;
    get_mut(value, front)?.as_object_mut()?.remove(*last)
}

/// Copies what lies at `path` in `from`, or its absence, to `to`.
pub fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match get(from, path) {
        // To compare is much cheaper than to copy, and most copies bring what is there already.
        there if there == get(to, path) => {}
        Some(there) => set(to, path, there.clone()),
        None => {
            remove(to, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_and_writes_by_path() {
        let mut value = json!({"a": {"b": 1}});
        assert_eq!(int(&value, &["a", "b"]), Some(1));
        assert!(!set_default(&mut value, &["a", "b"], 2));
        assert!(set_default(&mut value, &["x", "y"], "z"));
        assert_eq!(text(&value, &["x", "y"]), "z");
        assert_eq!(remove(&mut value, &["a", "b"]), Some(json!(1)));
        assert_eq!(value, json!({"a": {}, "x": {"y": "z"}}));
        set(&mut value, &["x", "y", "w"], 1);
        assert_eq!(
            text(&value, &["x", "y"]),
            "z",
            "a scalar on the way is left alone"
        );
    }
}
