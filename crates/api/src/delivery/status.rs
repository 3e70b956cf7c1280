//! Observed state of a deployment. Lists are sorted, so that an unchanged state is an equal text.

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
    /// Summary.
    pub phase: DeploymentPhase,
    /// Summary in `KubeVela`'s words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy_phase: Option<LegacyPhase>,
    /// Conditions.
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
    /// UIDs of actions that took effect and whose own status may not say so yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handled_actions: Vec<String>,
}

/// Summary of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeploymentPhase {
    /// Not started.
    #[default]
    Pending,
    /// A rollout is in progress.
    Progressing,
    /// A rollout waits.
    Paused,
    /// Everything is as specified.
    Healthy,
    /// Complete, but not everything is available.
    Degraded,
    /// The rollout was aborted; the stable state runs.
    Aborted,
    /// The deployment is being deleted.
    Deleting,
}

/// Summary in `KubeVela`'s words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LegacyPhase {
    /// In progress.
    Rolling,
    /// Complete.
    Completed,
    /// Aborted or failed.
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
    /// Replicas of each component. Unset if they are not managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Available replicas of the component with the fewest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<u32>,
    /// Time since which no route refers to the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// Last failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
}

/// Weights of clusters with equal ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTraffic {
    /// Names of the Clusters; an empty one is the host cluster.
    pub cluster_names: Vec<String>,
    /// Weights by rule, as they were last verified.
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
    /// Weight. Unset follows available replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Replicas and weights at one point of a rollout.
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
    /// Hash of the spec's target. A rollout starts when it changes.
    pub target_hash: String,
    /// Whether the rollout moves to the target or back to the stable state.
    pub direction: Direction,
    /// The state to which an abort returns.
    pub stable: Allocation,
    /// The observed state at the start.
    pub source: Allocation,
    /// Verified weights at the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_traffic: Vec<ClusterTraffic>,
    /// The desired end.
    pub target: Allocation,
    /// Changes from stable to target.
    pub diff: DiffCounts,
    /// Name of the current wave.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wave: String,
    /// Number of the current group of clusters, from 0 over all waves.
    pub group: u32,
    /// Number of the current step, from 0; the number of steps when all are done.
    pub step: u32,
    /// Hash that an action must name to act on the current step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_hash: String,
    /// Start of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Time at which all conditions of the current step but its waiting time were met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_reached_at: Option<Time>,
    /// Last progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Time>,
    /// Largest measure of progress in the current step.
    #[serde(skip_serializing_if = "is_zero")]
    pub progress: i64,
    /// End of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Why the rollout waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseCause>,
    /// Reason of the last failure.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub failure: Reason,
    /// Whether the current step was promoted by an action.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub promoted: bool,
    /// Whether all remaining steps and waves are skipped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Direction of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// To the target.
    #[default]
    Forward,
    /// Back to the stable state.
    Back,
}

/// Why a rollout waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PauseCause {
    /// An action requested it.
    Action,
    /// A failure with `onFailure: Pause`.
    Failure,
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiffCounts {
    /// Removed.
    pub del: u32,
    /// Changed.
    #[serde(rename = "mod")]
    pub modify: u32,
    /// Added.
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
    /// Successful measurements.
    pub successful: u32,
    /// Failed measurements.
    pub failed: u32,
    /// Measurements without data since the last one with data.
    pub no_data: u32,
    /// Time of the last measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
}
