//! Controller for `IstioOperator`s: installs, repairs and deletes the installations that they describe,
//! with the same code as `mainstay install`.
//!
//! ```text
//! watches ──▶ index ──▶ mainstay_manifest (plan, claims, status) ──▶ Installer ──▶ API
//!               ▲                                                       │
//!               └──────────────── events of owned objects ◀─────────────┘
//! ```
//!
//! Out of scope: decisions, which `mainstay-manifest` makes.

mod index;
mod install;
mod planning;
mod resource;
mod run;
mod shared;
mod sinks;
mod uninstall;
pub mod webhook;

pub use run::{IstioOperatorController, IstioOperatorOptions};
