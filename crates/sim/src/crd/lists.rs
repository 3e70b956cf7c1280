//! Finds duplicates in lists of type `set` or `map`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::schema::{Additional, List, Node};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

/// Reports duplicate items of sets and duplicate keys of maps in a value.
pub(crate) fn validate(value: &Value, schema: &Node, path: &Path, errors: &mut FieldErrors) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => validate(child, node, &path.child(key), errors),
                    (None, Some(Additional::Schema(node))) => validate(child, node, &path.key(key), errors),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                List::Atomic => {}
                List::Set => report_duplicates(items, errors, path, &|item| show::value(item)),
                List::Map(keys) => report_duplicate_keys(items, keys, path, errors),
            }
            if let Some(node) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    validate(item, node, &path.index(at), errors);
                }
            }
        }
        _ => {}
    }
}

fn report_duplicate_keys(items: &[Value], keys: &[String], path: &Path, errors: &mut FieldErrors) {
    if let Some((at, item)) = items
        .iter()
        .enumerate()
        .find(|(_, item)| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        errors.push_shown(
            ErrorType::Invalid,
            &path.index(at),
            Some(show::value(item)),
            detail,
        );
        return;
    }
    let item_keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let found = keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(found.collect::<Map<_, _>>())
        })
        .collect();
    report_duplicates(&item_keys, errors, path, &|keys| show::json(keys));
}

/// Reports the second of several equal items. Further equal items are not reported.
fn report_duplicates(
    items: &[Value],
    errors: &mut FieldErrors,
    path: &Path,
    format: &dyn Fn(&Value) -> String,
) {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let count = seen.entry(item.to_string()).or_default();
        *count += 1;
        if *count == 2 {
            errors.push_shown(ErrorType::Duplicate, &path.index(at), Some(format(item)), "");
        }
    }
}

/// Returns the position of the first item that equals an earlier one.
pub(crate) fn first_duplicate(items: &[Value]) -> Option<usize> {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    items.iter().position(|item| !seen.insert(item.to_string()))
}
