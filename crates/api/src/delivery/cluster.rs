//! `Cluster`: a cluster that workloads can be placed in.

use serde::{Deserialize, Serialize};

use super::{Kind, Resource};
use crate::meta::is_zero;
use crate::{Conditions, Time};

/// A cluster that workloads can be placed in.
pub type Cluster = Resource<ClusterSpec>;

/// Connection settings and usage of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Secret with the kubeconfig, in the same namespace.
    pub kubeconfig_secret_ref: SecretReference,
    /// Whether new workloads must not be placed in the cluster.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Taints. No new workloads are placed in a cluster with any taint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Time between two health probes in seconds. 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_interval_seconds: Option<u32>,
}

impl ClusterSpec {
    /// Whether new workloads may be placed in the cluster.
    #[must_use]
    pub fn is_schedulable(&self) -> bool {
        !self.unschedulable && self.taints.is_empty()
    }
}

impl Kind for ClusterSpec {
    const KIND: &'static str = "Cluster";
    const PLURAL: &'static str = "clusters";
    type Status = ClusterStatus;
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretReference {
    /// Name of the Secret.
    pub name: String,
    /// Key of the kubeconfig in the Secret. `config` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key of the taint.
    pub key: String,
    /// Value of the taint; empty if unset.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Health of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions. `Ready` reports whether the cluster can be reached.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Kubernetes version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Time of the last successful contact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contact_time: Option<Time>,
}
