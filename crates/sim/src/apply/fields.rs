//! Returns the set of field paths in a typed value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Returns the paths of all leaves and items of a value.
pub(super) fn fields_of(kind: Ref<'_>, value: &Value) -> Set {
    walk(kind, value).below
}

/// The paths of a value: the value as a whole, or its children.
#[derive(Default)]
struct Owned {
    itself: bool,
    below: Set,
}

fn whole() -> Owned {
    Owned {
        itself: true,
        ..Owned::default()
    }
}

fn walk(kind: Ref<'_>, value: &Value) -> Owned {
    let atom = kind.resolve();
    match (atom.form(Some(value)), &atom.map, &atom.list) {
        (Form::Scalar, _, _) => whole(),
        (Form::Map, Some(map), _) if map.whole => whole(),
        (Form::List, _, Some(list)) if matches!(list.rule, Rule::Whole) => whole(),
        (Form::Map, Some(map), _) => map_fields(map, value),
        (Form::List, _, Some(list)) => list_fields(list, value),
        _ => Owned::default(),
    }
}

fn map_fields(map: &MapOf<'_>, value: &Value) -> Owned {
    let mut owned = Owned::default();
    for (name, child) in value.as_object().into_iter().flatten() {
        let (element, kind) = map.step(name);
        let inner = walk(kind, child);
        let hollow = match child {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let member = inner.itself || hollow || map.field(name).is_none();
        owned.below.add(element, member, inner.below);
    }
    owned
}

fn list_fields(list: &List<'_>, value: &Value) -> Owned {
    let mut owned = Owned::default();
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    let named: Vec<_> = items
        .iter()
        .filter_map(|item| Some((list.path_element(item).ok()?, item)))
        .collect();
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (element, _) in &named {
        if !seen.insert(element) {
            twice.insert(element);
        }
    }
    for (element, item) in &named {
        // Items with duplicate keys are owned as one.
        let below = if twice.contains(element) {
            Set::default()
        } else {
            walk(list.element, item).below
        };
        owned.below.add(element.clone(), true, below);
    }
    owned
}
