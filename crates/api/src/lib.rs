//! Types of the custom resources of the mesh, of application delivery ([`delivery`]) and of the installer
//! ([`istio_operator`]), with their conditions, reasons and definitions ([`crd`]).
//!
//! *Invariant:* every condition type and every reason that this project writes is a variant here. Out of
//! scope: decisions, which are made by the planner, and versions, which are provided by the catalog.
//!
//! ```
//! use mainstay_api::{Istio, UpdateStrategyType};
//! let json = r#"{"metadata": {"name": "default"}, "spec": {"updateStrategy": {"type": "RevisionBased"}}}"#;
//! let istio: Istio = serde_json::from_str(json)?;
//! assert_eq!(istio.spec.strategy(), UpdateStrategyType::RevisionBased);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod cni;
mod condition;
pub mod crd;
pub mod delivery;
mod duration;
mod istio;
pub mod istio_operator;
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
