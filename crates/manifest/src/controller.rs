//! Decisions of the in-cluster controller for `IstioOperator`s: what to do with a resource, which of several
//! resources owns a revision and the shared objects, and the status.

mod action;
mod claim;
mod event;
mod input;
mod status;

pub use action::{ControllerAction, decide_action};
pub use claim::{Claim, find_conflict, writes_shared};
pub use event::{ControllerEvent, transition_events};
pub use input::{claim_of, describe_errors, plan_operator};
pub use status::{ComponentState, Observation, READINESS_TIMEOUT, Situation, next_status, roll_up};
