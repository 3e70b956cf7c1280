//! `ZTunnel`: the node proxy of ambient mode. Types only; v1alpha1 reads as v1, its `profile` never had a meaning.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{Conditions, Kind, ObjectKind, Reason, Resource, TargetReference, Values};

/// The node proxy. There is at most one, named `default`.
pub type ZTunnel = Resource<ZTunnelSpec>;

/// What is wanted of the node proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZTunnelSpec {
    /// The version of Istio to install: a version or an alias.
    pub version: String,
    /// The namespace of the `DaemonSet`.
    pub namespace: String,
    /// Values for the Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
    /// The control plane it belongs to: its `global`, `meshConfig` and `revision` lie under the values above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetReference>,
}

impl Kind for ZTunnelSpec {
    const KIND: ObjectKind = ObjectKind::ZTunnel;
    type Status = ZTunnelStatus;
}

/// What was found of the node proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZTunnelStatus {
    /// The generation of the spec this status is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// What holds and what does not.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// One word for all of it.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// The revision `targetRef` leads to; empty when it leads nowhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub istio_revision: String,
}

status!(ZTunnelStatus);
