//! Coming from `kubectl apply` to `kubectl apply --server-side`: takes the live object's `last-applied-configuration`, gives the fields
//! over which `kubectl` may not conflict with its own past; keeps the annotation in step.

use serde_json::Value;

use super::compare::compare;
use super::fields::fields_of;
use super::set::Set;
use super::types::Ref;
use crate::resource::Resource;
use crate::state::State;
use crate::tree;

const ANNOTATION: [&str; 3] = [
    "metadata",
    "annotations",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Annotations take at most this many bytes together.
const ANNOTATIONS: usize = 256 * 1024;

/// Fields that the live object has as the annotation says.
pub(super) fn unchanged_since(state: &State, resource: &Resource, live: &Value) -> Option<Set> {
    let last: Value = serde_json::from_str(tree::text(live, &ANNOTATION)).ok()?;
    if tree::text(&last, &["apiVersion"]) != resource.api_version() {
        return None;
    }
    let kind = Ref::of(state.schema, resource);
    if super::check::check(kind, &last).is_some() {
        return None;
    }
    let found = compare(kind, &last, live);
    let set = fields_of(kind, &last)
        .difference(&found.changed)
        .difference(&found.added)
        .difference(&found.removed);
    Some(set)
}

/// Puts what was applied into the annotation, if there is one.
pub(super) fn keep_in_step(object: &mut Value, applied: &Value) {
    if tree::text(object, &ANNOTATION).is_empty() {
        return;
    }
    let mut config = applied.clone();
    tree::remove(&mut config, &ANNOTATION);
    tree::set(object, &ANNOTATION, format!("{config}\n"));
    let total: usize = tree::map(object, &["metadata", "annotations"])
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if total > ANNOTATIONS {
        tree::remove(object, &ANNOTATION);
    }
}
