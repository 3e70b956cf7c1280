//! Decides how many replicas each revision has next: growth within the surge, then shrinking within the
//! availability floor and the traffic that revisions still receive.

use std::collections::BTreeMap;

use super::world::{Cell, ClusterState, Mode};

/// Bounds of a rollout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Pods above the larger of source and target, over all clusters; `None` for no limit.
    pub(crate) surge: Option<u32>,
    /// Pods below the smaller of source and target that may be unavailable, over all clusters.
    pub(crate) unavailable: u32,
    /// Whether no replicas change.
    pub(crate) is_paused: bool,
}

/// What allows a cluster to shrink.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Permission {
    /// Whether routes are in effect as planned, or the cluster has none.
    pub(crate) is_routed: bool,
    /// Whether replicas that are no longer needed may be removed: not while they are kept warm.
    pub(crate) may_remove: bool,
}

/// Sets [`Cell::next`] of every cell in reachable clusters.
pub(crate) fn assign(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    limits: Limits,
    permit: impl Fn(&ClusterState<'_>, &Cell<'_>) -> Permission,
    is_drained: impl Fn(&ClusterState<'_>, &Cell<'_>) -> bool,
) {
    if limits.is_paused {
        return;
    }
    grow(clusters, limits);
    shrink(clusters, limits, permit, is_drained);
}

/// Pods that a cluster may have without surge.
fn ceiling(state: &ClusterState<'_>) -> u32 {
    state.start_total().max(state.target_total())
}

fn grow(clusters: &mut BTreeMap<String, ClusterState<'_>>, limits: Limits) {
    let excess = |state: &ClusterState<'_>| state.spec_total().saturating_sub(ceiling(state));
    let used: u32 = clusters
        .values()
        .filter(|state| state.is_reachable)
        .map(excess)
        .sum();
    let mut spare = limits.surge.map(|surge| surge.saturating_sub(used));
    for state in clusters.values_mut().filter(|state| state.is_reachable) {
        let wanted: u32 = state.cells.values().map(wanted_growth).sum();
        let before = excess(state);
        let free = ceiling(state).saturating_sub(state.spec_total());
        let granted = spare.map_or(wanted, |spare| wanted.min(free.saturating_add(spare)));
        let mut rest = granted;
        for cell in state.cells.values_mut() {
            let growth = wanted_growth(cell).min(rest);
            cell.next = cell.spec + growth;
            rest -= growth;
        }
        state.not_granted = wanted - granted;
        let after = state.next_total().saturating_sub(ceiling(state));
        spare = spare.map(|spare| spare.saturating_sub(after.saturating_sub(before)));
    }
}

fn wanted_growth(cell: &Cell<'_>) -> u32 {
    if cell.is_shrinking() || !cell.is_wanted {
        0
    } else {
        cell.desired.saturating_sub(cell.spec)
    }
}

/// Budgets that clusters share while they shrink.
struct Shared {
    /// Pods that may become unavailable.
    unavailable: u32,
    /// Replicas that clusters which lose replicas may release.
    release: u32,
}

fn shrink(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    limits: Limits,
    permit: impl Fn(&ClusterState<'_>, &Cell<'_>) -> Permission,
    is_drained: impl Fn(&ClusterState<'_>, &Cell<'_>) -> bool,
) {
    let mut shared = Shared {
        unavailable: 0,
        release: releasable(clusters),
    };
    let deficit: u32 = clusters
        .values()
        .filter(|state| state.is_reachable)
        .map(|state| floor(state, shared.release).saturating_sub(state.available_total()))
        .sum();
    shared.unavailable = limits.unavailable.saturating_sub(deficit);
    for state in clusters
        .values_mut()
        .filter(|state| state.is_reachable && state.mode != Mode::Hold)
    {
        for revision in shrinking_order(state) {
            shrink_cell(state, &revision, &mut shared, &permit, &is_drained);
        }
    }
}

/// Returns how many replicas clusters may give up: what nothing replaces, and what other clusters have
/// gained.
pub(crate) fn releasable(clusters: &BTreeMap<String, ClusterState<'_>>) -> u32 {
    let (mut lost, mut gained, mut available, mut released) = (0_u32, 0_u32, 0_u32, 0_u32);
    for state in clusters.values() {
        let (start, target) = (state.start_total(), state.target_total());
        lost += start.saturating_sub(target);
        let gain = target.saturating_sub(start);
        gained += gain;
        if state.is_reachable {
            available += state.available_total().saturating_sub(start).min(gain);
        }
        if target < start {
            released += start.saturating_sub(state.spec_total()).min(start - target);
        }
    }
    let replaced = lost.min(gained);
    (lost - replaced + available.min(replaced)).saturating_sub(released)
}

