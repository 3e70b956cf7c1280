//! `IstioOperator` of `install.istio.io`: its metadata, status and names. Its spec is raw JSON, which
//! `mainstay-manifest` parses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::is_zero;
use crate::vocabulary::vocabulary;
use crate::{Conditions, ObjectMeta};

/// API group.
pub const GROUP: &str = "install.istio.io";
/// Group and version.
pub const API_VERSION: &str = "install.istio.io/v1alpha1";
/// Value of `kind`.
pub const KIND: &str = "IstioOperator";
/// Plural of the kind, as in URLs.
pub const PLURAL: &str = "istiooperators";
/// Finalizer that keeps a resource until its objects are deleted. Equal to upstream's.
pub const FINALIZER: &str = "istio-finalizer.install.istio.io";
/// Annotation that disables the controller for a resource while its value is `true`.
pub const IGNORE_RECONCILE: &str = "install.istio.io/ignoreReconcile";
/// Annotation that selects the Istio version. If unset, the default version of the operator applies.
pub const ISTIO_VERSION: &str = "install.mainstay.dev/istio-version";
/// Label of installed objects: name of the owning resource.
pub const OWNER_LABEL: &str = "install.operator.istio.io/owning-resource";

vocabulary! {
    /// State of a component or of an installation. The spelling is upstream's.
    InstallState {
        /// Not installed.
        None = "NONE",
        /// Another version is being installed.
        Updating = "UPDATING",
        /// Being installed or repaired.
        Reconciling = "RECONCILING",
        /// Installed and ready.
        Healthy = "HEALTHY",
        /// Installation or reconciliation failed.
        Error = "ERROR",
        /// The user must act before the installation can continue. Never the state of a component.
        ActionRequired = "ACTION_REQUIRED",
    }
}

/// An `IstioOperator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IstioOperator {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state as written by the user.
    pub spec: Value,
    /// Observed state.
    pub status: IstioOperatorStatus,
}

/// Observed state of an `IstioOperator`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioOperatorStatus {
    /// Summary of the components.
    #[serde(skip_serializing_if = "InstallState::is_empty")]
    pub status: InstallState,
    /// Reason why the installation is not healthy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// State of each component.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub component_status: BTreeMap<String, ComponentStatus>,
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// Observed state of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentStatus {
    /// Istio version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// State of the component.
    #[serde(skip_serializing_if = "InstallState::is_empty")]
    pub status: InstallState,
    /// Reason why the component is not healthy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

impl IstioOperator {
    /// Whether the resource has the controller's finalizer.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|name| name == FINALIZER)
    }

    /// Whether an annotation disables the controller for this resource.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.metadata
            .annotations
            .get(IGNORE_RECONCILE)
            .map(String::as_str)
            == Some("true")
    }

    /// Returns `spec.revision`. Empty if it is unset or `default`.
    #[must_use]
    pub fn revision(&self) -> &str {
        let revision = self.spec.get("revision").and_then(Value::as_str);
        revision
            .filter(|revision| *revision != crate::names::DEFAULT_REVISION)
            .unwrap_or_default()
    }

    /// Returns `NAMESPACE/NAME`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }
}
