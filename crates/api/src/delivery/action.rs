//! `DeploymentAction`: one request to a rollout, such as a promotion.

use serde::{Deserialize, Serialize};

use super::{Kind, Resource};
use crate::{Reason, Time};

/// A request to a rollout.
pub type DeploymentAction = Resource<ActionSpec>;

/// What is requested. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionSpec {
    /// Name of the deployment.
    pub deployment_name: String,
    /// The request.
    pub verb: ActionVerb,
    /// `status.rollout.stepHash` for which the action is meant; it is rejected at any other step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_hash: Option<String>,
}

impl Kind for ActionSpec {
    const KIND: &'static str = "DeploymentAction";
    const PLURAL: &'static str = "deploymentactions";
    type Status = ActionStatus;
}

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionVerb {
    /// Continue with the next step.
    #[default]
    Promote,
    /// Skip all remaining steps and waves.
    PromoteFull,
    /// Start no further step.
    Pause,
    /// End a pause that an action or a failure started.
    Resume,
    /// Return to the stable state.
    Abort,
    /// Start an aborted or failed rollout again.
    Retry,
    /// Do not wait for the current analysis.
    SkipAnalysis,
    /// Return to the state before the last completed rollout.
    Rollback,
}

/// Outcome of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionStatus {
    /// Whether it took effect. Unset until it was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ActionResult>,
    /// Why.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub reason: Reason,
    /// When it was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled_at: Option<Time>,
}

/// Whether an action took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionResult {
    /// It took effect.
    Accepted,
    /// It had no effect.
    Rejected,
}
