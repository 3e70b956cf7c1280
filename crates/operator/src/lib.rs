//! The operator: takes a client and settings, watches the cluster, and keeps the mesh as its objects declare it.
//!
//! ```text
//! watch ──▶ brain ──plan──▶ execute ──▶ API
//!             ▲                │
//!             └────────────────┘
//! ```
//!
//! *Absent on purpose:* deciding anything; that is `mainstay-mesh`.

pub mod brain;
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
mod render;
pub mod report;
mod run;
pub mod server;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod tls;
mod watch;

pub use brain::Brain;
pub use clock::Clock;
pub use execute::Prober;
pub use render::{RenderError, Renderer};
pub use report::{Observer, Outcome, Report};
pub use run::{Inspect, OperatorError, Options, run};
