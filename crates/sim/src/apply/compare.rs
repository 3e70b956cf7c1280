//! Compares two values of one type: returns the added, changed and removed paths.

use serde_json::{Map, Value};

use super::element::{Element, equal};
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
    /// Removes the paths in `reset` and everything below them.
    pub(super) fn without(mut self, reset: &Set) -> Self {
        for set in [&mut self.added, &mut self.changed, &mut self.removed] {
            set.remove(reset, true);
        }
        self
    }

    /// Adds the differences below `element` and of the element itself.
    fn add(&mut self, element: &Element, found: Found) {
        let below = found.below;
        for (set, member, below) in [
            (&mut self.added, found.added, below.added),
            (&mut self.changed, found.changed, below.changed),
            (&mut self.removed, found.removed, below.removed),
        ] {
            if member || !below.is_empty() {
                set.add(element.clone(), member, below);
            }
        }
    }
}

/// Compares two values.
pub(super) fn compare(kind: Ref<'_>, old: &Value, new: &Value) -> Difference {
    walk(kind, Some(old), Some(new)).below
}

/// The differences of a value and of its children.
#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what is found may be of several sorts"
)]
struct Found {
    added: bool,
    changed: bool,
    removed: bool,
    /// The value was compared as a whole.
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
            (Some(old), Some(new)) => self.changed |= !equal(old, new),
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
        let (element, kind) = map.step(name);
        found.below.add(&element, walk(kind, Some(one), other));
    }
    for (name, other) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let (element, kind) = map.step(name);
        found.below.add(&element, walk(kind, None, Some(other)));
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
    let (before, after) = (named(list, old), named(list, new));
    let (mut before, mut after) = (before.as_slice(), after.as_slice());
    loop {
        let next = match (before.first(), after.first()) {
            (None, None) => return,
            (Some((one, _)), None) | (None, Some((one, _))) => one,
            (Some((one, _)), Some((other, _))) => one.min(other),
        };
        let element = next.clone();
        let (one, other);
        (one, before) = split(before, &element);
        (other, after) = split(after, &element);
        items_of(list, &element, one, other, found);
    }
}

/// An item and its path element.
type Named<'v> = (Element, &'v Value);

/// Compares the items with the path element `element`: usually one on each side, more if keys are duplicated.
fn items_of(list: &List<'_>, element: &Element, one: &[Named<'_>], other: &[Named<'_>], found: &mut Found) {
    match (one.len(), other.len()) {
        (..=1, ..=1) => {
            let inner = walk(list.element, first(one), first(other));
            found.below.add(element, inner);
        }
        (2.., 2..) => {
            let unchanged = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| equal(a.1, b.1));
            if !unchanged {
                found.below.changed.insert(element.clone());
            }
        }
        (2.., rest) => {
            if rest > 0 {
                found.below.add(element, walk(list.element, None, first(other)));
            }
            found.below.removed.insert(element.clone());
        }
        (rest, _) => {
            if rest > 0 {
                found.below.add(element, walk(list.element, first(one), None));
            }
            found.below.added.insert(element.clone());
        }
    }
}

fn first<'v>(items: &[Named<'v>]) -> Option<&'v Value> {
    items.first().map(|(_, item)| *item)
}

/// Returns the items of a list with their path elements, sorted; duplicates if keys are duplicated.
fn named<'v>(list: &List<'_>, value: Option<&'v Value>) -> Vec<Named<'v>> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    let mut all: Vec<Named<'_>> = items
        .filter_map(|item| Some((list.path_element(item).ok()?, item)))
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Splits off the leading items with the path element `element`.
fn split<'s, 'v>(items: &'s [Named<'v>], element: &Element) -> (&'s [Named<'v>], &'s [Named<'v>]) {
    items.split_at(items.partition_point(|(name, _)| name <= element))
}
