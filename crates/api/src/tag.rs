//! `IstioRevisionTag`: an alias for a revision. Types only.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource};

/// An alias for a revision.
pub type IstioRevisionTag = Resource<TagSpec>;

/// What a tag should point to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagSpec {
    /// The Istio or the `IstioRevision` it points to.
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
    /// `Istio`: whatever revision is active there. `IstioRevision`: that one.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// What a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The active revision of an Istio.
    Istio,
    /// One revision.
    Revision,
    /// Nothing we know.
    Unknown,
}

impl TargetReference {
    /// A reference to an Istio.
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

    /// What it names.
    #[must_use]
    pub fn target(&self) -> TargetKind {
        match self.kind.as_str() {
            "Istio" => TargetKind::Istio,
            "IstioRevision" => TargetKind::Revision,
            _ => TargetKind::Unknown,
        }
    }
}

/// What a tag points to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagStatus {
    /// The generation of the spec this status is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// What holds and what does not.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// One word for all of it.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// The namespace of the control plane it points to. Always written: the schema asks for it.
    pub istiod_namespace: String,
    /// The revision it points to. Always written: the schema asks for it.
    pub istio_revision: String,
}

status!(TagStatus);
