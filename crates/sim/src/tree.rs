//! Helpers to read and modify JSON trees by path. This module does not depend on Kubernetes.

use serde_json::{Map, Value};

/// Returns the value at `path`, which consists of map keys.
#[must_use]
pub fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, key| at.as_object()?.get(*key))
}

/// Returns the string at `path`, or an empty string.
#[must_use]
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    get(value, path).and_then(Value::as_str).unwrap_or("")
}

/// Returns the integer at `path`.
#[must_use]
pub fn int(value: &Value, path: &[&str]) -> Option<i64> {
    get(value, path).and_then(Value::as_i64)
}

/// Returns whether the value at `path` is `true`.
#[must_use]
pub fn flag(value: &Value, path: &[&str]) -> bool {
    get(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns the list at `path`, or an empty list.
#[must_use]
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the map at `path`.
#[must_use]
pub fn map<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    get(value, path).and_then(Value::as_object)
}

/// Returns the value at `path` for modification.
pub fn get_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter()
        .try_fold(value, |at, key| at.as_object_mut()?.get_mut(*key))
}

/// Returns the list at `path` for modification.
pub fn list_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    get_mut(value, path).and_then(Value::as_array_mut)
}

/// Returns the map at `path`, creating missing and null maps. Returns `None` if the path contains a value of
/// another type.
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

/// Sets the value at `path`, creating maps as needed. Does nothing if the path contains a value of another
/// type.
pub fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, front)) = path.split_last()
        && let Some(map) = map_mut(value, front)
    {
        map.insert((*last).to_owned(), new.into());
    }
}

/// Sets the value at `path` if it is missing or null. Returns whether the value was set.
pub fn set_default(value: &mut Value, path: &[&str], new: impl Into<Value>) -> bool {
    if get(value, path).is_some_and(|value| !value.is_null()) {
        return false;
    }
    set(value, path, new);
    true
}

/// Sets the value at `path` like [`set_default`], and also replaces an empty string, Go's zero value.
pub fn set_default_text(value: &mut Value, path: &[&str], new: &str) -> bool {
    if !text(value, path).is_empty() {
        return false;
    }
    set(value, path, new);
    true
}

/// Removes the value at `path`.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, front) = path.split_last()?;
    get_mut(value, front)?.as_object_mut()?.remove(*last)
}

/// Copies the value at `path` from `from` to `to`, or removes it from `to` if `from` does not contain it.
pub fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match get(from, path) {
        // Comparing is much faster than copying, and most values are already equal.
        source if source == get(to, path) => {}
        Some(source) => set(to, path, source.clone()),
        None => {
            remove(to, path);
        }
    }
}

/// Returns the length of the value as JSON text, or `None` if it exceeds `max`.
#[must_use]
pub fn json_size(value: &Value, max: usize) -> Option<usize> {
    let mut counter = Counter { left: max };
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(max - counter.left)
}

/// Writer that counts bytes instead of storing them.
struct Counter {
    left: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns an upper bound of the length of the value as JSON text. This is much faster than [`json_size`].
#[must_use]
pub fn max_json_size(value: &Value) -> usize {
    // An escaped character, such as `\u0000`, has six bytes.
    let quoted = |text: &str| 6 * text.len() + 2;
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 32,
        Value::String(text) => quoted(text),
        Value::Array(items) => 2 + items.iter().map(|item| max_json_size(item) + 1).sum::<usize>(),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| quoted(key) + max_json_size(value) + 2;
            2 + map.iter().map(entry).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_equal_the_length_of_the_json_text() {
        let value = json!({"a\n": [null, true, 1.5, -20, "x\u{1}", {}], "b": []});
        let size = value.to_string().len();
        assert_eq!(json_size(&value, size), Some(size));
        assert_eq!(json_size(&value, size - 1), None);
        assert!(max_json_size(&value) >= size);
    }

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
            "a scalar within the path is not replaced"
        );
    }
}
