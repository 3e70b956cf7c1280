//! Plans rollouts of applications over revisions and clusters.
//!
//! ```text
//! Application ──render_component(), record_revision()──▶ ApplicationRevision
//! Snapshot ──plan()──▶ Plan: writes by cluster with preconditions, status, requeue
//! ```
//!
//! [`plan()`] is based on functions that can be used separately:
//!
//! ```text
//! selector, clusters ──select()──▶ placement ──divide()──▶ replicas per cluster
//! previous, desired  ──diff()────▶ Del, Mod, Add
//! weights, availability ──effective_weights()──▶ weights per cluster ──render_routes()──▶ routes
//! ```
//!
//! [`model`] executes plans on a model of clusters in virtual time.
//!
//! Every function is pure: no clock, no client, no randomness. The executor of a plan makes no decisions;
//! [`plan::Plan`] describes how to execute a plan.
//!
//! Out of scope: rendering of Helm charts, queries of metrics, and API calls.

mod diff;
mod division;
pub mod documents;
mod error;
pub mod manifest;
pub mod model;
mod names;
mod placement;
pub mod plan;
mod planner;
mod quantity;
pub mod revision;
pub mod snapshot;
pub mod traffic;
mod weights;

pub use diff::{Assignment, Change, Diff, Placements, diff};
pub use division::{Share, divide};
pub use error::RenderError;
pub use names::{apex_service_name, inventory_name, label_value, object_name, service_name};
pub use placement::{Candidate, PlacementError, Selector, select};
pub use planner::{check_action, plan};
pub use quantity::{IntOrPercent, QuantityError, RolloutBudget, Rounding};
pub use weights::{Backend, WeightError, effective_weights};
