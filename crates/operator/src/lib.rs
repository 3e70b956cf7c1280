//! The operator: takes a client and settings, watches the cluster, and keeps the mesh as its objects declare it.
//!
//! ```text
//! watch ──▶ reconciler ──plan──▶ execute ──▶ API
//!             ▲                │
//!             └────────────────┘
//! ```
//!
//! *Absent on purpose:* deciding anything; that is `mainstay-mesh`.

mod clock;
pub mod config;
mod execute;
pub mod fips;
mod gauge;
pub mod health;
pub mod log;
pub mod metrics;
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
pub use execute::Prober;
pub use reconciler::Reconciler;
pub use render::{RenderError, Renderer};
pub use report::{Observer, Outcome, Report};
pub use run::{OperatorError, Options, PlanInspector, run};
