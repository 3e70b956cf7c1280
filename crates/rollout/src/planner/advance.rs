//! Moves a rollout to its next step or group or completes it, and handles failures.

use mainstay_api::Reason;
use mainstay_api::delivery::{
    ApplicationDeployment, Direction, FailureAction, PauseCause, RolloutStatus, RolloutStep,
};

use super::analysis::{AnalysisState, analysis_state};
use super::begin::{set_step_hash, start_rollback};
use super::cluster_state::{ClusterState, Mode};
use super::{Draft, Stage, keep_warm_seconds, stage};

/// Default time without progress after which a rollout fails, in seconds.
const DEFAULT_DEADLINE: u32 = 600;

/// Whether no further step may start and no replicas may change.
pub(super) fn is_paused(deployment: &ApplicationDeployment, rollout: &RolloutStatus) -> bool {
    let is_requested = stage::strategy(deployment).paused && rollout.direction == Direction::Forward;
    rollout.paused.is_some() || is_requested
}

/// Moves the rollout forward if the requirements of the current step are met.
pub(super) fn advance(draft: &mut Draft<'_>, stage: &Stage<'_>) {
    let rollout = &stage.rollout;
    if rollout.completed_at.is_some() {
        return;
    }
    record_progress(draft, stage);
    let current: Option<RolloutStep> = stage.steps.get(rollout.step as usize).cloned();
    let analysis = current.as_ref().and_then(|step| step.analysis.as_ref());
    let template = analysis.map(|analysis| analysis.template_name.clone());
    let analysis_state = analysis_state(draft, rollout, template.as_deref());
    if analysis_state == AnalysisState::Failed
        && handle_failure(draft, Reason::AnalysisFailed, "an analysis failed")
    {
        return;
    }
    if has_too_many_failures(stage)
        && rollout.failure != Reason::TooManyFailedClusters
        && handle_failure(
            draft,
            Reason::TooManyFailedClusters,
            "too many clusters of a wave cannot be reached",
        )
    {
        return;
    }
    if is_paused(&draft.snapshot.deployment, rollout) {
        draft.waiting = Some(Reason::RolloutPaused);
        return;
    }
    let is_reached = current_clusters(stage).all(|state| is_reached(stage, state));
    if !is_reached {
        check_deadline(draft, rollout);
        return;
    }
    match current {
        Some(step) => finish_step(draft, rollout, &step, analysis_state),
        None => finish_group(draft, stage, analysis_state),
    }
}

/// Returns the reachable clusters of the current group.
fn current_clusters<'a>(stage: &'a Stage<'_>) -> impl Iterator<Item = &'a ClusterState<'a>> {
    let current = stage.rollout.group as usize;
    stage
        .clusters
        .values()
        .filter(move |state| state.is_reachable && state.group == current)
}

/// Whether a cluster has reached the goals of the current step, as far as the budget allows.
fn is_reached(stage: &Stage<'_>, state: &ClusterState<'_>) -> bool {
    let is_routed = stage
        .routes
        .get(&state.name)
        .is_some_and(|routes| routes.is_verified || (routes.lacks_backend && !takes_part(state)));
    let is_grown = state
        .cells
        .values()
        .filter(|cell| cell.is_in_target)
        .all(|cell| cell.is_shrinking() || (cell.low >= cell.desired && cell.available >= cell.desired));
    if state.mode == Mode::Step {
        let is_blocked = state
            .cells
            .values()
            .all(|cell| cell.next == cell.spec && cell.available >= cell.spec.min(cell.desired));
        return is_routed && (is_grown || (is_blocked && state.denied_growth > 0));
    }
    is_routed && is_grown && is_cleaned_up(stage, state)
}

/// Whether a cluster runs replicas of the new revision in the current step. If not, a route of an earlier
/// rollout has no other backend yet and is kept until one exists.
fn takes_part(state: &ClusterState<'_>) -> bool {
    state.mode != Mode::Step
        || state
            .cells
            .values()
            .any(|cell| cell.is_in_target && cell.desired > 0)
}

