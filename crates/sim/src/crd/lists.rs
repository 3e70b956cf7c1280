//! Finds duplicates in lists that are sets or maps.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::schema::{Additional, List, Node};
use super::show;
use crate::field::{ErrorType, FieldErrors, Path};

/// Reports every item that repeats an earlier one, by the type of the list.
pub(crate) fn validate(value: &Value, schema: &Node, path: &Path, errors: &mut FieldErrors) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => validate(below, node, &path.child(key), errors),
                    (None, Some(Additional::Like(node))) => validate(below, node, &path.key(key), errors),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                List::Atomic => {}
                List::Set => repeated(items, errors, path, &|item| show::value(item)),
                List::Map(keys) => by_keys(items, keys, path, errors),
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

fn by_keys(items: &[Value], keys: &[String], path: &Path, errors: &mut FieldErrors) {
    if let Some((at, odd)) = items
        .iter()
        .enumerate()
        .find(|(_, item)| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        errors.push_shown(
            ErrorType::Invalid,
            &path.index(at),
            Some(show::value(odd)),
            detail,
        );
        return;
    }
    let named: Vec<Value> = items
        .iter()
        .map(|item| {
            let found = keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(found.collect::<Map<_, _>>())
        })
        .collect();
    repeated(&named, errors, path, &|keys| show::json(keys));
}

/// Reports the second of equal items once, however often it is repeated.
fn repeated(items: &[Value], errors: &mut FieldErrors, path: &Path, shown: &dyn Fn(&Value) -> String) {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push_shown(ErrorType::Duplicate, &path.index(at), Some(shown(item)), "");
        }
    }
}

/// Returns the first item that equals an earlier one.
pub(crate) fn first_repeated(items: &[Value]) -> Option<usize> {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    items.iter().position(|item| !seen.insert(item.to_string()))
}
