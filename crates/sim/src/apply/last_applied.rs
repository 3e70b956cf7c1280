//! Migration from `kubectl apply` to `kubectl apply --server-side`: returns the unchanged fields of the
//! annotation `last-applied-configuration`, which do not conflict with an apply by `kubectl`, and updates the
//! annotation.

use serde_json::Value;

use super::compare::compare;
use super::fields::fields_of;
use super::set::Set;
use super::types::Ref;
use crate::resource::Resource;
use crate::state::State;
use crate::tree;
use crate::validation::meta::{MAX_ANNOTATIONS_SIZE, annotations_size};

const ANNOTATION: [&str; 3] = [
    "metadata",
    "annotations",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Returns the fields that have the same value in the live object and in the annotation; `None` if the
/// annotation is missing, invalid or of a different API version.
pub(super) fn unchanged_since(state: &State, resource: &Resource, live: &Value) -> Option<Set> {
    let last: Value = serde_json::from_str(tree::text(live, &ANNOTATION)).ok()?;
    if tree::text(&last, &["apiVersion"]) != resource.api_version() {
        return None;
    }
    let kind = Ref::for_resource(state.schema, resource);
    if super::check::validation_errors(kind, &last).is_some() {
        return None;
    }
    let difference = compare(kind, &last, live);
    let set = fields_of(kind, &last)
        .difference(&difference.changed)
        .difference(&difference.added)
        .difference(&difference.removed);
    Some(set)
}

/// Sets the annotation, if it exists, to the applied configuration. An annotation that becomes too large is
/// removed.
pub(super) fn update_annotation(object: &mut Value, applied: &Value) {
    if tree::text(object, &ANNOTATION).is_empty() {
        return;
    }
    let mut config = applied.clone();
    tree::remove(&mut config, &ANNOTATION);
    tree::set(object, &ANNOTATION, format!("{config}\n"));
    if annotations_size(object) > MAX_ANNOTATIONS_SIZE {
        tree::remove(object, &ANNOTATION);
    }
}
