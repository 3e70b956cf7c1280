//! Namespaces: phase and finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::tree;
use crate::write::{self, Deleted, Target};

/// A new namespace is active and has the finalizer `kubernetes`.
pub(super) fn prepare_create(value: &mut Value) {
    tree::set(value, &["status", "phase"], "Active");
    let mut finalizers = tree::list(value, &["spec", "finalizers"]).to_vec();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
    }
    tree::set(value, &["spec", "finalizers"], finalizers);
}

/// The first deletion marks the namespace, later ones wait until its finalizers are removed.
pub(super) fn delete(
    state: &mut State,
    target: &Target<'_>,
    live: &Arc<Object>,
    old: &Value,
    context: &Context,
) -> Option<Deleted> {
    if live.meta().deleting {
        let held = !tree::list(old, &["spec", "finalizers"]).is_empty();
        return held.then(|| Deleted::AlreadyMarked(Arc::clone(live)));
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

/// Implements `PUT /finalize`: only `spec.finalizers` changes, and the namespace is removed after the last
/// one.
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
    let kept = write::persist(state, target.resource, new);
    if empty && kept.meta().deleting {
        let table = Arc::clone(&target.resource.table);
        return Ok(state.store.remove(&table, &target.key()).unwrap_or(kept));
    }
    Ok(kept)
}
