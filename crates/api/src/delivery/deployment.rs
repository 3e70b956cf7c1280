//! `ApplicationDeployment`: revisions, their placement, traffic and strategy.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AnalysisReference, DeploymentStatus, Kind, Resource, Strategy, Traffic};

/// Revisions of an application in clusters, with one traffic plan.
pub type ApplicationDeployment = Resource<ApplicationDeploymentSpec>;

/// Desired state of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationDeploymentSpec {
    /// How requests are distributed over revisions. If unset, no Services and routes are generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Revisions to run.
    pub app_revisions: Vec<AppRevision>,
    /// How a change is executed. If unset, workloads are scaled directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Analysis during the whole rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisSettings>,
    /// How generated objects are handled when the deployment is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionSettings>,
    /// Replacement of clusters that have been unreachable for a long time. If unset, workloads are never
    /// moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
}

impl Kind for ApplicationDeploymentSpec {
    const KIND: &'static str = "ApplicationDeployment";
    const PLURAL: &'static str = "applicationdeployments";
    type Status = DeploymentStatus;
}

/// A revision and its placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRevision {
    /// Name of the `ApplicationRevision`.
    pub revision_name: String,
    /// Clusters and replicas of the revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<Placement>,
}

/// One placement of a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Selected clusters. If unset, the host cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// Distribution of replicas over the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

/// Selects clusters by name and labels, combined by AND.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// Name of the Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels of the Cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Number of clusters to select, or `All`. 1 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<IntOrString>,
}

/// Replicas of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Distribution {
    /// Replicas of each component. If unset, replicas are not managed, for example because an autoscaler
    /// manages them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Whether every cluster gets all `replicas`, or they are divided among the clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divide: Option<Divide>,
    /// Weights of clusters for `Weighted`. A cluster without an entry has weight 1 if the list is empty,
    /// otherwise 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<ClusterWeight>,
    /// Minimum number of replicas in each cluster for `Weighted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_per_cluster: Option<u32>,
}

/// How replicas are assigned to the selected clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Divide {
    /// Every cluster gets all replicas.
    #[default]
    Each,
    /// Replicas are divided by weight.
    Weighted,
}

/// Weight of a cluster in a division.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterWeight {
    /// Name of the Cluster.
    pub cluster_name: String,
    /// Relative weight.
    pub weight: u32,
}

/// Analysis that is independent of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisSettings {
    /// Templates that run from the first step to the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<AnalysisReference>,
}

/// How generated objects are handled when the deployment is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionSettings {
    /// Whether generated objects are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<DeletionPolicy>,
    /// How objects in unreachable clusters are handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_clusters: Option<UnreachableClusters>,
}

/// Whether generated objects are deleted with the deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// Objects are deleted in all clusters.
    #[default]
    Delete,
    /// Objects are not deleted.
    Orphan,
}

/// Deletion in unreachable clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreachableClusters {
    /// Time in seconds after the deletion request at which objects in unreachable clusters are given up. If
    /// unset, the deletion waits until the clusters can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_after_seconds: Option<u32>,
}

/// Replacement of unreachable clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failover {
    /// Time in seconds without contact after which a placement by labels selects another cluster.
    pub after_seconds: u32,
}

/// A number or text, such as `3` or `25%`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
