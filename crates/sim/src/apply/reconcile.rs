//! Reconciles owned fields with a changed schema: children of a field that has become atomic are replaced by
//! the field itself.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, Ref, Rule};

/// Returns the set according to the current type.
pub(super) fn reconcile(kind: Ref<'_>, set: &Set) -> Set {
    let atom = kind.resolve();
    if atom.map.as_ref().is_some_and(super::types::MapOf::is_free) {
        return set.clone();
    }
    let mut out = Set::default();
    for element in set.elements() {
        let member = set.has(element);
        let below = set.below(element);
        let inner = child(&atom, element);
        if becomes_whole(&inner.resolve(), member, below) {
            out.insert(element.clone());
            continue;
        }
        let below = below.map(|below| reconcile(inner, below));
        out.add(element.clone(), member, below.unwrap_or_default());
    }
    out
}

fn child<'a>(atom: &Atom<'a>, element: &Element) -> Ref<'a> {
    match (element, &atom.map, &atom.list) {
        (Element::Field(name), Some(map), _) => map.child(name),
        (_, None, Some(list)) => list.element,
        _ => Ref::Nothing,
    }
}

/// Returns whether the set has children of a value that is now atomic.
fn becomes_whole(atom: &Atom<'_>, member: bool, below: Option<&Set>) -> bool {
    if member && below.is_none() {
        return false;
    }
    match (&atom.map, atom.scalar, &atom.list) {
        (Some(map), _, _) => map.whole && !map.is_free() && below.is_some(),
        (None, None, Some(list)) => matches!(list.rule, Rule::Whole),
        _ => false,
    }
}
