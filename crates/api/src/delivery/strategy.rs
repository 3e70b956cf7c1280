//! Strategy of a rollout: kind, budgets, waves, steps.

use serde::{Deserialize, Serialize};

use super::{AnalysisReference, ClusterSelector, IntOrString, StringMatch};

/// How a change is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// Kind of the strategy.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<StrategyType>,
    /// Pods that may exist above the desired number. 25% if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// Pods that may be unavailable below the desired number. 0 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// Clusters over which percentages of the budgets are calculated. `Global` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<RolloutScope>,
    /// Time without progress after which the rollout has failed. 600 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<u32>,
    /// What a failure leads to. `Pause` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailureAction>,
    /// Whether no further step starts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Groups of clusters, one after the other. A cluster belongs to the first wave that selects it; clusters
    /// that no wave selects come last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Wave>,
    /// Steps of a canary, or checks before the switch of a blue-green deployment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RolloutStep>,
    /// How long the previous revision can be returned to at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_window: Option<RollbackWindow>,
}

/// Kind of a strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyType {
    /// New replicas without a limit, then traffic, then removal.
    #[default]
    Direct,
    /// Batches within `maxSurge` and `maxUnavailable`.
    Rolling,
    /// Steps.
    Canary,
    /// All new replicas, checks, one switch of traffic.
    BlueGreen,
}

/// Clusters over which percentages are calculated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutScope {
    /// All clusters.
    #[default]
    Global,
    /// The clusters of the current wave.
    PerWave,
}

/// What a failure leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureAction {
    /// The rollout waits for an action.
    #[default]
    Pause,
    /// The rollout returns to the stable state.
    Rollback,
    /// The rollout continues.
    Continue,
}

/// A group of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wave {
    /// Name of the wave.
    pub name: String,
    /// Which clusters. Unset selects all that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// Clusters that change at the same time. All if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_clusters: Option<IntOrString>,
    /// Failed clusters that do not fail the rollout. No limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failed_clusters: Option<u32>,
    /// Time after the wave before the next one starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak_seconds: Option<u32>,
}

/// One step; exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStep {
    /// Cumulative share of the target's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_replicas: Option<IntOrString>,
    /// Cumulative progress from the source's to the target's weights, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_weight: Option<u32>,
    /// Waits for a time or for a promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Waits for the result of an analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisReference>,
    /// Sends requests with certain headers to the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_route: Option<HeaderRoute>,
    /// Copies requests to the target; responses are discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
}

/// A pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pause {
    /// Length. Unset waits for a promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u32>,
}

/// A route by headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderRoute {
    /// Name; a later step of the same name replaces the route, and an empty match removes it.
    pub name: String,
    /// Conditions, combined by AND.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HeaderMatch>,
}

/// A condition on a header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderMatch {
    /// Name of the header.
    pub header_name: String,
    /// Condition on its value.
    #[serde(flatten)]
    pub value: StringMatch,
}

/// Mirrored requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mirror {
    /// Share of requests that are copied; 0 stops mirroring.
    pub percent: u32,
}

/// How long the previous revision stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackWindow {
    /// Unreferenced revisions that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<u32>,
    /// Time after completion before the replicas of the previous revision are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_warm_seconds: Option<u32>,
}