/// Whether a cluster has no obsolete workloads and no replicas above its target. Replicas that another
/// cluster must replace first and replicas that are kept warm do not count.
fn is_cleaned_up(stage: &Stage<'_>, state: &ClusterState<'_>) -> bool {
    let is_last = stage.rollout.group as usize + 1 >= stage.groups.len();
    let is_relocated = state.target_total() < state.start_total() && !is_last;
    let cells = || state.cells.values();
    let is_done = cells().all(|cell| {
        let is_gone = cell.is_in_target || cell.workloads.is_empty();
        is_gone && (cell.spec <= cell.target || !cell.is_managed)
    });
    is_done || is_relocated || stage.is_kept_warm
}

fn has_too_many_failures(stage: &Stage<'_>) -> bool {
    let current = stage.rollout.group as usize;
    let Some(group) = stage.groups.get(current) else {
        return false;
    };
    let Some(max) = group.max_failed else {
        return false;
    };
    let failed = stage
        .groups
        .iter()
        .take(current + 1)
        .filter(|other| other.wave == group.wave)
        .flat_map(|other| &other.clusters)
        .filter(|name| stage.clusters.get(*name).is_some_and(|state| !state.is_reachable));
    failed.count() > max as usize
}

/// Records a failure and applies `onFailure`. Returns whether the rollout changed.
fn handle_failure(draft: &mut Draft<'_>, failure: Reason, message: &str) -> bool {
    let Some(rollout) = draft.status.rollout.clone() else {
        return false;
    };
    if rollout.direction == Direction::Back || rollout.paused == Some(PauseCause::Failure) {
        return false;
    }
    let action = stage::strategy(&draft.snapshot.deployment).on_failure;
    let now = draft.now();
    match action.unwrap_or_default() {
        FailureAction::Rollback if start_rollback(draft, failure.clone()) => return true,
        FailureAction::Continue => {
            if rollout.failure == failure {
                return false;
            }
            update_rollout(draft, |rollout| {
                rollout.failure = failure.clone();
                rollout.progressed_at = Some(now);
            });
        }
        FailureAction::Pause | FailureAction::Rollback => update_rollout(draft, |rollout| {
            rollout.failure = failure.clone();
            rollout.paused = Some(PauseCause::Failure);
        }),
    }
    draft.add_event(failure, true, message);
    true
}

fn update_rollout(draft: &mut Draft<'_>, change: impl FnOnce(&mut RolloutStatus)) {
    if let Some(rollout) = &mut draft.status.rollout {
        change(rollout);
        draft.is_transition = true;
    }
}

fn record_progress(draft: &mut Draft<'_>, stage: &Stage<'_>) {
    let reachable = || stage.clusters.values().filter(|state| state.is_reachable);
    let cells = || reachable().flat_map(|state| state.cells.values());
    let gained: u32 = cells().map(|cell| cell.available.min(cell.target)).sum();
    let removed: u32 = cells().map(|cell| cell.source.saturating_sub(cell.spec)).sum();
    let verified = reachable()
        .filter(|state| {
            stage
                .routes
                .get(&state.name)
                .is_some_and(|routes| routes.is_verified)
        })
        .count();
    let progress = i64::from(gained) + i64::from(removed) + i64::try_from(verified).unwrap_or(0);
    let now = draft.now();
    if let Some(rollout) = draft.status.rollout.as_mut()
        && progress > rollout.progress
    {
        rollout.progress = progress;
        rollout.progressed_at = Some(now);
    }
}

