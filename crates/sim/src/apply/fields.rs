//! Which fields a value has: takes a typed value, gives the set of its paths.

use std::collections::BTreeSet;

use serde_json::Value;

use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Every leaf and every item of a value.
pub(super) fn fields_of(kind: Ref<'_>, value: &Value) -> Set {
    walk(kind, value).below
}

/// What a value owns: itself as a whole, or what lies below.
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
        (Form::Map, Some(map), _) => of_map(map, value),
        (Form::List, _, Some(list)) => of_list(list, value),
        _ => Owned::default(),
    }
}

fn of_map(map: &MapOf<'_>, value: &Value) -> Owned {
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

fn of_list(list: &List<'_>, value: &Value) -> Owned {
    let mut owned = Owned::default();
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    let named: Vec<_> = items
        .iter()
        .filter_map(|item| Some((list.element_of(item).ok()?, item)))
        .collect();
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (element, _) in &named {
        if !seen.insert(element) {
            twice.insert(element);
        }
    }
    for (element, item) in &named {
        // Items that share their keys are owned as one.
        let below = if twice.contains(element) {
            Set::default()
        } else {
            walk(list.element, item).below
        };
        owned.below.add(element.clone(), true, below);
    }
    owned
}
