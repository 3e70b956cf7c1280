//! Semantic equality of values: quantities are compared by amount and numbers by value. Within an atomic
//! value, absent equals empty, and server defaults are ignored.

use serde_json::Value;

use super::path::PathRef;
use super::{defaults, quantity};

/// Whether the value is null or an empty map or list.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Whether the value is the zero value of its type in Go.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => is_empty(value),
    }
}

/// Whether the server would treat both values as equal.
pub(super) fn is_same(wanted: &Value, live: &Value, at: PathRef<'_>) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(map)) => {
            let is_equal = |(key, value): (&String, &Value)| {
                map.get(key)
                    .map_or(is_zero(value), |live| is_same(value, live, at.field(key)))
            };
            let is_ignored = |(key, value): (&String, &Value)| {
                wanted.contains_key(key)
                    || is_empty(value)
                    || defaults::is_default(at.field(key), value, live)
            };
            wanted.iter().all(is_equal) && map.iter().all(is_ignored)
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| is_same(wanted, live, at))
        }
        (Value::Number(wanted), Value::Number(live)) => wanted == live || wanted.as_f64() == live.as_f64(),
        (Value::String(wanted), Value::String(live)) => wanted == live || quantity::is_same(wanted, live),
        (Value::Number(wanted), Value::String(live)) => quantity::is_same(&wanted.to_string(), live),
        _ => wanted == live,
    }
}
