//! `IstioCNI`, the network plug-in.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, Values};

/// The network plug-in. At most one exists, named `default`.
pub type IstioCni = Resource<CniSpec>;

/// Desired state of the network plug-in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniSpec {
    /// The version of Istio to install: a version or an alias.
    pub version: String,
    /// The built-in profile that values are based on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The namespace of the `DaemonSet`. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl Kind for CniSpec {
    const KIND: ObjectKind = ObjectKind::IstioCni;
    type Status = CniStatus;
}

/// Observed state of the network plug-in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Summary: the reason of the first condition that is not true, or `Healthy`.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
}

status!(CniStatus);
