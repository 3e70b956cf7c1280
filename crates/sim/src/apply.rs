//! Who owns which field: takes a write, gives the object with `managedFields` kept. Server-side apply belongs here; for now an applied
//! configuration is merged over the live object and nobody is remembered as owner.

use serde_json::Value;

use crate::context::Context;
use crate::patch::strategic;
use crate::resource::{Resource, Shape};
use crate::state::State;
use crate::status::Result;

/// The object that results from applying `patch` to `live` (absent: it is to be created).
pub fn apply(
    state: &State,
    resource: &Resource,
    live: Option<&Value>,
    patch: &Value,
    _context: &Context,
) -> Result<Value> {
    let Some(live) = live else {
        return Ok(patch.clone());
    };
    match resource.shape {
        Shape::Builtin(Some(id)) => strategic::merge(state.schema, id, live, patch),
        _ => Ok(crate::patch::merge(live, patch)),
    }
}

/// Notes in `managedFields` what an ordinary create or update changed.
#[must_use]
pub fn track(
    _state: &State,
    _resource: &Resource,
    _live: Option<&Value>,
    new: Value,
    _context: &Context,
) -> Value {
    new
}

/// An update whose only effect is new times in `managedFields` is no update.
#[must_use]
pub fn keep_times_if_unchanged(new: Value, _old: &Value) -> Value {
    new
}
