//! An in-process Kubernetes API with its own clock and fault injection.
//!
//! ```text
//! http::Request ──Connection──▶ api::handle(State, ApiRequest) ──▶ ApiResponse | Watch
//!                                   │ decode → default → admit → prepare → validate → store
//!                                   ▼
//!                           Store: one sequence of resourceVersions, history, watches
//! ```
//!
//! [`Cluster`] is the entry point; [`Cluster::connect`] returns a `tower` service for `kube::Client::new`.
//! Without the feature `serve`, only [`snapshot`] reads files, and no module reads the wall clock or a
//! socket: [`Cluster::advance`] advances the time and [`Options::seed`] determines all random values, so that
//! the same seed and calls produce the same [`Cluster::trace`], byte for byte. A [`fault::Rule`] injects
//! faults.

pub mod admission;
mod alloc;
pub mod api;
pub mod apply;
pub mod auth;
mod body;
mod cel;
pub mod clock;
mod cluster;
mod connection;
pub mod context;
pub mod controllers;
pub mod convert;
pub mod crd;
pub mod defaults;
mod der;
pub mod events;
pub mod fault;
pub mod field;
mod finalizers;
pub mod object;
pub mod openapi;
pub mod patch;
mod quota;
mod random;
pub mod representation;
pub mod resource;
pub mod schema;
pub mod script;
pub mod selector;
#[cfg(feature = "serve")]
pub mod serve;
mod show;
pub mod snapshot;
mod state;
pub mod status;
pub mod store;
pub mod strategy;
pub mod table;
mod trace;
pub mod tree;
pub mod validation;
pub mod watch;
pub mod write;

pub use alloc::ServiceIps;
pub use body::Body;
pub use cluster::{Cluster, ReplyFuture, Sleep, WebhookTransport};
pub use connection::{Connection, TransportError};
pub use random::Random;
pub use state::{Options, State};
pub use trace::Trace;
