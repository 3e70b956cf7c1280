//! `IstioRevision`: one control plane.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, Values, values};

/// One control plane.
pub type IstioRevision = Resource<RevisionSpec>;

/// Desired state of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionSpec {
    /// Istio version, never an alias.
    pub version: String,
    /// Namespace of the control plane. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm charts, with all defaults applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl RevisionSpec {
    fn text(&self, path: &[&str]) -> Option<&str> {
        self.values.as_ref().and_then(|map| values::text(map, path))
    }

    /// Returns `values.revision`. Empty for the default revision or if unset.
    #[must_use]
    pub fn revision(&self) -> &str {
        self.text(&["revision"]).unwrap_or_default()
    }

    /// Whether the control plane runs in another cluster, so that only its webhooks are installed.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.text(&["profile"]) == Some("remote")
    }

    /// Whether pods in namespaces without injection labels are injected.
    #[must_use]
    pub fn enables_namespaces_by_default(&self) -> bool {
        let path = ["sidecarInjectorWebhook", "enableNamespacesByDefault"];
        self.values.as_ref().and_then(|map| values::flag(map, &path)) == Some(true)
    }
}

impl Kind for RevisionSpec {
    const KIND: ObjectKind = ObjectKind::IstioRevision;
    type Status = RevisionStatus;
}

/// Observed state of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// State of the object: the reason of the first condition that is not true, or `Healthy`.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
}

status!(RevisionStatus);
