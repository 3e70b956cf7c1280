//! `Application` and `ApplicationRevision`: components and their rendered form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Kind, NoStatus, REVISION_ONLY, ROLLOUT_TEMPLATE, Resource};
use crate::Conditions;
use crate::meta::is_zero;

/// Values of [`Component::kind`].
pub mod component_type {
    /// A Deployment of one image that serves requests.
    pub const WEB_SERVICE: &str = "webservice";
    /// Kubernetes objects.
    pub const OBJECTS: &str = "k8s-objects";
    /// A Helm chart.
    pub const HELM: &str = "helm";
}

/// An application.
pub type Application = Resource<ApplicationSpec>;

/// Desired state of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    /// Components.
    pub components: Vec<Component>,
    /// Number of unreferenced revisions to keep. 10 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<u32>,
}

impl Kind for ApplicationSpec {
    const KIND: &'static str = "Application";
    const PLURAL: &'static str = "applications";
    type Status = ApplicationStatus;
}

impl Application {
    /// Whether a change only records a revision. Annotations with a value other than `true` have no effect.
    #[must_use]
    pub fn is_revision_only(&self) -> bool {
        let is_set = |name: &str| {
            self.metadata
                .annotations
                .get(name)
                .is_some_and(|value| value == "true")
        };
        is_set(ROLLOUT_TEMPLATE) || is_set(REVISION_ONLY)
    }

    /// Returns the annotations for [`Self::is_revision_only`] that have no effect, because their value is
    /// not `true`.
    #[must_use]
    pub fn ignored_annotations(&self) -> Vec<&'static str> {
        let is_ignored = |name: &&str| {
            self.metadata
                .annotations
                .get(*name)
                .is_some_and(|value| value != "true")
        };
        [ROLLOUT_TEMPLATE, REVISION_ONLY]
            .into_iter()
            .filter(is_ignored)
            .collect()
    }
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Component {
    /// Name of the component.
    pub name: String,
    /// Type of the component: `webservice`, `k8s-objects` or `helm`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Input of the renderer.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub properties: Value,
}

/// Observed state of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Name of the latest revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub latest_revision: String,
}

/// An immutable revision of an application with its rendered components.
pub type ApplicationRevision = Resource<RevisionSpec>;

/// Content of a revision. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionSpec {
    /// Name of the Application.
    pub application_name: String,
    /// Number of the revision, starting at 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub revision: i64,
    /// Hash of the rendered components.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// Rendered components.
    pub components: Vec<RenderedComponent>,
}

impl Kind for RevisionSpec {
    const KIND: &'static str = "ApplicationRevision";
    const PLURAL: &'static str = "applicationrevisions";
    type Status = NoStatus;
}

/// A rendered component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RenderedComponent {
    /// Name of the component.
    pub name: String,
    /// Rendered objects.
    pub manifests: Vec<Value>,
}
