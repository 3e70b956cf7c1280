//! What differs between two values of one type: takes an old and a new one, gives the paths that were added, changed and removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::{Element, same};
use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// The paths in which two values differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    pub added: Set,
    pub changed: Set,
    pub removed: Set,
}

impl Difference {
    /// Without what `reset` names, and everything below it.
    pub(super) fn without(self, reset: &Set) -> Self {
        if reset.is_empty() {
            return self;
        }
        Self {
            added: self.added.difference_below(reset),
            changed: self.changed.difference_below(reset),
            removed: self.removed.difference_below(reset),
        }
    }

    /// Takes over what was found below `element`, and what happened to the element itself.
    fn take(&mut self, element: &Element, found: Found) {
        self.added.nest(element, found.below.added);
        self.changed.nest(element, found.below.changed);
        self.removed.nest(element, found.below.removed);
        if found.added {
            self.added.insert(element.clone());
        }
        if found.changed {
            self.changed.insert(element.clone());
        }
        if found.removed {
            self.removed.insert(element.clone());
        }
    }
}

/// Compares two values.
pub(super) fn compare(kind: Ref<'_>, old: &Value, new: &Value) -> Difference {
    walk(kind, Some(old), Some(new)).below
}

/// What happened to a value, and below it.
#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what is found may be of several sorts"
)]
struct Found {
    added: bool,
    changed: bool,
    removed: bool,
    /// It was compared as a whole.
    leaf: bool,
    below: Difference,
}

impl Found {
    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if self.leaf {
            return;
        }
        self.leaf = true;
        match (old, new) {
            (None, _) => self.added = true,
            (_, None) => self.removed = true,
            (Some(old), Some(new)) => self.changed |= !same(old, new),
        }
    }
}

fn walk(kind: Ref<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    let atom = kind.resolve();
    let mut found = Found::default();
    let read = |found: &mut Found, form: Form| match (form, &atom.map, &atom.list) {
        (Form::Map, Some(map), _) => maps(map, old, new, found),
        (Form::List, _, Some(list)) => lists(list, old, new, found),
        _ => found.leaf(old, new),
    };
    let (before, after) = (atom.form(old), atom.form(new));
    match (old, new) {
        (_, None) => read(&mut found, before),
        (None, _) => read(&mut found, after),
        _ if before == after => read(&mut found, after),
        _ => {
            read(&mut found, before);
            found.leaf = false;
            read(&mut found, after);
        }
    }
    if !found.leaf {
        found.added |= old.is_none();
        found.removed |= old.is_some() && new.is_none();
    }
    found
}

fn maps(map: &MapOf<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut Found) {
    let before = old.and_then(Value::as_object).filter(|map| !map.is_empty());
    let after = new.and_then(Value::as_object).filter(|map| !map.is_empty());
    if map.whole || (before.is_none() && after.is_none()) {
        found.leaf(old, new);
        return;
    }
    let nothing = Map::new();
    let (before, after) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
    for (name, one) in before {
        let other = after.get(name);
        if other == Some(one) {
            continue;
        }
        let inner = walk(map.child(name), Some(one), other);
        found.below.take(&Element::field(name), inner);
    }
    for (name, other) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let inner = walk(map.child(name), None, Some(other));
        found.below.take(&Element::field(name), inner);
    }
}

fn lists(list: &List<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut Found) {
    let items = |value: Option<&Value>| {
        value
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    if matches!(list.rule, Rule::Whole) || (!items(old) && !items(new)) {
        found.leaf(old, new);
        return;
    }
    let (before, after) = (by_element(list, old), by_element(list, new));
    let all: BTreeSet<&Element> = before.keys().chain(after.keys()).collect();
    for element in all {
        let one = before.get(element).map_or(&[][..], Vec::as_slice);
        let other = after.get(element).map_or(&[][..], Vec::as_slice);
        let pair =
            |one: Option<&&Value>, other: Option<&&Value>| walk(list.element, one.copied(), other.copied());
        match (one.len(), other.len()) {
            (..=1, ..=1) => found.below.take(element, pair(one.first(), other.first())),
            (2.., 2..) => {
                let equal = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b));
                if !equal {
                    found.below.changed.insert(element.clone());
                }
            }
            (2.., rest) => {
                if rest > 0 {
                    found.below.take(element, pair(None, other.first()));
                }
                found.below.removed.insert(element.clone());
            }
            (rest, _) => {
                if rest > 0 {
                    found.below.take(element, pair(one.first(), None));
                }
                found.below.added.insert(element.clone());
            }
        }
    }
}

/// The items of a list by what they are called in paths; more than one where keys are shared.
fn by_element<'v>(list: &List<'_>, value: Option<&'v Value>) -> BTreeMap<Element, Vec<&'v Value>> {
    let mut all: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in value.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(element) = list.element_of(item) {
            all.entry(element).or_default().push(item);
        }
    }
    all
}
