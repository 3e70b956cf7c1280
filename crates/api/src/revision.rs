//! `IstioRevision`: one control plane. Types, and what its values say about it.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, Values, values};

/// One control plane.
pub type IstioRevision = Resource<RevisionSpec>;

/// What is wanted of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionSpec {
    /// The version of Istio: always a concrete one.
    pub version: String,
    /// The namespace of the control plane. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm charts, with every default already in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl RevisionSpec {
    fn text(&self, path: &[&str]) -> Option<&str> {
        self.values.as_ref().and_then(|map| values::text(map, path))
    }

    /// `values.revision`: empty for the default revision, and when nothing is said.
    #[must_use]
    pub fn revision(&self) -> &str {
        self.text(&["revision"]).unwrap_or_default()
    }

    /// Whether the control plane runs in another cluster and only its webhooks are here.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.text(&["profile"]) == Some("remote")
    }

    /// Whether namespaces that say nothing are injected too.
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

/// What was found of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionStatus {
    /// The generation of the spec this status is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// What holds and what does not.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// One word for all of it.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
}

status!(RevisionStatus);
