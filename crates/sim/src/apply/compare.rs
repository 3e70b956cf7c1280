//! Comparison of two values of one type: added, changed and removed paths.

use serde_json::{Map, Value};

use super::element::{Element, equal};
use super::set::Set;
use super::types::{Form, List, MapOf, Ref, Rule};

/// Paths in which two values differ.
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

    /// Adds the differences of `element` and of its children.
    fn add(&mut self, element: &Element, found: NodeDifference) {
        let children = found.children;
        for (set, member, children) in [
            (&mut self.added, found.added, children.added),
            (&mut self.changed, found.changed, children.changed),
            (&mut self.removed, found.removed, children.removed),
        ] {
            if member || !children.is_empty() {
                set.add(element.clone(), member, children);
            }
        }
    }
}

/// Compares two values of type `kind`.
pub(super) fn compare(kind: Ref<'_>, old: &Value, new: &Value) -> Difference {
    compare_values(kind, Some(old), Some(new)).children
}

/// Differences of a value and of its children.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent flags")]
struct NodeDifference {
    added: bool,
    changed: bool,
    removed: bool,
    /// Whether the value was compared as a whole.
    is_leaf: bool,
    children: Difference,
}

impl NodeDifference {
    /// Compares the value as a whole, at most once.
    fn compare_whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if self.is_leaf {
            return;
        }
        self.is_leaf = true;
        match (old, new) {
            (None, _) => self.added = true,
            (_, None) => self.removed = true,
            (Some(old), Some(new)) => self.changed |= !equal(old, new),
        }
    }
}

fn compare_values(kind: Ref<'_>, old: Option<&Value>, new: Option<&Value>) -> NodeDifference {
    let atom = kind.resolve();
    let mut found = NodeDifference::default();
    let compare_as = |found: &mut NodeDifference, form: Form| match (form, &atom.map, &atom.list) {
        (Form::Map, Some(map), _) => compare_maps(map, old, new, found),
        (Form::List, _, Some(list)) => compare_lists(list, old, new, found),
        _ => found.compare_whole(old, new),
    };
    let (before, after) = (atom.form(old), atom.form(new));
    match (old, new) {
        (_, None) => compare_as(&mut found, before),
        (None, _) => compare_as(&mut found, after),
        _ if before == after => compare_as(&mut found, after),
        _ => {
            compare_as(&mut found, before);
            found.is_leaf = false;
            compare_as(&mut found, after);
        }
    }
    if !found.is_leaf {
        found.added |= old.is_none();
        found.removed |= old.is_some() && new.is_none();
    }
    found
}

fn compare_maps(map: &MapOf<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut NodeDifference) {
    let before = old.and_then(Value::as_object).filter(|map| !map.is_empty());
    let after = new.and_then(Value::as_object).filter(|map| !map.is_empty());
    if map.atomic || (before.is_none() && after.is_none()) {
        found.compare_whole(old, new);
        return;
    }
    let empty = Map::new();
    let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
    for (name, one) in before {
        let other = after.get(name);
        if other == Some(one) {
            continue;
        }
        let (element, kind) = map.element_and_type(name);
        found
            .children
            .add(&element, compare_values(kind, Some(one), other));
    }
    for (name, other) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let (element, kind) = map.element_and_type(name);
        found
            .children
            .add(&element, compare_values(kind, None, Some(other)));
    }
}

fn compare_lists(list: &List<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut NodeDifference) {
    let has_items = |value: Option<&Value>| {
        value
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    if matches!(list.rule, Rule::Atomic) || (!has_items(old) && !has_items(new)) {
        found.compare_whole(old, new);
        return;
    }
    let (before, after) = (keyed_items(list, old), keyed_items(list, new));
    let (mut before, mut after) = (before.as_slice(), after.as_slice());
    loop {
        let next = match (before.first(), after.first()) {
            (None, None) => return,
            (Some((one, _)), None) | (None, Some((one, _))) => one,
            (Some((one, _)), Some((other, _))) => one.min(other),
        };
        let element = next.clone();
        let (one, other);
        (one, before) = split_leading(before, &element);
        (other, after) = split_leading(after, &element);
        compare_items(list, &element, one, other, found);
    }
}

/// A list item with its path element.
type KeyedItem<'v> = (Element, &'v Value);

/// Compares the items with the path element `element`: usually one on each side, more if keys are duplicated.
fn compare_items(
    list: &List<'_>,
    element: &Element,
    one: &[KeyedItem<'_>],
    other: &[KeyedItem<'_>],
    found: &mut NodeDifference,
) {
    match (one.len(), other.len()) {
        (..=1, ..=1) => {
            let inner = compare_values(list.element, first_value(one), first_value(other));
            found.children.add(element, inner);
        }
        (2.., 2..) => {
            let unchanged = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| equal(a.1, b.1));
            if !unchanged {
                found.children.changed.insert(element.clone());
            }
        }
        (2.., rest) => {
            if rest > 0 {
                found
                    .children
                    .add(element, compare_values(list.element, None, first_value(other)));
            }
            found.children.removed.insert(element.clone());
        }
        (rest, _) => {
            if rest > 0 {
                found
                    .children
                    .add(element, compare_values(list.element, first_value(one), None));
            }
            found.children.added.insert(element.clone());
        }
    }
}

fn first_value<'v>(items: &[KeyedItem<'v>]) -> Option<&'v Value> {
    items.first().map(|(_, item)| *item)
}

/// Returns the items of a list with their path elements, sorted by path element. Path elements may be
/// duplicated.
fn keyed_items<'v>(list: &List<'_>, value: Option<&'v Value>) -> Vec<KeyedItem<'v>> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    let mut all: Vec<KeyedItem<'_>> = items
        .filter_map(|item| Some((list.path_element(item).ok()?, item)))
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Splits off the leading items with the path element `element`.
fn split_leading<'s, 'v>(
    items: &'s [KeyedItem<'v>],
    element: &Element,
) -> (&'s [KeyedItem<'v>], &'s [KeyedItem<'v>]) {
    items.split_at(items.partition_point(|(name, _)| name <= element))
}
