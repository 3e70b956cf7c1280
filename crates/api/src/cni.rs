//! `IstioCNI`: the CNI plug-in of Istio.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, Values};

/// The CNI plug-in. At most one object exists, named `default`.
pub type IstioCni = Resource<CniSpec>;

/// Desired state of the CNI plug-in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniSpec {
    /// Istio version to install: a version or an alias.
    pub version: String,
    /// Built-in profile that the values are based on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Namespace of the `DaemonSet`. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl Kind for CniSpec {
    const KIND: ObjectKind = ObjectKind::IstioCni;
    type Status = CniStatus;
}

/// Observed state of the CNI plug-in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniStatus {
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

status!(CniStatus);
