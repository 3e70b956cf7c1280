//! Removes a set of paths from a value. A map or list that becomes empty is replaced by null.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Returns the value without the paths in `paths`.
pub(super) fn remove(kind: Ref<'_>, value: &Value, paths: &Set) -> Value {
    if paths.is_empty() {
        return value.clone();
    }
    match remove_from_value(kind, value, paths) {
        Value::Null if value.is_object() => Value::Object(Map::new()),
        remaining => remaining,
    }
}

fn remove_from_value(kind: Ref<'_>, value: &Value, paths: &Set) -> Value {
    let atom = kind.resolve();
    match (atom.form(Some(value)), &atom.map, &atom.list) {
        (Form::Scalar, _, _) => value.clone(),
        (Form::Map, Some(map), _) if !map.atomic => remove_from_map(map, value, paths),
        (Form::List, _, Some(list)) if !matches!(list.rule, Rule::Atomic) => {
            remove_from_list(list, value, paths)
        }
        _ => Value::Null,
    }
}

fn remove_from_map(map: &MapOf<'_>, value: &Value, paths: &Set) -> Value {
    let mut remaining = Map::new();
    for (name, child) in value.as_object().into_iter().flatten() {
        let element = Element::field(name);
        if paths.has(&element) {
            continue;
        }
        let child = match paths.children_of(&element) {
            Some(children) => remove_from_value(map.child_type(name), child, children),
            None => child.clone(),
        };
        remaining.insert(name.clone(), child);
    }
    if remaining.is_empty() {
        return Value::Null;
    }
    Value::Object(remaining)
}

fn remove_from_list(list: &List<'_>, value: &Value, paths: &Set) -> Value {
    let mut remaining = Vec::new();
    for item in value.as_array().into_iter().flatten() {
        let Ok(element) = list.path_element(item) else {
            remaining.push(item.clone());
            continue;
        };
        if paths.has(&element) {
            continue;
        }
        remaining.push(match paths.children_of(&element) {
            Some(children) => remove_from_value(list.element, item, children),
            None => item.clone(),
        });
    }
    if remaining.is_empty() {
        return Value::Null;
    }
    Value::Array(remaining)
}
