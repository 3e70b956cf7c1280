//! Handles `DeploymentAction`s.

use mainstay_api::Reason;
use mainstay_api::delivery::{
    ActionResult, ActionSpec, ActionStatus, ActionVerb, DeploymentAction, DeploymentStatus, Direction,
    PauseCause, RolloutStatus,
};

use super::begin::{restart_rollout, start_rollback};
use super::{Draft, object_version};
use crate::plan::{Action, Step};

/// Handles all actions that have no result yet. The effect is written to the status of the deployment
/// before the result of the action; a list of UIDs ensures that an action takes effect only once.
pub(super) fn handle_actions(draft: &mut Draft<'_>) {
    let pending: Vec<&DeploymentAction> = draft
        .snapshot
        .actions
        .iter()
        .filter(|action| action.spec.deployment_name == draft.snapshot.deployment.name())
        .filter(|action| action.status.result.is_none())
        .collect();
    draft
        .status
        .handled_actions
        .retain(|uid| pending.iter().any(|action| action.metadata.uid == *uid));
    for action in pending {
        let is_known = draft.status.handled_actions.contains(&action.metadata.uid);
        let outcome = if is_known {
            Ok(())
        } else {
            apply_action(draft, action)
        };
        if outcome.is_ok() && !is_known {
            draft.status.handled_actions.push(action.metadata.uid.clone());
        }
        complete_action(draft, action, outcome);
    }
}

fn complete_action(draft: &mut Draft<'_>, action: &DeploymentAction, outcome: Result<(), Reason>) {
    let (result, reason) = match outcome {
        Ok(()) => (ActionResult::Accepted, Reason::ActionAccepted),
        Err(reason) => (ActionResult::Rejected, reason),
    };
    let status = ActionStatus {
        result: Some(result),
        reason: reason.clone(),
        handled_at: Some(draft.now()),
    };
    draft.finish.push(Step {
        action: Action::CompleteAction {
            name: action.name().to_owned(),
            version: object_version(&action.metadata),
            status,
        },
        reason,
    });
}

/// Returns the reason if an action is not applicable in the state of a rollout.
pub fn check_action(rollout: Option<&RolloutStatus>, action: &ActionSpec) -> Result<(), Reason> {
    let rollout = rollout.ok_or(Reason::NotApplicable)?;
    if action
        .step_hash
        .as_ref()
        .is_some_and(|hash| *hash != rollout.step_hash)
    {
        return Err(Reason::StaleStep);
    }
    let is_forward = rollout.direction == Direction::Forward;
    let is_running = is_forward && rollout.completed_at.is_none();
    let has_stable = !rollout.stable.placement.is_empty();
    let is_applicable = match action.verb {
        ActionVerb::Promote | ActionVerb::SkipAnalysis | ActionVerb::PromoteFull => is_running,
        ActionVerb::Pause => is_running && rollout.paused.is_none(),
        ActionVerb::Resume => rollout.paused.is_some(),
        ActionVerb::Abort => is_running && has_stable,
        ActionVerb::Rollback => is_forward && has_stable,
        ActionVerb::Retry => !is_forward || rollout.paused == Some(PauseCause::Failure),
    };
    if is_applicable {
        Ok(())
    } else {
        Err(Reason::NotApplicable)
    }
}

fn apply_action(draft: &mut Draft<'_>, action: &DeploymentAction) -> Result<(), Reason> {
    let now = draft.now();
    check_action(draft.status.rollout.as_ref(), &action.spec)?;
    let rollout = draft.status.rollout.as_mut().ok_or(Reason::NotApplicable)?;
    match action.spec.verb {
        ActionVerb::Promote | ActionVerb::SkipAnalysis => rollout.promoted = true,
        ActionVerb::PromoteFull => {
            rollout.full = true;
            (rollout.group, rollout.step) = (0, 0);
            resume(&mut draft.status);
        }
        ActionVerb::Pause => rollout.paused = Some(PauseCause::Action),
        ActionVerb::Abort | ActionVerb::Rollback => return roll_back(draft),
        ActionVerb::Retry if rollout.direction == Direction::Back => {
            restart_rollout(draft);
            return Ok(());
        }
        ActionVerb::Resume | ActionVerb::Retry => {
            rollout.progressed_at = Some(now);
            resume(&mut draft.status);
        }
    }
    draft.is_transition = true;
    Ok(())
}

fn roll_back(draft: &mut Draft<'_>) -> Result<(), Reason> {
    if start_rollback(draft, Reason::default()) {
        Ok(())
    } else {
        Err(Reason::NotApplicable)
    }
}

/// Ends a pause. A failed analysis starts again. The failure `TooManyFailedClusters` is kept, so that the
/// rollout does not pause again immediately.
fn resume(status: &mut DeploymentStatus) {
    let Some(rollout) = &mut status.rollout else {
        return;
    };
    rollout.paused = None;
    if rollout.failure == Reason::AnalysisFailed {
        status.analysis.clear();
    }
    if rollout.failure != Reason::TooManyFailedClusters {
        rollout.failure = Reason::default();
    }
}
