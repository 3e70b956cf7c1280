//! Conversion between parsed trees, which own their values, and template values, whose maps alias as in Go.

use std::collections::BTreeMap;

use mainstay_template::{Map, MapType, Str, UintKind, Value};
use mainstay_yaml::{Map as PlainMap, Value as Plain};

/// Returns a deep copy that templates can share and modify.
pub(crate) fn to_template_value(value: &Plain) -> Value {
    match value {
        Plain::Null => Value::Nil,
        Plain::Bool(value) => Value::Bool(*value),
        Plain::Int(value) => Value::int64(*value),
        Plain::Uint(value) => Value::Uint(*value, UintKind::Uint64),
        Plain::Float(value) => Value::Float(*value),
        Plain::String(text) => Value::string(text.as_str()),
        Plain::List(items) => Value::list(items.iter().map(to_template_value).collect()),
        Plain::Map(map) => Value::Map(to_template_map(map)),
    }
}

/// Returns a deep copy of a map that templates can share and modify.
pub(crate) fn to_template_map(map: &PlainMap) -> Map {
    let entries = map
        .iter()
        .map(|(key, value)| (Str::from(key.as_str()), to_template_value(value)));
    Map::new(MapType::Any, entries.collect())
}

/// Returns a deep copy that is not shared.
pub(crate) fn to_plain(value: &Value) -> Plain {
    match value {
        Value::Bool(value) => Plain::Bool(*value),
        Value::Int(value, _) => Plain::Int(*value),
        Value::Uint(value, _) => Plain::Uint(*value),
        Value::Float(value) => Plain::Float(*value),
        Value::String(text) => Plain::String(text.to_str_lossy().into_owned()),
        Value::List(list) => Plain::List(list.items().iter().map(to_plain).collect()),
        Value::Map(map) => Plain::Map(to_plain_map(map)),
        // Values come from YAML, JSON and flags, which cannot contain these.
        Value::Nil | Value::Complex(..) | Value::Object(_) => Plain::Null,
    }
}

/// Returns a deep copy of a map that is not shared.
pub(crate) fn to_plain_map(map: &Map) -> PlainMap {
    map.entries()
        .iter()
        .map(|(key, value)| (key.to_str_lossy().into_owned(), to_plain(value)))
        .collect()
}

/// Returns a deep copy that shares no maps with the original, and contains no map twice.
pub(crate) fn copy_map(map: &Map) -> Map {
    let entries = map.entries();
    Map::new(
        MapType::Any,
        entries
            .iter()
            .map(|(key, value)| (key.clone(), copy(value)))
            .collect(),
    )
}

fn copy(value: &Value) -> Value {
    match value {
        Value::List(list) => Value::list(list.items().iter().map(copy).collect()),
        Value::Map(map) => Value::Map(copy_map(map)),
        other => other.clone(),
    }
}

/// Returns an empty map.
pub(crate) fn empty() -> Map {
    Map::new(MapType::Any, BTreeMap::new())
}

/// Returns a new map with the same entries. Nested tables remain shared.
pub(crate) fn copy_shallow(map: &Map) -> Map {
    Map::new(MapType::Any, map.entries().clone())
}

/// Returns the value of `key`, or `None` if it is not a table.
pub(crate) fn table(map: &Map, key: &str) -> Option<Map> {
    match map.get(key.as_bytes()) {
        Some(Value::Map(table)) => Some(table),
        _ => None,
    }
}

/// Returns a copy of the entries, so that the map can be modified during iteration.
pub(crate) fn snapshot(map: &Map) -> Vec<(Str, Value)> {
    map.entries()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
