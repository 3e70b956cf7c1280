//! Reconciles owned fields with a changed schema: if a field has become atomic, its children are replaced
//! by the field itself.

use super::element::Element;
use super::set::Set;
use super::types::{Atom, Ref, Rule};

/// Returns the set with the paths that correspond to the current type.
pub(super) fn reconcile(kind: Ref<'_>, set: &Set) -> Set {
    let atom = kind.resolve();
    if atom.map.as_ref().is_some_and(super::types::MapOf::is_free_form) {
        return set.clone();
    }
    let mut out = Set::default();
    for element in set.elements() {
        let member = set.has(element);
        let children = set.children_of(element);
        let inner = child_type(&atom, element);
        if has_become_atomic(&inner.resolve(), member, children) {
            out.insert(element.clone());
            continue;
        }
        let children = children.map(|children| reconcile(inner, children));
        out.add(element.clone(), member, children.unwrap_or_default());
    }
    out
}

fn child_type<'a>(atom: &Atom<'a>, element: &Element) -> Ref<'a> {
    match (element, &atom.map, &atom.list) {
        (Element::Field(name), Some(map), _) => map.child_type(name),
        (_, None, Some(list)) => list.element,
        _ => Ref::Nothing,
    }
}

/// Returns whether the set has children of a value that is now atomic.
fn has_become_atomic(atom: &Atom<'_>, member: bool, children: Option<&Set>) -> bool {
    if member && children.is_none() {
        return false;
    }
    match (&atom.map, atom.scalar, &atom.list) {
        (Some(map), _, _) => map.atomic && !map.is_free_form() && children.is_some(),
        (None, None, Some(list)) => matches!(list.rule, Rule::Atomic),
        _ => false,
    }
}
