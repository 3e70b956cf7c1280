//! The set of field paths in a typed value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Returns the paths of all leaves and list items of a value.
pub(super) fn fields_of(kind: Ref<'_>, value: &Value) -> Set {
    owned_paths(kind, value).children
}

/// Paths of a value: the value itself if it is owned as a whole, otherwise its children.
#[derive(Default)]
struct OwnedPaths {
    is_member: bool,
    children: Set,
}

fn owned_as_whole() -> OwnedPaths {
    OwnedPaths {
        is_member: true,
        ..OwnedPaths::default()
    }
}

fn owned_paths(kind: Ref<'_>, value: &Value) -> OwnedPaths {
    let atom = kind.resolve();
    match (atom.form(Some(value)), &atom.map, &atom.list) {
        (Form::Scalar, _, _) => owned_as_whole(),
        (Form::Map, Some(map), _) if map.atomic => owned_as_whole(),
        (Form::List, _, Some(list)) if matches!(list.rule, Rule::Atomic) => owned_as_whole(),
        (Form::Map, Some(map), _) => map_fields(map, value),
        (Form::List, _, Some(list)) => list_fields(list, value),
        _ => OwnedPaths::default(),
    }
}

fn map_fields(map: &MapOf<'_>, value: &Value) -> OwnedPaths {
    let mut owned = OwnedPaths::default();
    for (name, child) in value.as_object().into_iter().flatten() {
        let (element, kind) = map.element_and_type(name);
        let inner = owned_paths(kind, child);
        let is_empty_value = match child {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let member = inner.is_member || is_empty_value || map.field_type(name).is_none();
        owned.children.add(element, member, inner.children);
    }
    owned
}

fn list_fields(list: &List<'_>, value: &Value) -> OwnedPaths {
    let mut owned = OwnedPaths::default();
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    let keyed: Vec<_> = items
        .iter()
        .filter_map(|item| Some((list.path_element(item).ok()?, item)))
        .collect();
    let (mut seen, mut duplicates) = (BTreeSet::new(), BTreeSet::new());
    for (element, _) in &keyed {
        if !seen.insert(element) {
            duplicates.insert(element);
        }
    }
    for (element, item) in &keyed {
        // Items with duplicate keys are owned as a whole.
        let children = if duplicates.contains(element) {
            Set::default()
        } else {
            owned_paths(list.element, item).children
        };
        owned.children.add(element.clone(), true, children);
    }
    owned
}
