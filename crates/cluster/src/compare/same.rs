//! Equality as the server sees it: quantities by amount, numbers by value, absent and empty equal inside an
//! atomic value, server defaults ignored.

use serde_json::Value;

use super::at::At;
use super::{defaults, quantity};

/// Whether the value is empty.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Whether this is Go's zero value.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => is_empty(value),
    }
}

/// Equal as the server sees it.
pub(super) fn is_same(wanted: &Value, live: &Value, at: At<'_>) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(map)) => {
            let is_there = |(key, value): (&String, &Value)| {
                map.get(key)
                    .map_or(is_zero(value), |live| is_same(value, live, at.field(key)))
            };
            let is_filled_in = |(key, value): (&String, &Value)| {
                wanted.contains_key(key)
                    || is_empty(value)
                    || defaults::is_default(at.field(key), value, live)
            };
            wanted.iter().all(is_there) && map.iter().all(is_filled_in)
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
