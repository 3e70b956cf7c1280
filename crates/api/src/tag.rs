//! `IstioRevisionTag`: an alias for a revision.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource};

/// An alias for a revision.
pub type IstioRevisionTag = Resource<TagSpec>;

/// Desired state of a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagSpec {
    /// Istio or `IstioRevision` that the tag refers to.
    pub target_ref: TargetReference,
}

impl Kind for TagSpec {
    const KIND: ObjectKind = ObjectKind::IstioRevisionTag;
    type Status = TagStatus;
}

/// A reference to a control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetReference {
    /// `Istio` for its active revision, or `IstioRevision` for that revision.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// Target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The active revision of an Istio.
    Istio,
    /// A revision.
    Revision,
    /// An unknown kind.
    Unknown,
}

impl TargetReference {
    /// Creates a reference to an Istio.
    #[must_use]
    pub fn istio(name: &str) -> Self {
        Self {
            kind: ObjectKind::Istio.name().into(),
            name: name.into(),
        }
    }

    /// Whether kind or name is missing.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        self.kind.is_empty() || self.name.is_empty()
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> TargetKind {
        match self.kind.as_str() {
            "Istio" => TargetKind::Istio,
            "IstioRevision" => TargetKind::Revision,
            _ => TargetKind::Unknown,
        }
    }
}

/// Observed state of a tag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// State of the object: the reason of the first condition that is not true, or `Healthy`.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// Namespace of the control plane that the tag refers to. Always written, because the schema requires
    /// it.
    pub istiod_namespace: String,
    /// Name of the revision that the tag refers to. Always written, because the schema requires it.
    pub istio_revision: String,
}

status!(TagStatus);
