//! Waves, groups and steps: determines how far each cluster may proceed.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::delivery::{
    ApplicationDeployment, Direction, HeaderRoute, IntOrString, RolloutScope, RolloutStatus, RolloutStep,
    Strategy, StrategyType,
};

use super::cluster_state::{ClusterState, Mode};
use crate::division::{Share, divide};
use crate::quantity::{IntOrPercent, RolloutBudget, Rounding};

/// Clusters that change at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) wave: String,
    pub(crate) clusters: BTreeSet<String>,
    /// Time to wait after the group in seconds.
    pub(crate) soak_seconds: u32,
    /// Maximum number of failed clusters of the wave.
    pub(crate) max_failed: Option<u32>,
}

/// Combined effects of all steps up to the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Cumulative share of the replicas by which revisions grow.
    pub(crate) replicas: Option<IntOrPercent>,
    /// Cumulative progress of weights in percent.
    pub(crate) weight: u32,
    pub(crate) headers: Vec<HeaderRoute>,
    pub(crate) mirror: u32,
}

/// Returns the strategy of a deployment, or the default strategy.
pub(crate) fn strategy(deployment: &ApplicationDeployment) -> Strategy {
    deployment.spec.strategy.clone().unwrap_or_default()
}

/// Returns the steps of a rollout. The first deployment and a rollback have no steps.
pub(crate) fn steps(deployment: &ApplicationDeployment, rollout: &RolloutStatus) -> Vec<RolloutStep> {
    let is_first = rollout
        .stable
        .placement
        .iter()
        .flat_map(|placement| &placement.clusters)
        .all(|cluster| cluster.replicas == Some(0));
    if rollout.full || is_first || rollout.direction == Direction::Back || rollout.completed_at.is_some() {
        return Vec::new();
    }
    let strategy = strategy(deployment);
    match strategy.kind.unwrap_or_default() {
        StrategyType::Direct | StrategyType::Rolling => Vec::new(),
        StrategyType::Canary => strategy.steps,
        StrategyType::BlueGreen => {
            let all = RolloutStep {
                set_replicas: Some(IntOrString::Text("100%".into())),
                ..RolloutStep::default()
            };
            let checks = strategy
                .steps
                .into_iter()
                .filter(|step| step.set_replicas.is_none() && step.set_weight.is_none());
            std::iter::once(all).chain(checks).collect()
        }
    }
}

/// Returns the combined effects of the steps up to and including `current`. Weights never decrease.
pub(crate) fn effects(steps: &[RolloutStep], current: usize) -> Effects {
    let mut effects = Effects::default();
    for step in steps.iter().take(current + 1) {
        if let Some(Ok(share)) = step.set_replicas.as_ref().map(|text| text.to_string().parse()) {
            effects.replicas = Some(share);
        }
        effects.weight = effects.weight.max(step.set_weight.unwrap_or_default().min(100));
        if let Some(mirror) = step.mirror {
            effects.mirror = mirror.percent.min(100);
        }
        if let Some(route) = &step.header_route {
            effects.headers.retain(|known| known.name != route.name);
            if !route.matches.is_empty() {
                effects.headers.push(route.clone());
            }
        }
    }
    effects
}

/// Returns the groups in order: the waves, each divided according to its concurrency.
pub(crate) fn groups(
    deployment: &ApplicationDeployment,
    rollout: &RolloutStatus,
    clusters: &BTreeMap<String, ClusterState<'_>>,
) -> Vec<Group> {
    let strategy = strategy(deployment);
    let involved = || clusters.values().filter(|state| !state.cells.is_empty());
    let is_one = rollout.full || rollout.direction == Direction::Back || strategy.waves.is_empty();
    if is_one {
        let all = involved().map(|state| state.name.clone()).collect();
        return vec![Group {
            wave: String::new(),
            clusters: all,
            soak_seconds: 0,
            max_failed: None,
        }];
    }
    let mut left: Vec<&ClusterState<'_>> = involved().collect();
    let mut groups = Vec::new();
    for wave in &strategy.waves {
        let is_selected = |state: &&ClusterState<'_>| {
            wave.cluster_selector.as_ref().is_none_or(|selector| {
                let has_name = selector.name.as_ref().is_none_or(|name| *name == state.name);
                let mut labels = selector.labels.iter();
                has_name && labels.all(|(key, value)| state.view.labels.get(key) == Some(value))
            })
        };
        let (selected, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_selected);
        left = rest;
        let limit = wave.max_concurrent_clusters.as_ref();
        let limit = limit.and_then(|text| text.to_string().parse::<IntOrPercent>().ok());
        let limit = limit.map_or(selected.len(), |limit| {
            let total = u32::try_from(selected.len()).unwrap_or(u32::MAX);
            limit.resolve(total, Rounding::Down) as usize
        });
        let chunks: Vec<_> = selected.chunks(limit.max(1)).collect();
        for (number, chunk) in chunks.iter().enumerate() {
            let is_last = number + 1 == chunks.len();
            groups.push(Group {
                wave: wave.name.clone(),
                clusters: chunk.iter().map(|state| state.name.clone()).collect(),
                soak_seconds: if is_last {
                    wave.soak_seconds.unwrap_or_default()
                } else {
                    0
                },
                max_failed: wave.max_failed_clusters,
            });
        }
    }
    if !left.is_empty() || groups.is_empty() {
        groups.push(Group {
            wave: String::new(),
            clusters: left.into_iter().map(|state| state.name.clone()).collect(),
            soak_seconds: 0,
            max_failed: None,
        });
    }
    groups
}

