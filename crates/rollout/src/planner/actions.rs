//! Handles `DeploymentAction`s.

use mainstay_api::Reason;
use mainstay_api::delivery::{
    ActionResult, ActionStatus, ActionVerb, DeploymentAction, Direction, PauseCause, RolloutStatus,
};

use super::begin::{restart, turn_back};
use super::{Draft, version};
use crate::plan::{Action, Step};

/// Handles every action without a result. The effect is part of the status before the action says so; a list
/// of UIDs keeps an action from taking effect twice.
pub(super) fn handle(draft: &mut Draft<'_>) {
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
        let outcome = if is_known { Ok(()) } else { apply(draft, action) };
        if outcome.is_ok() && !is_known {
            draft.status.handled_actions.push(action.metadata.uid.clone());
        }
        complete(draft, action, outcome);
    }
}

fn complete(draft: &mut Draft<'_>, action: &DeploymentAction, outcome: Result<(), Reason>) {
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
            version: version(&action.metadata),
            status,
        },
        reason,
    });
}

fn apply(draft: &mut Draft<'_>, action: &DeploymentAction) -> Result<(), Reason> {
    let now = draft.now();
    let rollout = draft.status.rollout.as_mut().ok_or(Reason::NotApplicable)?;
    let step = action.spec.step_hash.as_ref();
    if step.is_some_and(|hash| *hash != rollout.step_hash) {
        return Err(Reason::StaleStep);
    }
    let is_forward = rollout.direction == Direction::Forward;
    let is_running = is_forward && rollout.completed_at.is_none();
    match action.spec.verb {
        ActionVerb::Promote | ActionVerb::SkipAnalysis if is_running => rollout.promoted = true,
        ActionVerb::PromoteFull if is_running => {
            rollout.full = true;
            (rollout.group, rollout.step) = (0, 0);
            resume(rollout);
        }
        ActionVerb::Pause if is_running && rollout.paused.is_none() => {
            rollout.paused = Some(PauseCause::Action);
        }
        ActionVerb::Resume if rollout.paused.is_some() => {
            resume(rollout);
            rollout.progressed_at = Some(now);
        }
        ActionVerb::Abort if is_running => return back(draft),
        ActionVerb::Rollback if is_forward => return back(draft),
        ActionVerb::Retry if !is_forward => {
            restart(draft);
            return Ok(());
        }
        ActionVerb::Retry if rollout.paused == Some(PauseCause::Failure) => {
            resume(rollout);
            rollout.progressed_at = Some(now);
        }
        _ => return Err(Reason::NotApplicable),
    }
    draft.is_transition = true;
    Ok(())
}

fn back(draft: &mut Draft<'_>) -> Result<(), Reason> {
    if turn_back(draft, Reason::default()) {
        Ok(())
    } else {
        Err(Reason::NotApplicable)
    }
}

/// Ends a pause. A failure for too many clusters stays recorded, so that it does not pause again at once.
fn resume(rollout: &mut RolloutStatus) {
    rollout.paused = None;
    if rollout.failure != Reason::TooManyFailedClusters {
        rollout.failure = Reason::default();
    }
}
