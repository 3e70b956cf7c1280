//! The operator: watches the cluster and reconciles meshes, application deliveries and `IstioOperator`s.
//!
//! ```text
//! watch ──▶ reconciler ──plan──▶ execute ──▶ API
//!               ▲                   │
//!               └───── responses ───┘
//! ```
//!
//! Out of scope: decisions, which `mainstay-mesh`, `mainstay-rollout` and `mainstay-manifest` make.

mod clock;
pub mod config;
mod control_loop;
pub mod delivery;
mod execute;
pub mod fips;
mod gauge;
pub mod health;
pub mod istio_operator;
pub mod log;
pub mod metrics;
mod object;
pub mod platform;
pub mod probe;
mod queue;
pub mod reconciler;
mod render;
pub mod report;
mod run;
pub mod server;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod tls;
mod watch;

pub use clock::Clock;
pub use execute::{ProbeOutcome, Prober};
pub use reconciler::Reconciler;
pub use render::{ConfineError, RenderError, Renderer};
pub use report::{Observer, Outcome, Report};
pub use run::{DEFAULT_MAX_CONCURRENT_RECONCILES, Operator, OperatorError, Options, PlanInspector};