/// Returns the number of pods that must stay available in a cluster, without `maxUnavailable`.
fn floor(state: &ClusterState<'_>, release: u32) -> u32 {
    let (start, target) = (state.start_total(), state.target_total());
    if target >= start {
        return start;
    }
    let released = start.saturating_sub(state.spec_total());
    start.saturating_sub(released.saturating_add(release)).max(target)
}

/// Revisions to shrink: removed ones first, then by name.
fn shrinking_order(state: &ClusterState<'_>) -> Vec<String> {
    let mut cells: Vec<&Cell<'_>> = state
        .cells
        .values()
        .filter(|cell| cell.next > lower_bound(state, cell) && (cell.is_managed || !cell.is_wanted))
        .collect();
    cells.sort_by_key(|cell| (cell.is_wanted, cell.revision.clone()));
    cells.into_iter().map(|cell| cell.revision.clone()).collect()
}

fn lower_bound(state: &ClusterState<'_>, cell: &Cell<'_>) -> u32 {
    if cell.is_shrinking() || !cell.is_wanted || state.mode == Mode::Final {
        cell.target
    } else {
        // A growing revision ahead of its step is left as it is.
        cell.spec.max(cell.target)
    }
}

fn shrink_cell(
    state: &mut ClusterState<'_>,
    revision: &str,
    shared: &mut Shared,
    permit: &impl Fn(&ClusterState<'_>, &Cell<'_>) -> Permission,
    is_drained: &impl Fn(&ClusterState<'_>, &Cell<'_>) -> bool,
) {
    let Some(cell) = state.cells.get(revision) else {
        return;
    };
    let permission = permit(state, cell);
    if !permission.is_routed || (cell.has_service && cell.weight == 0 && !is_drained(state, cell)) {
        return;
    }
    let is_grown = state
        .cells
        .values()
        .filter(|other| other.is_wanted && !other.is_shrinking())
        .all(|other| other.low >= other.target && other.available >= other.target);
    let budget = if state.mode == Mode::Final && is_grown && permission.may_remove {
        u32::MAX
    } else {
        state.not_granted
    };
    let others: u32 = state
        .cells
        .values()
        .filter(|other| other.revision != revision)
        .map(|other| other.available.min(other.next))
        .sum();
    let own = cell.available.min(cell.next);
    let floor = floor(state, shared.release);
    let required = (own + others).min(floor).saturating_sub(shared.unavailable);
    let bound = required.saturating_sub(others).min(own);
    let lowest = lower_bound(state, cell)
        .max(needed(cell))
        .max(bound)
        .max(cell.next.saturating_sub(budget));
    if lowest >= cell.next {
        return;
    }
    let lost = (own + others).min(floor).saturating_sub(others + own.min(lowest));
    shared.unavailable -= lost.min(shared.unavailable);
    let released = |total: u32| state.start_total().saturating_sub(total);
    let total = state.next_total();
    if state.target_total() < state.start_total() {
        let more = released(total - (cell.next - lowest)) - released(total);
        shared.release = shared.release.saturating_sub(more);
    }
    state.not_granted = state.not_granted.saturating_sub(cell.next - lowest);
    if let Some(cell) = state.cells.get_mut(revision) {
        cell.next = lowest;
    }
}

/// Returns the replicas that a revision needs for the traffic it still receives: its source size at its
/// source weight, its target size at its target weight, in proportion between them, and never 0 while it has
/// a weight.
pub(crate) fn needed(cell: &Cell<'_>) -> u32 {
    if cell.weight == 0 {
        return 0;
    }
    let span = cell.source_weight.saturating_sub(cell.target_weight);
    let above = cell.weight.saturating_sub(cell.target_weight);
    let shrinkage = u64::from(cell.source.saturating_sub(cell.target));
    let proportional = match (span, above) {
        (_, 0) => 0,
        (span, above) if above >= span => shrinkage,
        // Weights are whole percents: one of them may be due to rounding.
        (span, above) => (shrinkage * u64::from(above - 1)).div_ceil(u64::from(span)),
    };
    let proportional = u32::try_from(proportional).unwrap_or(u32::MAX);
    cell.target.saturating_add(proportional).max(1)
}
