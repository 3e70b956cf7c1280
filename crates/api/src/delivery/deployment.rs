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
    /// How requests are distributed over revisions. Unset generates no Services and routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Revisions that run.
    pub app_revisions: Vec<AppRevision>,
    /// How a change is executed. Unset scales directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Analysis during the whole rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisSettings>,
    /// What happens to generated objects when the deployment is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionSettings>,
    /// Replacement of clusters that are unreachable for long. Unset never moves workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
}

impl Kind for ApplicationDeploymentSpec {
    const KIND: &'static str = "ApplicationDeployment";
    const PLURAL: &'static str = "applicationdeployments";
    type Status = DeploymentStatus;
}

/// A revision and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRevision {
    /// Name of the `ApplicationRevision`.
    pub revision_name: String,
    /// Clusters and replicas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<Placement>,
}

/// One placement of a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Which clusters. Unset is the host cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// How many replicas.
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
    /// Number of clusters, or `All`. 1 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<IntOrString>,
}

/// Replicas of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Distribution {
    /// Replicas of each component. Unset does not manage replicas, for example because an autoscaler does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Whether every cluster gets `replicas`, or they are divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divide: Option<Divide>,
    /// Weights of clusters for `Weighted`. A cluster without an entry has weight 1 if there are no entries,
    /// else 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<ClusterWeight>,
    /// Minimum for each cluster for `Weighted`.
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

/// Analysis outside steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisSettings {
    /// Templates that run from the first step to the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<AnalysisReference>,
}

/// What happens when the deployment is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionSettings {
    /// Whether generated objects are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<DeletionPolicy>,
    /// What happens to objects in unreachable clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_clusters: Option<UnreachableClusters>,
}

/// Whether generated objects are deleted with the deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// They are deleted in every cluster.
    #[default]
    Delete,
    /// They stay.
    Orphan,
}

/// Deletion in clusters that cannot be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreachableClusters {
    /// Time after the deletion request at which objects in unreachable clusters are given up. Unset waits
    /// forever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_after_seconds: Option<u32>,
}

/// Replacement of unreachable clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failover {
    /// Time without contact after which a placement by labels selects another cluster.
    pub after_seconds: u32,
}

/// A number or a text, such as `3` or `25%`.
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
