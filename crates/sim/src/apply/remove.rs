//! Removes a set of paths from a value. Emptied values become null.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Returns the value without the paths in `gone`.
pub(super) fn remove(kind: Ref<'_>, value: &Value, gone: &Set) -> Value {
    if gone.is_empty() {
        return value.clone();
    }
    match walk(kind, value, gone) {
        Value::Null if value.is_object() => Value::Object(Map::new()),
        left => left,
    }
}

fn walk(kind: Ref<'_>, value: &Value, gone: &Set) -> Value {
    let atom = kind.resolve();
    match (atom.form(Some(value)), &atom.map, &atom.list) {
        (Form::Scalar, _, _) => value.clone(),
        (Form::Map, Some(map), _) if !map.whole => remove_from_map(map, value, gone),
        (Form::List, _, Some(list)) if !matches!(list.rule, Rule::Whole) => {
            remove_from_list(list, value, gone)
        }
        _ => Value::Null,
    }
}

fn remove_from_map(map: &MapOf<'_>, value: &Value, gone: &Set) -> Value {
    let mut left = Map::new();
    for (name, child) in value.as_object().into_iter().flatten() {
        let element = Element::field(name);
        if gone.has(&element) {
            continue;
        }
        let child = match gone.below(&element) {
            Some(below) => walk(map.child(name), child, below),
            None => child.clone(),
        };
        left.insert(name.clone(), child);
    }
    if left.is_empty() {
        return Value::Null;
    }
    Value::Object(left)
}

fn remove_from_list(list: &List<'_>, value: &Value, gone: &Set) -> Value {
    let mut left = Vec::new();
    for item in value.as_array().into_iter().flatten() {
        let Ok(element) = list.path_element(item) else {
            left.push(item.clone());
            continue;
        };
        if gone.has(&element) {
            continue;
        }
        left.push(match gone.below(&element) {
            Some(below) => walk(list.element, item, below),
            None => item.clone(),
        });
    }
    if left.is_empty() {
        return Value::Null;
    }
    Value::Array(left)
}
