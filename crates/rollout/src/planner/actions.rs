//! Handles `DeploymentAction`s.

use mainstay_api::Reason;
use mainstay_api::delivery::{
    ActionResult, ActionSpec, ActionStatus, ActionVerb, DeploymentAction, Direction, PauseCause,
    RolloutStatus,
};

use super::begin::{restart, turn_back};
use super::{Draft, version};
use crate::plan::{Action, Step};

/// Handles every action without a result. The effect is written to the status before the result of the
/// action; a list of UIDs prevents an action from taking effect twice.
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

/// Returns why an action does not fit the state of a rollout.
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
    let fits = match action.verb {
        ActionVerb::Promote | ActionVerb::SkipAnalysis | ActionVerb::PromoteFull => is_running,
        ActionVerb::Pause => is_running && rollout.paused.is_none(),
        ActionVerb::Resume => rollout.paused.is_some(),
        ActionVerb::Abort => is_running && has_stable,
        ActionVerb::Rollback => is_forward && has_stable,
        ActionVerb::Retry => !is_forward || rollout.paused == Some(PauseCause::Failure),
    };
    if fits { Ok(()) } else { Err(Reason::NotApplicable) }
}

fn apply(draft: &mut Draft<'_>, action: &DeploymentAction) -> Result<(), Reason> {
    let now = draft.now();
    check_action(draft.status.rollout.as_ref(), &action.spec)?;
    let rollout = draft.status.rollout.as_mut().ok_or(Reason::NotApplicable)?;
    match action.spec.verb {
        ActionVerb::Promote | ActionVerb::SkipAnalysis => rollout.promoted = true,
        ActionVerb::PromoteFull => {
            rollout.full = true;
            (rollout.group, rollout.step) = (0, 0);
            resume(rollout);
        }
        ActionVerb::Pause => rollout.paused = Some(PauseCause::Action),
        ActionVerb::Abort | ActionVerb::Rollback => return back(draft),
        ActionVerb::Retry if rollout.direction == Direction::Back => {
            restart(draft);
            return Ok(());
        }
        ActionVerb::Resume | ActionVerb::Retry => {
            resume(rollout);
            rollout.progressed_at = Some(now);
        }
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
