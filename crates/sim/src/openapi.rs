//! The schema of everything served, as `/openapi/v3` and `/openapi/v2`: a room for `kubectl explain` and its like; empty so far.

use crate::api::Answer;
use crate::state::State;

/// What the server says below `/openapi`.
#[must_use]
pub fn answer(_state: &State, _path: &str) -> Answer {
    Answer::not_found()
}
