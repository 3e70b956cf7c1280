//! Namespaces: phase and finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::finalizers::KUBERNETES;
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::tree;
use crate::write::{self, Deleted, Target};

/// Sets the phase `Active` and the finalizer `kubernetes` of a new namespace.
pub(super) fn prepare_create(value: &mut Value) {
    tree::set(value, &["status", "phase"], "Active");
    let mut finalizers = tree::list(value, &["spec", "finalizers"]).to_vec();
    if !finalizers.contains(&json!(KUBERNETES)) {
        finalizers.push(json!(KUBERNETES));
    }
    tree::set(value, &["spec", "finalizers"], finalizers);
}

/// Marks a namespace for deletion. If it is already marked, returns `AlreadyMarked` until its finalizers are
/// removed, then `None`, so that the caller deletes it.
pub(super) fn delete(
    state: &mut State,
    target: &Target<'_>,
    live: &Arc<Object>,
    old: &Value,
    context: &Context,
) -> Option<Deleted> {
    if live.meta().deleting {
        let has_finalizers = !tree::list(old, &["spec", "finalizers"]).is_empty();
        return has_finalizers.then(|| Deleted::AlreadyMarked(Arc::clone(live)));
    }
    let mut new = old.clone();
    tree::set(
        &mut new,
        &["metadata", "deletionTimestamp"],
        state.now().rfc3339(),
    );
    tree::set(&mut new, &["status", "phase"], "Terminating");
    let object = if context.dry_run {
        write::freeze(target.resource, &new)
    } else {
        write::persist(state, target.resource, new)
    };
    Some(Deleted::Marked(object))
}

/// Implements `PUT /finalize`: changes only `spec.finalizers`, and removes the namespace if it is marked for
/// deletion and no finalizers remain.
pub fn finalize(state: &mut State, target: &Target<'_>, finalizers: &Value) -> Result<Arc<Object>> {
    let Some((live, old)) = write::current(state, target) else {
        return Err(target.not_found());
    };
    let mut new = old.clone();
    match finalizers.as_array().filter(|list| !list.is_empty()) {
        Some(list) => tree::set(&mut new, &["spec", "finalizers"], list.clone()),
        None => tree::set(&mut new, &["spec"], json!({})),
    }
    if new == old {
        return Ok(live);
    }
    let empty = tree::list(&new, &["spec", "finalizers"]).is_empty()
        && tree::list(&new, &["metadata", "finalizers"]).is_empty();
    let stored = write::persist(state, target.resource, new);
    if empty && stored.meta().deleting {
        let table = Arc::clone(&target.resource.table);
        return Ok(state.store.remove(&table, &target.key()).unwrap_or(stored));
    }
    Ok(stored)
}