/// Sets the mode and the desired replicas of every cluster.
pub(crate) fn set_goals(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    rollout: &RolloutStatus,
    groups: &[Group],
    steps: &[RolloutStep],
) {
    let current = rollout.group as usize;
    let is_complete = rollout.completed_at.is_some();
    for state in clusters.values_mut() {
        let group = groups
            .iter()
            .position(|group| group.clusters.contains(&state.name));
        state.group = group.unwrap_or(current);
        state.mode = if is_complete || state.group < current {
            Mode::Final
        } else if state.group > current {
            Mode::Hold
        } else if (rollout.step as usize) < steps.len() {
            Mode::Step
        } else {
            Mode::Final
        };
        for cell in state.cells.values_mut() {
            cell.desired = match state.mode {
                Mode::Final => cell.target,
                Mode::Hold | Mode::Step if cell.is_in_target => cell.source,
                Mode::Hold | Mode::Step => cell.spec,
            };
        }
    }
    set_step_goals(clusters, &effects(steps, rollout.step as usize));
}

fn set_step_goals(clusters: &mut BTreeMap<String, ClusterState<'_>>, effects: &Effects) {
    let mut growing: Vec<(String, String, u32)> = Vec::new();
    for state in clusters.values().filter(|state| state.mode == Mode::Step) {
        for cell in state.cells.values().filter(|cell| cell.increment() > 0) {
            growing.push((state.name.clone(), cell.revision.clone(), cell.increment()));
        }
    }
    let shares = step_shares(&growing, effects);
    for ((cluster, revision, _), share) in growing.iter().zip(shares) {
        let cell = clusters
            .get_mut(cluster)
            .and_then(|state| state.cells.get_mut(revision));
        if let Some(cell) = cell {
            cell.desired = cell.source + share;
        }
    }
}

fn step_shares(growing: &[(String, String, u32)], effects: &Effects) -> Vec<u32> {
    let is_visible = !effects.headers.is_empty() || effects.mirror > 0;
    let Some(share) = effects.replicas else {
        let minimum = u32::from(is_visible);
        let by_weight = |increment: u32| {
            let share = (u64::from(increment) * u64::from(effects.weight)).div_ceil(100);
            u32::try_from(share).unwrap_or(u32::MAX).max(minimum)
        };
        return growing
            .iter()
            .map(|(_, _, increment)| by_weight(*increment))
            .collect();
    };
    let total: u32 = growing.iter().map(|(_, _, increment)| increment).sum();
    let shares: Vec<Share> = growing
        .iter()
        .map(|(cluster, revision, increment)| Share {
            max: Some(*increment),
            ..Share::new(format!("{cluster}/{revision}"), *increment)
        })
        .collect();
    divide(share.resolve_step(total), &shares)
}

/// Returns the surge and the number of unavailable pods that a rollout allows. The surge is `None` if it is
/// unlimited.
pub(crate) fn budget(
    deployment: &ApplicationDeployment,
    rollout: &RolloutStatus,
    clusters: &BTreeMap<String, ClusterState<'_>>,
) -> (Option<u32>, u32) {
    let strategy = strategy(deployment);
    let is_per_wave = strategy.scope == Some(RolloutScope::PerWave);
    let in_scope = |state: &&ClusterState<'_>| !is_per_wave || state.group == rollout.group as usize;
    let total: u32 = clusters
        .values()
        .filter(in_scope)
        .map(|state| state.start_total().max(state.target_total()))
        .sum();
    let parse = |text: &Option<IntOrString>, default| {
        let text = text.as_ref().map(ToString::to_string);
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let max_surge = parse(&strategy.max_surge, IntOrPercent::Percent(25));
    let max_unavailable = parse(&strategy.max_unavailable, IntOrPercent::Int(0));
    let budget = RolloutBudget::new(total, max_surge, max_unavailable);
    let unavailable = budget.as_ref().map_or(0, |budget| budget.unavailable);
    match strategy.kind.unwrap_or_default() {
        StrategyType::Direct | StrategyType::BlueGreen => (None, unavailable),
        StrategyType::Rolling | StrategyType::Canary => {
            let surge = budget.map_or(1, |budget| budget.surge);
            let needs_surge = unavailable == 0 || deployment.spec.traffic.is_some();
            let minimum = if needs_surge { minimum_surge(clusters) } else { 0 };
            (Some(surge.max(minimum)), unavailable)
        }
    }
}

/// Returns the minimum surge. Weights are whole percents, so one percent of a cluster's growth must be
/// possible at once. Each further shrinking revision may need one replica more than its exact share.
fn minimum_surge(clusters: &BTreeMap<String, ClusterState<'_>>) -> u32 {
    let per_cluster = clusters.values().map(|state| {
        let growing = state.cells.values().filter(|cell| cell.increment() > 0);
        let growth: u32 = growing.map(|cell| cell.increment().div_ceil(100)).sum();
        let shrinking = state
            .cells
            .values()
            .filter(|cell| cell.is_shrinking() && cell.source_weight > 0);
        let further = u32::try_from(shrinking.count())
            .unwrap_or(u32::MAX)
            .saturating_sub(1);
        if growth == 0 {
            0
        } else {
            growth.saturating_add(further)
        }
    });
    per_cluster.max().unwrap_or(0)
}
