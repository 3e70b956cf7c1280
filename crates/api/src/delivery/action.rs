//! `DeploymentAction`: a request to a rollout, such as a promotion.

use serde::{Deserialize, Serialize};

use super::{Kind, Resource};
use crate::{Reason, Time};

/// A request to a rollout.
pub type DeploymentAction = Resource<ActionSpec>;

/// Desired state of an action. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionSpec {
    /// Name of the deployment.
    pub deployment_name: String,
    /// Requested operation.
    pub verb: ActionVerb,
    /// Value of `status.rollout.stepHash` for which the action is intended. The action is rejected at any
    /// other step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_hash: Option<String>,
}

impl Kind for ActionSpec {
    const KIND: &'static str = "DeploymentAction";
    const PLURAL: &'static str = "deploymentactions";
    type Status = ActionStatus;
}

/// Operation that an action requests.
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
    /// Start a rollout again that was aborted or has failed.
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
    /// Whether the action took effect. Unset until it is handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ActionResult>,
    /// Reason of the result.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub reason: Reason,
    /// Time when the action was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled_at: Option<Time>,
}

/// Whether an action took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionResult {
    /// The action took effect.
    Accepted,
    /// The action had no effect.
    Rejected,
}
