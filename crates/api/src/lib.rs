//! The custom resources of the mesh: takes JSON, gives typed objects, conditions and reasons, and back. Knows no cluster, no
//! clock and no rules: what follows from an object is the planner's business.
//!
//! *Invariant:* every condition type and every reason that this project writes is a variant here; nowhere else is one spelled.
//! [`crd`] holds the definitions of the kinds. *Absent on purpose:* versions; they are the catalogue's.
//!
//! ```
//! use mainstay_api::{Istio, UpdateStrategyType};
//! let json = r#"{"metadata": {"name": "default"}, "spec": {"version": "v1.29.1", "updateStrategy": {"type": "RevisionBased"}}}"#;
//! let istio: Istio = serde_json::from_str(json)?;
//! assert_eq!(istio.spec.strategy(), UpdateStrategyType::RevisionBased);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod cni;
mod condition;
pub mod crd;
mod duration;
mod istio;
mod meta;
mod migration;
pub mod names;
mod reason;
mod resource;
mod revision;
mod tag;
mod time;
pub mod values;
mod vocabulary;
mod ztunnel;

pub use cni::{CniSpec, CniStatus, IstioCni};
pub use condition::{Condition, ConditionStatus, ConditionType, Conditions, derive_state};
pub use duration::{DurationError, GoDuration};
pub use istio::{Istio, IstioSpec, IstioStatus, RevisionSummary, UpdateStrategy, UpdateStrategyType};
pub use meta::{ObjectMeta, OwnerReference, takes_precedence};
pub use migration::{
    BatchedMigration, BatchedMigrationStatus, FailurePolicy, MigrationFailure, MigrationState,
    MigrationStrategy, WorkloadMigration, WorkloadMigrationStatus,
};
pub use reason::Reason;
pub use resource::{Kind, ObjectKind, Resource, Status};
pub use revision::{IstioRevision, RevisionSpec, RevisionStatus};
pub use tag::{IstioRevisionTag, TagSpec, TagStatus, TargetKind, TargetReference};
pub use time::Time;
pub use values::Values;
pub use ztunnel::{ZTunnel, ZTunnelSpec, ZTunnelStatus};
