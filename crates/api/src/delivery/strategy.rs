//! Strategy of a rollout: type, budgets, waves, steps.

use serde::{Deserialize, Serialize};

use super::{AnalysisReference, ClusterSelector, IntOrString, StringMatch};

/// How a change is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// Type of the strategy.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<StrategyType>,
    /// Maximum number of pods above the desired number. 25% if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// Maximum number of unavailable pods. 0 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// Clusters over which percentages of the budgets are calculated. `Global` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<RolloutScope>,
    /// Time in seconds without progress after which the rollout fails. 600 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<u32>,
    /// Reaction to a failure. `Pause` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailureAction>,
    /// Whether the rollout is paused: no further step starts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Groups of clusters that are changed one after the other. A cluster belongs to the first wave that
    /// selects it. Clusters that no wave selects are changed last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Wave>,
    /// Steps of a canary, or checks of a blue-green deployment before the switch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RolloutStep>,
    /// Retention of the previous revision for an immediate rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_window: Option<RollbackWindow>,
}

/// Type of a strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyType {
    /// All new replicas are added at once without a limit, then traffic is shifted, then old replicas are
    /// removed.
    #[default]
    Direct,
    /// Replicas are replaced in batches within `maxSurge` and `maxUnavailable`.
    Rolling,
    /// Replicas and weights change in steps.
    Canary,
    /// All new replicas are added, checks run, and traffic is switched once.
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

/// Reaction to a failure.
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
    /// Selected clusters. If unset, all remaining clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// Maximum number of clusters that change at the same time. All if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_clusters: Option<IntOrString>,
    /// Maximum number of failed clusters. If exceeded, the rollout fails. Unlimited if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failed_clusters: Option<u32>,
    /// Time in seconds after the wave before the next one starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak_seconds: Option<u32>,
}

/// A step. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStep {
    /// Cumulative share of the target's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_replicas: Option<IntOrString>,
    /// Cumulative progress from the source's to the target's weights in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_weight: Option<u32>,
    /// Waits for a period of time or for a promotion.
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
    /// Duration in seconds. If unset, the pause waits for a promotion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u32>,
}

/// A route by headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderRoute {
    /// Name of the route. A later step with the same name replaces the route; an empty match removes it.
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

/// Mirroring of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mirror {
    /// Share of requests that are copied, in percent. 0 ends mirroring.
    pub percent: u32,
}

/// Retention of the previous revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackWindow {
    /// Time in seconds after completion before the replicas of the previous revision are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_warm_seconds: Option<u32>,
}
