//! `ZTunnel`: the node proxy of ambient mode. v1alpha1 is parsed as v1, so its `profile` has no effect.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, TargetReference, Values};

/// The node proxy. At most one object exists, named `default`.
pub type ZTunnel = Resource<ZTunnelSpec>;

/// Desired state of the node proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZTunnelSpec {
    /// Istio version to install: a version or an alias.
    pub version: String,
    /// Namespace of the `DaemonSet`.
    pub namespace: String,
    /// Values for the Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
    /// Control plane whose values `global`, `meshConfig` and `revision` are the defaults of `values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetReference>,
}

impl Kind for ZTunnelSpec {
    const KIND: ObjectKind = ObjectKind::ZTunnel;
    type Status = ZTunnelStatus;
}

/// Observed state of the node proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZTunnelStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// State of the object: the reason of the first condition that is not true, or `Healthy`.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// Name of the revision that `targetRef` refers to; empty if it does not exist.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub istio_revision: String,
}

status!(ZTunnelStatus);