fn check_deadline(draft: &mut Draft<'_>, rollout: &RolloutStatus) {
    let deadline = stage::strategy(&draft.snapshot.deployment).progress_deadline_seconds;
    let since = draft
        .status
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.progressed_at);
    if let Some(since) = since
        && rollout.direction == Direction::Forward
        && draft.has_passed(since, deadline.unwrap_or(DEFAULT_DEADLINE))
    {
        handle_failure(
            draft,
            Reason::ProgressDeadlineExceeded,
            "the rollout made no progress",
        );
    }
}

fn finish_step(
    draft: &mut Draft<'_>,
    rollout: &RolloutStatus,
    step: &RolloutStep,
    analysis_state: AnalysisState,
) {
    let Some(reached) = rollout.step_reached_at else {
        let now = draft.now();
        update_rollout(draft, |rollout| rollout.step_reached_at = Some(now));
        return;
    };
    if !rollout.promoted {
        if let Some(pause) = step.pause {
            let Some(seconds) = pause.duration_seconds else {
                draft.waiting = Some(Reason::WaitingForPromotion);
                return;
            };
            if !draft.has_passed(reached, seconds) {
                draft.waiting = Some(Reason::WaitingForTime);
                return;
            }
        }
        if let Some(reason) = waiting_reason(analysis_state) {
            draft.waiting = Some(reason);
            return;
        }
    }
    let next = rollout.step + 1;
    start_step(draft, rollout.group, next);
    draft.add_event(
        Reason::StepStarted,
        false,
        format!("step {} completed", rollout.step),
    );
}

/// Returns the reason if an analysis makes the rollout wait.
fn waiting_reason(analysis_state: AnalysisState) -> Option<Reason> {
    match analysis_state {
        AnalysisState::Passed | AnalysisState::Failed => None,
        AnalysisState::Running => Some(Reason::WaitingForTime),
        AnalysisState::NoData => Some(Reason::AnalysisNoData),
        AnalysisState::TemplateMissing => Some(Reason::AnalysisTemplateNotFound),
    }
}

fn finish_group(draft: &mut Draft<'_>, stage: &Stage<'_>, analysis_state: AnalysisState) {
    let rollout = &stage.rollout;
    let current = rollout.group as usize;
    let is_last = current + 1 >= stage.groups.len();
    let now = draft.now();
    if !is_last {
        let Some(reached) = rollout.step_reached_at else {
            update_rollout(draft, |rollout| rollout.step_reached_at = Some(now));
            return;
        };
        let soak = stage.groups.get(current).map_or(0, |group| group.soak_seconds);
        if !rollout.promoted && !draft.has_passed(reached, soak) {
            draft.waiting = Some(Reason::WaitingForTime);
            return;
        }
        if let Some(reason) = waiting_reason(analysis_state).filter(|_| !rollout.promoted) {
            draft.waiting = Some(reason);
            return;
        }
        start_step(draft, rollout.group + 1, 0);
        return;
    }
    update_rollout(draft, |rollout| {
        rollout.completed_at = Some(now);
        rollout.step_reached_at = None;
        rollout.promoted = false;
        rollout.paused = None;
    });
    let (reason, message) = match rollout.direction {
        Direction::Forward => (Reason::RolloutCompleted, "the rollout is complete"),
        Direction::Back => (Reason::RolloutAborted, "the stable state is restored"),
    };
    draft.add_event(reason, false, message);
}

fn start_step(draft: &mut Draft<'_>, group: u32, step: u32) {
    let now = draft.now();
    draft.status.analysis.retain(|run| run.step_hash.is_empty());
    update_rollout(draft, |rollout| {
        rollout.group = group;
        rollout.step = step;
        rollout.promoted = false;
        rollout.step_reached_at = None;
        rollout.progressed_at = Some(now);
        set_step_hash(rollout);
    });
}

/// Whether replicas of the previous revision are kept after completion.
pub(super) fn keeps_previous_warm(deployment: &ApplicationDeployment, rollout: &RolloutStatus) -> bool {
    rollout.direction == Direction::Forward && keep_warm_seconds(deployment) > 0
}
