//! Controllers of application delivery: revisions of Applications, health of Clusters, and
//! `ApplicationDeployment`s over several clusters.
//!
//! ```text
//! watches, links ──▶ index ──snapshot──▶ mainstay_rollout::plan ──▶ executor ──▶ clusters
//!                      ▲                                              │
//!                      └───────────────── responses ──────────────────┘
//! ```
//!
//! Out of scope: decisions about rollouts, which `mainstay-rollout` makes.

mod analysis;
mod application;
mod chart;
mod cluster;
mod execute;
pub(crate) mod index;
mod link;
mod names;
pub(crate) mod observed;
pub(crate) mod queue;
mod run;
mod shared;
mod sinks;

pub use analysis::{MetricResult, MetricSource, Prometheus};
pub use link::{Connector, NetworkConnector};
pub use names::{ClusterKey, Name, ObjectType, Subject};
pub use run::{Delivery, DeliveryOptions};
