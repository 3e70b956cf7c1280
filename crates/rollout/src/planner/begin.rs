//! Starts rollouts: forward if the target changes, back if the rollout is aborted.

use std::collections::BTreeSet;

use mainstay_api::Reason;
use mainstay_api::delivery::{
    Allocation, DiffCounts, Direction, RevisionPlacement, RolloutStatus, StrategyType,
};

use super::cluster_state::observed_placement;
use super::duplicates::find_in_revisions;
use super::target::{Problem, allocation_hash, from_status};
use super::{Draft, PreparedRevisions, prepare_revisions, stage};
use crate::diff::{Placements, diff};
use crate::manifest::hash_text;
use crate::names::label_value;

/// Starts a rollout if `target` differs from the target of the current one.
pub(super) fn begin_rollout(draft: &mut Draft<'_>, target: Allocation) -> Result<(), Problem> {
    let hash = allocation_hash(&target);
    let current = draft.status.rollout.as_ref();
    if current.is_some_and(|rollout| rollout.target_hash == hash) {
        return Ok(());
    }
    let previous = current.cloned();
    let stable = match &previous {
        None => Allocation::default(),
        Some(rollout) if rollout.completed_at.is_some() && rollout.direction == Direction::Forward => {
            rollout.target.clone()
        }
        Some(rollout) => rollout.stable.clone(),
    };
    check_supported(draft, &stable, &target)?;
    let prepared = prepare_revisions(draft.snapshot, previous.as_ref());
    let observed = observed_placement(draft.snapshot, &prepared, previous.as_ref());
    check_names(&prepared, [&observed, &stable.placement, &target.placement])?;
    start_rollout(draft, observed, stable, target);
    Ok(())
}

/// Starts a rollout to the current target again, after an abort or a failure.
pub(super) fn restart_rollout(draft: &mut Draft<'_>) {
    let Some(previous) = draft.status.rollout.clone() else {
        return;
    };
    let prepared = prepare_revisions(draft.snapshot, Some(&previous));
    let observed = observed_placement(draft.snapshot, &prepared, Some(&previous));
    start_rollout(draft, observed, previous.stable, previous.target);
}

fn start_rollout(
    draft: &mut Draft<'_>,
    observed: Vec<RevisionPlacement>,
    stable: Allocation,
    target: Allocation,
) {
    let now = draft.now();
    let changes = diff(&from_status(&stable.placement), &from_status(&target.placement));
    let count = |changes: &[crate::diff::Change]| u32::try_from(changes.len()).unwrap_or(u32::MAX);
    let mut rollout = RolloutStatus {
        target_hash: allocation_hash(&target),
        direction: Direction::Forward,
        source: Allocation {
            placement: observed,
            routes: Vec::new(),
        },
        source_traffic: draft.status.traffic.clone(),
        diff: DiffCounts {
            del: count(&changes.del),
            modify: count(&changes.modify),
            add: count(&changes.add),
        },
        stable,
        target,
        started_at: Some(now),
        progressed_at: Some(now),
        ..RolloutStatus::default()
    };
    set_step_hash(&mut rollout);
    draft.add_event(
        Reason::RolloutStarted,
        false,
        format!(
            "rollout started: {} added, {} changed, {} removed",
            rollout.diff.add, rollout.diff.modify, rollout.diff.del
        ),
    );
    draft.status.rollout = Some(rollout);
    draft.status.analysis.clear();
    draft.is_transition = true;
}

/// Starts the rollback to the stable state. Returns false if there is no stable state.
pub(super) fn start_rollback(draft: &mut Draft<'_>, failure: Reason) -> bool {
    let now = draft.now();
    let previous = draft.status.rollout.clone();
    let Some(mut rollout) = previous.filter(|rollout| !rollout.stable.placement.is_empty()) else {
        return false;
    };
    let source = observed_placement(
        draft.snapshot,
        &prepare_revisions(draft.snapshot, Some(&rollout)),
        Some(&rollout),
    );
    rollout.source.placement = source;
    rollout.source_traffic.clone_from(&draft.status.traffic);
    rollout.direction = Direction::Back;
    (rollout.group, rollout.step, rollout.progress) = (0, 0, 0);
    rollout.completed_at = None;
    rollout.step_reached_at = None;
    rollout.paused = None;
    rollout.promoted = false;
    rollout.full = false;
    rollout.failure = failure.clone();
    rollout.progressed_at = Some(now);
    set_step_hash(&mut rollout);
    draft.status.rollout = Some(rollout);
    draft.status.analysis.clear();
    draft.is_transition = true;
    let reason = if failure.is_empty() {
        Reason::RolloutAborting
    } else {
        failure
    };
    draft.add_event(reason, true, "the rollout returns to its stable state");
    true
}

/// Sets the hash that identifies the current step.
pub(super) fn set_step_hash(rollout: &mut RolloutStatus) {
    let text = format!(
        "{}/{:?}/{}/{}",
        rollout.target_hash, rollout.direction, rollout.group, rollout.step
    );
    rollout.step_hash = hash_text(&text).chars().take(8).collect();
}

/// Fails if objects of the observed, the stable and the target revisions have the same names.
fn check_names(
    prepared: &PreparedRevisions,
    placements: [&Vec<RevisionPlacement>; 3],
) -> Result<(), Problem> {
    let used: BTreeSet<String> = placements
        .into_iter()
        .flatten()
        .map(|placement| label_value(&placement.revision_name))
        .collect();
    let found = find_in_revisions(prepared, |revision| used.contains(revision));
    found.problem.map_or(Ok(()), Err)
}

/// Fails unless the strategy supports the change. Strategies other than `Direct` support at most one
/// growing and one shrinking revision.
fn check_supported(draft: &Draft<'_>, stable: &Allocation, target: &Allocation) -> Result<(), Problem> {
    let kind = stage::strategy(&draft.snapshot.deployment)
        .kind
        .unwrap_or_default();
    if kind == StrategyType::Direct || stable.placement.is_empty() {
        return Ok(());
    }
    let (before, after) = (from_status(&stable.placement), from_status(&target.placement));
    let revisions: BTreeSet<&str> = before
        .keys()
        .chain(after.keys())
        .map(|assignment| assignment.revision.as_str())
        .collect();
    let total = |placements: &Placements, revision: &str| -> u64 {
        let own = placements
            .iter()
            .filter(|(assignment, _)| assignment.revision == revision);
        own.map(|(_, replicas)| u64::from(replicas.unwrap_or(1))).sum()
    };
    let count = |grows: bool| {
        let changes = |revision: &&&str| {
            let (before, after) = (total(&before, revision), total(&after, revision));
            if grows { after > before } else { after < before }
        };
        revisions.iter().filter(changes).count()
    };
    if count(true) <= 1 && count(false) <= 1 {
        return Ok(());
    }
    Err(Problem {
        reason: Reason::PlanUnsupported,
        message: format!(
            "strategy {kind:?} replaces one revision by another; here {} shrink and {} grow: change one pair at a time or use strategy Direct",
            count(false),
            count(true)
        ),
    })
}
