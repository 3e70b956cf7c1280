//! Status conditions: finds, sets and removes conditions like the real controllers.

use serde_json::{Value, json};

use crate::clock::Instant;
use crate::tree;

/// Returns the condition of the type `kind`.
pub(super) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions
        .iter()
        .find(|condition| tree::text(condition, &["type"]) == kind)
}

/// Creates a condition with a last update time, as used by Deployments.
pub(super) fn new(now: Instant, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let at = now.rfc3339();
    json!({"type": kind, "status": status, "lastUpdateTime": at, "lastTransitionTime": at, "reason": reason, "message": message})
}

/// Creates a condition without a last update time.
pub(super) fn without_update_time(
    now: Instant,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> Value {
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": now.rfc3339()});
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            tree::set(&mut condition, &[key], text);
        }
    }
    condition
}

/// Replaces the condition of the same type unless status and reason are equal. The transition time changes
/// only with the status.
pub(super) fn set(conditions: &mut Vec<Value>, mut new: Value) {
    let kind = tree::text(&new, &["type"]).to_owned();
    if let Some(old) = find(conditions, &kind) {
        let is_equal = |key: &str| tree::text(old, &[key]) == tree::text(&new, &[key]);
        if is_equal("status") && is_equal("reason") {
            return;
        }
        if is_equal("status") {
            tree::copy(&old.clone(), &mut new, &["lastTransitionTime"]);
        }
    }
    remove(conditions, &kind);
    conditions.push(new);
}

/// Removes the condition of the type `kind`.
pub(super) fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| tree::text(condition, &["type"]) != kind);
}
