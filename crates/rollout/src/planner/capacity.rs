//! Decides the next number of replicas of each revision: growth is limited by the surge, then shrinking by
//! the availability floor and by the traffic that revisions still receive.

use std::collections::BTreeMap;

use super::cluster_state::{Cell, ClusterState, Mode};

/// Limits of a rollout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of pods above the larger of source and target, over all clusters; `None` for no
    /// limit.
    pub(crate) surge: Option<u32>,
    /// Maximum number of unavailable pods below the smaller of source and target, over all clusters.
    pub(crate) unavailable: u32,
    /// Whether no replicas may change.
    pub(crate) is_paused: bool,
}

/// Conditions for shrinking a revision in a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShrinkPermission {
    /// Whether the planned routes are in effect, or the cluster has none.
    pub(crate) is_routed: bool,
    /// Whether replicas that are no longer needed may be removed. False while they are kept warm.
    pub(crate) may_remove: bool,
}

/// Sets [`Cell::next`] of all cells in reachable clusters.
pub(crate) fn assign_replicas(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    limits: Limits,
    permit: impl Fn(&ClusterState<'_>, &Cell<'_>) -> ShrinkPermission,
    is_drained: impl Fn(&ClusterState<'_>, &Cell<'_>) -> bool,
) {
    if limits.is_paused {
        return;
    }
    grow(clusters, limits);
    shrink(clusters, limits, permit, is_drained);
}

/// Returns the maximum number of pods of a cluster without surge.
fn max_pods(state: &ClusterState<'_>) -> u32 {
    state.start_total().max(state.target_total())
}

fn grow(clusters: &mut BTreeMap<String, ClusterState<'_>>, limits: Limits) {
    let excess = |state: &ClusterState<'_>| state.spec_total().saturating_sub(max_pods(state));
    let used: u32 = clusters
        .values()
        .filter(|state| state.is_reachable)
        .map(excess)
        .sum();
    let mut spare = limits.surge.map(|surge| surge.saturating_sub(used));
    for state in clusters.values_mut().filter(|state| state.is_reachable) {
        let requested: u32 = state.cells.values().map(requested_growth).sum();
        let before = excess(state);
        let free = max_pods(state).saturating_sub(state.spec_total());
        let granted = spare.map_or(requested, |spare| requested.min(free.saturating_add(spare)));
        let mut rest = granted;
        for cell in state.cells.values_mut() {
            let growth = requested_growth(cell).min(rest);
            cell.next = cell.spec + growth;
            rest -= growth;
        }
        state.denied_growth = requested - granted;
        let after = state.next_total().saturating_sub(max_pods(state));
        spare = spare.map(|spare| spare.saturating_sub(after.saturating_sub(before)));
    }
}

fn requested_growth(cell: &Cell<'_>) -> u32 {
    if cell.is_shrinking() || !cell.is_in_target {
        0
    } else {
        cell.desired.saturating_sub(cell.spec)
    }
}

/// Budgets for shrinking that are shared by all clusters.
struct SharedBudget {
    /// Number of pods that may become unavailable.
    unavailable: u32,
    /// Number of replicas that may be released by clusters that lose replicas.
    release: u32,
}

fn shrink(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    limits: Limits,
    permit: impl Fn(&ClusterState<'_>, &Cell<'_>) -> ShrinkPermission,
    is_drained: impl Fn(&ClusterState<'_>, &Cell<'_>) -> bool,
) {
    let mut shared = SharedBudget {
        unavailable: 0,
        release: releasable_replicas(clusters),
    };
    let deficit: u32 = clusters
        .values()
        .filter(|state| state.is_reachable)
        .map(|state| min_available(state, shared.release).saturating_sub(state.available_total()))
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

/// Returns the number of replicas that clusters may release: those that are not replaced, and those that
/// other clusters have gained.
pub(crate) fn releasable_replicas(clusters: &BTreeMap<String, ClusterState<'_>>) -> u32 {
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

/// Returns the number of pods that must remain available in a cluster, before `maxUnavailable` is
/// subtracted.
fn min_available(state: &ClusterState<'_>, release: u32) -> u32 {
    let (start, target) = (state.start_total(), state.target_total());
    if target >= start {
        return start;
    }
    let released = start.saturating_sub(state.spec_total());
    start.saturating_sub(released.saturating_add(release)).max(target)
}

/// Returns the revisions to shrink: removed ones first, then by name.
fn shrinking_order(state: &ClusterState<'_>) -> Vec<String> {
    let mut cells: Vec<&Cell<'_>> = state
        .cells
        .values()
        .filter(|cell| cell.next > lower_bound(state, cell) && (cell.is_managed || !cell.is_in_target))
        .collect();
    cells.sort_by_key(|cell| (cell.is_in_target, cell.revision.clone()));
    cells.into_iter().map(|cell| cell.revision.clone()).collect()
}

fn lower_bound(state: &ClusterState<'_>, cell: &Cell<'_>) -> u32 {
    if cell.is_shrinking() || !cell.is_in_target || state.mode == Mode::Final {
        cell.target
    } else {
        // A growing revision that is ahead of its step is not changed.
        cell.spec.max(cell.target)
    }
}

fn shrink_cell(
    state: &mut ClusterState<'_>,
    revision: &str,
    shared: &mut SharedBudget,
    permit: &impl Fn(&ClusterState<'_>, &Cell<'_>) -> ShrinkPermission,
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
        .filter(|other| other.is_in_target && !other.is_shrinking())
        .all(|other| other.low >= other.target && other.available >= other.target);
    let budget = if state.mode == Mode::Final && is_grown && permission.may_remove {
        u32::MAX
    } else {
        state.denied_growth
    };
    let others: u32 = state
        .cells
        .values()
        .filter(|other| other.revision != revision)
        .map(|other| other.available.min(other.next))
        .sum();
    let own = cell.available.min(cell.next);
    let floor = min_available(state, shared.release);
    let required = (own + others).min(floor).saturating_sub(shared.unavailable);
    let bound = required.saturating_sub(others).min(own);
    let lowest = lower_bound(state, cell)
        .max(replicas_for_traffic(cell))
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
    state.denied_growth = state.denied_growth.saturating_sub(cell.next - lowest);
    if let Some(cell) = state.cells.get_mut(revision) {
        cell.next = lowest;
    }
}

/// Returns the number of replicas that a revision needs for the traffic that it still receives: the source
/// size at its source weight, the target size at its target weight, proportional in between. Never 0 while
/// the revision has a weight.
pub(crate) fn replicas_for_traffic(cell: &Cell<'_>) -> u32 {
    if cell.weight == 0 {
        return 0;
    }
    let span = cell.source_weight.saturating_sub(cell.target_weight);
    let above = cell.weight.saturating_sub(cell.target_weight);
    let shrinkage = u64::from(cell.source.saturating_sub(cell.target));
    let proportional = match (span, above) {
        (_, 0) => 0,
        (span, above) if above >= span => shrinkage,
        // Weights are whole percents, so one percent may be due to rounding.
        (span, above) => (shrinkage * u64::from(above - 1)).div_ceil(u64::from(span)),
    };
    let proportional = u32::try_from(proportional).unwrap_or(u32::MAX);
    cell.target.saturating_add(proportional).max(1)
}
