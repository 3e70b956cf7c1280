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
mod execute;
pub mod health;
mod queue;
mod render;
pub mod report;
mod run;
mod watch;

pub use brain::Brain;
pub use clock::Clock;
pub use execute::Prober;
pub use render::{RenderError, Renderer};
pub use report::{Observer, Outcome, Report};
pub use run::{Inspect, OperatorError, Options, run};
