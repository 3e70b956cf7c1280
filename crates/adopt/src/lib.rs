//! Adopts a live mesh: detects what Helm, istioctl or another operator installed, derives custom
//! resources that render equal objects, and transfers ownership without changing a pod template.
//!
//! ```text
//! live objects ──components()──▶ Component ──derive()──▶ Derivation ──ComponentPlan::new()──▶ differences
//! ```
//!
//! *Invariants:* An adoption writes only metadata, custom resources, its record, and labels of Helm's
//! Secrets. Every write is recorded first and can be undone.

mod assumed;
mod chart_release;
mod derive;
mod differences;
mod error;
mod found;
pub mod helm;
mod migrate;
mod ownership;
mod plan;
mod record;
mod releases;
mod session;
mod stored_operator;
mod text;
mod to_helm;
mod umbrella;

pub use assumed::{AssumedAdoption, assume_adoptions};
pub use derive::{Derivation, Derived, Dropped, derive};
pub use differences::FieldDifference;
pub use error::AdoptError;
pub use found::{Component, ComponentKind, Installer, Observed, components};
pub use migrate::{
    Comments, GatewayValues, HelmChart, HelmSource, Migration, SourceFile, helm_to_operator,
    helm_to_resources, to_resources,
};
pub use ownership::{OriginalState, OwnershipChange, adopt, restore, restore_records};
pub use plan::{ComponentPlan, LiveObjects};
pub use record::RECORD;
pub use session::{Adoption, Applied, OPERATOR_NAMESPACE, Session, Skipped, is_undefined};
pub use text::parse_objects;
pub use to_helm::{HelmTransfer, ReleasePlan};
