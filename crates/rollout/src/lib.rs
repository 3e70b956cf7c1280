//! Plans rollouts of applications over revisions and clusters.
//!
//! ```text
//! selector, clusters ──select()──▶ placement ──divide()──▶ replicas per cluster
//! previous, desired  ──diff()────▶ Del, Mod, Add
//! weights, availability ──effective_weights()──▶ weights per cluster
//! ```
//!
//! Every function is pure: no clock, no client, no randomness.
//!
//! Out of scope: rendering of components and API calls.

mod diff;
mod division;
mod names;
mod placement;
mod quantity;
mod weights;

pub use diff::{Assignment, Change, Diff, Placements, diff};
pub use division::{Share, divide};
pub use names::{object_name, service_name};
pub use placement::{Candidate, PlacementError, Selector, select};
pub use quantity::{IntOrPercent, QuantityError, RolloutBudget, Rounding};
pub use weights::{Backend, WeightError, effective_weights, replica_weights};
