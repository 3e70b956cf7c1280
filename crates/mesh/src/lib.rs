//! Plans actions for revisions, tags, pruning and workload migration from an observed snapshot. Pure: no
//! client, no file, no clock; the current time is part of the snapshot.
//!
//! ```text
//! events ──observe()──▶ Snapshot ──plan()──▶ Plan ──(executor)──▶ writes
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use mainstay_mesh::snapshot::{Source, SourceState};
//! use mainstay_mesh::{Library, Observation, Settings, Snapshot, plan};
//!
//! let now = "2026-11-15T16:48:00Z".parse()?;
//! let mut snapshot = Snapshot::new(now, Arc::new(Settings::default()), Arc::new(Library::default()));
//! for source in Source::ALL {
//!     snapshot.observe(Observation::Source(source, SourceState::Ready));
//! }
//! let json = r#"{"metadata": {"name": "default", "uid": "u", "resourceVersion": "1"}}"#;
//! let istio = serde_json::from_str(json)?;
//! for subject in snapshot.observe(Observation::Istio(istio)) {
//!     let plan = plan(&snapshot, &subject);
//!     assert_eq!(plan.actions().map(ToString::to_string).collect::<Vec<_>>(), [
//!         "status",
//!         "event !ReconcileError: validation error: spec.version not set",
//!     ]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Invariants:* a plan is a function of the snapshot; if nothing differs, the plan is empty; nothing in use
//! is deleted; a plan concerns one subject, and its cost does not depend on the size of the cluster. Out of
//! scope: rendering, retries and waiting, which are tasks of the executor.

mod error;
mod injector;
mod library;
pub mod migration;
mod multimap;
pub mod plan;
mod planner;
pub mod references;
mod settings;
pub mod snapshot;
mod subject;
pub mod values;
pub mod workload;

pub use error::{ErrorClass, Invalid, ProfileProblem, ReconcileError, ValuesError};
pub use injector::injects_enabled_namespaces;
pub use library::{Library, LibraryError, Resolution};
pub use migration::{Preview, preview};
pub use plan::{Action, Plan, Requeue, Step};
pub use planner::{PruneDecision, active_revision_name, grace_period, plan, prune_decisions};
pub use references::References;
pub use settings::{Images, Platform, Settings, TlsProfile, TlsVersion};
pub use snapshot::{AffectedSubjects, Observation, Snapshot};
pub use subject::Subject;
