//! Observed state of a deployment. Lists are sorted, so that an unchanged state is serialized to the same
//! text.

use serde::{Deserialize, Serialize};

use crate::meta::is_zero;
use crate::{Conditions, Reason, Time};

/// Observed state of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Phase of the deployment.
    pub phase: DeploymentPhase,
    /// Phase in terms of `KubeVela`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy_phase: Option<LegacyPhase>,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Replicas by revision and cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<RevisionPlacement>,
    /// Weights by cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<ClusterTraffic>,
    /// Progress of the current rollout, or the result of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// Analysis runs of the current rollout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analysis: Vec<AnalysisRun>,
    /// UIDs of actions that took effect but may not have a result in their own status yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handled_actions: Vec<String>,
}

/// Phase of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeploymentPhase {
    /// Not started.
    #[default]
    Pending,
    /// A rollout is in progress.
    Progressing,
    /// A rollout is waiting.
    Paused,
    /// The desired state is in place.
    Healthy,
    /// The rollout is complete, but not all replicas are available.
    Degraded,
    /// The rollout was aborted, and the stable state is in place.
    Aborted,
    /// The deployment is being deleted.
    Deleting,
}

/// Phase in terms of `KubeVela`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LegacyPhase {
    /// A rollout is in progress.
    Rolling,
    /// The rollout is complete.
    Completed,
    /// The rollout was aborted or has failed.
    Failed,
}

/// Replicas of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionPlacement {
    /// Name of the revision.
    pub revision_name: String,
    /// Replicas by cluster.
    pub clusters: Vec<ClusterPlacement>,
}

/// Replicas of one revision in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterPlacement {
    /// Name of the Cluster; empty for the host cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Replicas of each component. Unset if replicas are not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Smallest number of available replicas of a component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<u32>,
    /// Time since which no route refers to the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// Message of the last failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
}

/// Weights of one or more clusters with equal weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTraffic {
    /// Names of the Clusters. The name of the host cluster is empty.
    pub cluster_names: Vec<String>,
    /// Weights by rule as last verified.
    pub routes: Vec<RouteWeights>,
    /// Whether the routes were accepted with these weights.
    pub verified: bool,
}

/// Weights of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteWeights {
    /// Name of the rule.
    pub rule: String,
    /// Weights by revision and component.
    pub shares: Vec<RouteShare>,
}

/// Weight of one component of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteShare {
    /// Name of the revision.
    pub revision_name: String,
    /// Name of the component.
    pub component_name: String,
    /// Port of the Service.
    pub port: u16,
    /// Weight. If unset, it is proportional to the available replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Replicas and weights at one state of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Allocation {
    /// Replicas by revision and cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<RevisionPlacement>,
    /// Weights by rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteWeights>,
}

/// Progress of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStatus {
    /// Hash of the target. A rollout starts when it changes.
    pub target_hash: String,
    /// Whether the rollout moves to the target or back to the stable state.
    pub direction: Direction,
    /// State to which an abort returns.
    pub stable: Allocation,
    /// Observed state at the start of the rollout.
    pub source: Allocation,
    /// Verified weights at the start of the rollout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_traffic: Vec<ClusterTraffic>,
    /// Desired state at the end of the rollout.
    pub target: Allocation,
    /// Number of changes from the stable state to the target, by type of change.
    pub diff: DiffCounts,
    /// Name of the current wave.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wave: String,
    /// Index of the current group of clusters over all waves, starting at 0.
    pub group: u32,
    /// Index of the current step, starting at 0. Equal to the number of steps after the last step.
    pub step: u32,
    /// Hash of the current step, to which an action may refer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_hash: String,
    /// Start time of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Time at which all conditions of the current step were met, except its waiting time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_reached_at: Option<Time>,
    /// Time of the last progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Time>,
    /// Largest measured progress in the current step.
    #[serde(skip_serializing_if = "is_zero")]
    pub progress: i64,
    /// End time of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Cause of the current pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseCause>,
    /// Reason of the last failure.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub failure: Reason,
    /// Whether an action promoted the current step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promoted: bool,
    /// Whether all remaining steps and waves are skipped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Direction of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// The rollout moves to the target.
    #[default]
    Forward,
    /// The rollout returns to the stable state.
    Back,
}

/// Cause of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PauseCause {
    /// An action requested the pause.
    Action,
    /// A failure occurred, and `onFailure` is `Pause`.
    Failure,
}

/// Number of changes by type of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiffCounts {
    /// Number of removed assignments.
    pub del: u32,
    /// Number of changed assignments.
    #[serde(rename = "mod")]
    pub modify: u32,
    /// Number of added assignments.
    pub add: u32,
}

/// Counts of one metric of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisRun {
    /// Name of the template.
    pub template_name: String,
    /// Name of the metric.
    pub metric: String,
    /// Hash of the step; empty for a background run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_hash: String,
    /// Number of successful measurements.
    pub successful: u32,
    /// Number of failed measurements.
    pub failed: u32,
    /// Number of measurements without data since the last one with data.
    pub no_data: u32,
    /// Time of the last measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
}
