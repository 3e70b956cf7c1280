//! Type, equality and display of values.

use crate::go;
use crate::schema::number::{compare, is_integer};
use crate::schema::outcome::quote;
use mainstay_yaml::{Map, Value};
use std::collections::BTreeMap;

/// Returns the first pair of equal items. Compares fingerprints, so that the cost is not quadratic for long
/// lists.
pub(super) fn duplicates(items: &[Value]) -> Option<(usize, usize)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    items.iter().enumerate().find_map(|(index, item)| {
        let known = seen.insert(fingerprint(item), index);
        known.map(|first| (first, index))
    })
}

pub(super) fn missing(map: &Map, names: &[String]) -> Vec<String> {
    names
        .iter()
        .filter(|name| !map.contains_key(*name))
        .cloned()
        .collect()
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value.json_kind() {
        "bool" => "boolean",
        other => other,
    }
}

pub(super) fn has_type(value: &Value, types: &[&str]) -> bool {
    types.contains(&type_of(value)) || (types.contains(&"integer") && is_integer(value))
}

/// Whether two values are equal. Numbers are compared regardless of their type.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Map(left), Value::Map(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.0 == right.0 && equal(left.1, right.1))
        }
        _ if left.as_f64().is_some() && right.as_f64().is_some() => compare(left, right).is_eq(),
        _ => left == right,
    }
}

/// Returns an upper bound of the number of comparisons in [`equal`].
pub(super) fn count_comparisons(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::List(left), Value::List(right)) if left.len() == right.len() => total_size(left.iter()),
        (Value::Map(left), Value::Map(right)) if left.len() == right.len() => total_size(left.values()),
        (Value::String(left), Value::String(right)) if left.len() == right.len() => 1 + left.len() / 64,
        _ => 1,
    }
}

/// Returns the total number of nodes of `values`.
pub(super) fn total_size<'v>(values: impl Iterator<Item = &'v Value>) -> usize {
    let nodes = |value: &Value| match value {
        Value::List(items) => total_size(items.iter()),
        Value::Map(map) => total_size(map.values()),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    };
    values.fold(1, |total, value| total.saturating_add(nodes(value)))
}

/// Returns a text that is identical for equal values only.
pub(super) fn fingerprint(value: &Value) -> String {
    match value {
        Value::List(items) => format!(
            "[{}]",
            items.iter().map(fingerprint).collect::<Vec<_>>().join(",")
        ),
        Value::Map(map) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{}:{}", mainstay_gostd::quote::quote(key), fingerprint(value))
            };
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        Value::String(text) => mainstay_gostd::quote::quote(text),
        Value::Null | Value::Bool(_) => go::print(value),
        number if is_integer(number) => number
            .as_i64()
            .map_or_else(|| go::print(number), |whole| whole.to_string()),
        number => go::print(number),
    }
}

pub(super) fn enum_text(allowed: &[Value]) -> String {
    let compound = |item: &Value| matches!(item, Value::List(_) | Value::Map(_));
    match allowed {
        _ if allowed.iter().any(compound) => "'enum' failed".into(),
        [one] => format!("value must be {}", display(one)),
        _ => {
            let texts: Vec<_> = allowed.iter().map(display).collect();
            format!("value must be one of {}", texts.join(", "))
        }
    }
}

/// Formats a value for a message.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::List(_) | Value::Map(_) => "value".into(),
        other => go::print(other),
    }
}
