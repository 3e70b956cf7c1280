//! Decisions of the in-cluster controller for `IstioOperator`s: the action for a resource, the owner of a
//! revision and of the shared objects among several resources, and the status.

mod action;
mod claim;
mod event;
mod input;
mod status;

pub use action::{ControllerAction, decide_action};
pub use claim::{Claim, find_conflict, writes_shared};
pub use event::{ControllerEvent, transition_events};
pub use input::{claim_of, describe_errors, plan_operator};
pub use status::{ComponentState, Observation, READINESS_TIMEOUT, Situation, aggregate_state, next_status};
