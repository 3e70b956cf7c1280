//! Cells that the tables of several kinds have in common.

use serde_json::Value;

use super::age;
use crate::state::State;
use crate::tree;

pub(super) fn name(value: &Value) -> Value {
    text(value, &["metadata", "name"])
}

/// Returns the age of an object.
pub(super) fn created(value: &Value, state: &State) -> Value {
    age(tree::text(value, &["metadata", "creationTimestamp"]), state.now()).into()
}

pub(super) fn name_and_age(value: &Value, state: &State) -> Vec<Value> {
    vec![name(value), created(value, state)]
}

pub(super) fn text(value: &Value, path: &[&str]) -> Value {
    tree::text(value, path).into()
}

/// Returns the text at `path`, or `absent` if there is none.
pub(super) fn text_or(value: &Value, path: &[&str], absent: &str) -> Value {
    match tree::text(value, path) {
        "" => absent.into(),
        there => there.into(),
    }
}

/// Returns `text`, or `<none>` if it is empty.
pub(super) fn or_none(text: impl AsRef<str> + Into<Value>) -> Value {
    if text.as_ref().is_empty() {
        "<none>".into()
    } else {
        text.into()
    }
}

/// Returns the number at `path`, or zero if there is none.
pub(super) fn number(value: &Value, path: &[&str]) -> i64 {
    tree::int(value, path).unwrap_or(0)
}

/// Returns the status of the condition `kind`, or an empty text if there is none.
pub(super) fn condition<'a>(value: &'a Value, kind: &str) -> &'a str {
    let all = tree::list(value, &["status", "conditions"]);
    all.iter()
        .find(|one| tree::text(one, &["type"]) == kind)
        .map_or("", |one| tree::text(one, &["status"]))
}

/// Formats labels as `key=value`, separated by commas.
pub(super) fn labels(map: Option<&Value>) -> Value {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    or_none(
        pairs
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
            .collect::<Vec<_>>()
            .join(","),
    )
}

/// Returns the names and the images of containers.
pub(super) fn containers(list: &[Value]) -> [Value; 2] {
    let join = |key: &str| {
        let all: Vec<&str> = list.iter().map(|one| tree::text(one, &[key])).collect();
        all.join(",").into()
    };
    [join("name"), join("image")]
}

/// Joins the texts of the list at `path`.
pub(super) fn join(value: &Value, path: &[&str]) -> String {
    let all: Vec<&str> = tree::list(value, path).iter().filter_map(Value::as_str).collect();
    all.join(",")
}

/// Formats the first `max` items of a list, and the number of the remaining items.
pub(super) fn format_list(list: &[String], max: usize, separator: &str) -> String {
    let shown = list.iter().take(max).cloned().collect::<Vec<_>>().join(separator);
    match list.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}
