//! The operator on a simulated cluster: an embedded Kubernetes API with controllers, our definitions and
//! istiods that inject sidecars, in virtual time. Used by tests, rehearsals and `mainstay demo`. [`Fleet`]
//! runs the delivery controllers on several clusters.
//!
//! ```text
//! SimulatedCluster::run(catalog, &options, async |cluster| {
//!     cluster.create(…).await?;
//!     cluster.start_operator(…);
//!     cluster.sleep(…).await;
//! })
//! ```
//!
//! Virtual time advances only when every task is idle. [`Speed::Factor`] limits it to a multiple of the
//! wall clock, for interactive use.

mod cluster;
mod error;
mod fleet;
mod injector;
mod operator;
mod options;
mod time;

pub use cluster::SimulatedCluster;
pub use error::HarnessError;
pub use fleet::{
    FIRST_TOKEN, FixedMetrics, Fleet, FleetConnector, FleetOptions, UnansweredCall, cluster_secret,
};
pub use injector::{Injectors, injector_revision};
pub use operator::RunningOperator;
pub use options::{ClusterOptions, Speed};

/// Namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "sail-operator";
/// Client name of the operator in traces.
pub const OPERATOR: &str = "mainstay";
/// Client name of the user in traces.
pub const USER: &str = "user";
