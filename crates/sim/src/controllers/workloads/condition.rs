//! Conditions in a status: takes a list and a condition, gives the list as the controllers keep it.

use serde_json::{Value, json};

use crate::clock::Instant;
use crate::tree;

/// The condition of a type.
pub(super) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions
        .iter()
        .find(|condition| tree::text(condition, &["type"]) == kind)
}

/// A condition as Deployments have it.
pub(super) fn new(now: Instant, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let at = now.rfc3339();
    json!({"type": kind, "status": status, "lastUpdateTime": at, "lastTransitionTime": at, "reason": reason, "message": message})
}

/// A condition without a time of its last update.
pub(super) fn plain(now: Instant, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": now.rfc3339()});
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            tree::set(&mut condition, &[key], text);
        }
    }
    condition
}

/// Puts a condition at the end in place of the one of its type, unless status and reason are the same.
pub(super) fn set(conditions: &mut Vec<Value>, mut new: Value) {
    let kind = tree::text(&new, &["type"]).to_owned();
    if let Some(old) = find(conditions, &kind) {
        let same = |key: &str| tree::text(old, &[key]) == tree::text(&new, &[key]);
        if same("status") && same("reason") {
            return;
        }
        if same("status") {
            tree::copy(&old.clone(), &mut new, &["lastTransitionTime"]);
        }
    }
    remove(conditions, &kind);
    conditions.push(new);
}

/// Takes a condition away.
pub(super) fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| tree::text(condition, &["type"]) != kind);
}
