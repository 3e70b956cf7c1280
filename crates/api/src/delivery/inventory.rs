//! `ResourceInventory`: the objects of a deployment in one cluster.

use serde::{Deserialize, Serialize};

use super::{Kind, NoStatus, Resource};

/// The objects of a deployment in one cluster. The inventory is written before the first object is created,
/// and only objects in it are deleted.
pub type ResourceInventory = Resource<InventorySpec>;

/// Content of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InventorySpec {
    /// Name of the deployment.
    pub deployment_name: String,
    /// Name of the Cluster; empty for the host cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Objects by kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<InventoryGroup>,
}

impl Kind for InventorySpec {
    const KIND: &'static str = "ResourceInventory";
    const PLURAL: &'static str = "resourceinventories";
    type Status = NoStatus;
}

/// Objects of one kind and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InventoryGroup {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Names, sorted.
    pub names: Vec<String>,
}
