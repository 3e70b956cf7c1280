//! Updates the status and the conditions of a deployment.

use mainstay_api::delivery::{
    ClusterPlacement, ClusterTraffic, DeploymentPhase, Direction, LegacyPhase, RevisionPlacement,
    RolloutStatus, RouteWeights,
};
use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};

use super::cluster_state::{Cell, ClusterState};
use super::objects::find_conflicts;
use super::routes::find_traffic;
use super::target::{Problem, from_status};
use super::{Draft, Stage, idle_times};
use crate::names::label_value;

/// Sets phase, conditions, placement and weights.
pub(super) fn update_status(draft: &mut Draft<'_>, stage: Option<&Stage<'_>>, problem: Option<&Problem>) {
    draft.status.observed_generation = draft.snapshot.deployment.metadata.generation;
    if let Some(stage) = stage {
        report_traffic(draft, stage);
        report_placement(draft, stage);
        if let Some(rollout) = &mut draft.status.rollout {
            let group = stage.groups.get(rollout.group as usize);
            rollout.wave = group.map(|group| group.wave.clone()).unwrap_or_default();
        }
    }
    let ready = ready_condition(draft, stage, problem);
    set_condition(draft, ConditionType::Ready, ready.clone());
    let resolved = match problem {
        None => (true, Reason::RevisionsResolved, String::new()),
        Some(problem) => (false, problem.reason.clone(), problem.message.clone()),
    };
    set_condition(draft, ConditionType::RevisionsResolved, resolved);
    let progressing = progressing_condition(draft);
    set_condition(draft, ConditionType::Progressing, progressing);
    if let Some(stage) = stage {
        report_clusters(draft, stage);
    }
    set_phase(draft, ready.0);
}

type ConditionValue = (bool, Reason, String);

fn set_condition(draft: &mut Draft<'_>, kind: ConditionType, (holds, reason, message): ConditionValue) {
    let condition = Condition::new(kind, ConditionStatus::from(holds), reason, message);
    draft.status.conditions.set(condition, draft.snapshot.now);
}

fn ready_condition(
    draft: &Draft<'_>,
    stage: Option<&Stage<'_>>,
    problem: Option<&Problem>,
) -> ConditionValue {
    if let Some(problem) = problem {
        return (false, problem.reason.clone(), problem.message.clone());
    }
    let Some((stage, rollout)) = stage.zip(draft.status.rollout.as_ref()) else {
        return (false, Reason::RolloutInProgress, String::new());
    };
    if let Some((cluster, names)) = find_conflicts(draft.snapshot, stage).into_iter().next() {
        let message = format!("{} in cluster {cluster:?} has another owner", names.join(", "));
        return (false, Reason::NameConflict, message);
    }
    if rollout.completed_at.is_none() {
        return (false, Reason::RolloutInProgress, String::new());
    }
    let is_available = |state: &ClusterState<'_>| {
        let mut cells = state.cells.values().filter(|cell| cell.is_in_target);
        state.is_reachable && cells.all(|cell| cell.available >= cell.target)
    };
    let missing = stage
        .clusters
        .values()
        .find(|state| !is_available(state) && is_used(state));
    match missing {
        Some(state) => (
            false,
            Reason::ReplicasUnavailable,
            format!("not all replicas are available in cluster {:?}", state.name),
        ),
        None => (true, Reason::Ready, String::new()),
    }
}

fn is_used(state: &ClusterState<'_>) -> bool {
    state.cells.values().any(|cell| cell.is_in_target)
}

fn progressing_condition(draft: &Draft<'_>) -> ConditionValue {
    let Some(rollout) = &draft.status.rollout else {
        return (false, Reason::RolloutInProgress, String::new());
    };
    let is_back = rollout.direction == Direction::Back;
    if rollout.completed_at.is_some() {
        let reason = if is_back {
            Reason::RolloutAborted
        } else {
            Reason::RolloutCompleted
        };
        return (!is_back, reason, String::new());
    }
    if !rollout.failure.is_empty() {
        return (false, rollout.failure.clone(), String::new());
    }
    let reason = match (&draft.waiting, is_back) {
        (Some(waiting), _) => waiting.clone(),
        (None, true) => Reason::RolloutAborting,
        (None, false) => Reason::RolloutInProgress,
    };
    (true, reason, String::new())
}

fn set_phase(draft: &mut Draft<'_>, is_ready: bool) {
    let phase = match &draft.status.rollout {
        None => DeploymentPhase::Pending,
        Some(rollout) => rollout_phase(draft, rollout, is_ready),
    };
    let legacy = match phase {
        DeploymentPhase::Pending | DeploymentPhase::Deleting => None,
        DeploymentPhase::Progressing | DeploymentPhase::Paused => Some(LegacyPhase::Rolling),
        DeploymentPhase::Healthy => Some(LegacyPhase::Completed),
        DeploymentPhase::Degraded | DeploymentPhase::Aborted => Some(LegacyPhase::Failed),
    };
    draft.status.phase = phase;
    draft.status.legacy_phase = legacy;
}

fn rollout_phase(draft: &Draft<'_>, rollout: &RolloutStatus, is_ready: bool) -> DeploymentPhase {
    let is_complete = rollout.completed_at.is_some();
    match rollout.direction {
        Direction::Back if is_complete => DeploymentPhase::Aborted,
        Direction::Forward if is_complete && is_ready => DeploymentPhase::Healthy,
        Direction::Forward if is_complete => DeploymentPhase::Degraded,
        _ if rollout.paused.is_some() || draft.waiting.is_some() => DeploymentPhase::Paused,
        _ => DeploymentPhase::Progressing,
    }
}

fn report_traffic(draft: &mut Draft<'_>, stage: &Stage<'_>) {
    let previous = std::mem::take(&mut draft.status.traffic);
    let none = Vec::new();
    for (cluster, routes) in &stage.routes {
        let known = find_traffic(&previous, cluster);
        let is_reachable = stage
            .clusters
            .get(cluster)
            .is_some_and(|state| state.is_reachable);
        let entry = if routes.is_verified && is_reachable {
            ReportedRoutes {
                weights: &routes.weights,
                verified: true,
            }
        } else {
            ReportedRoutes {
                weights: known.map_or(&none, |known| &known.routes),
                verified: false,
            }
        };
        if !entry.weights.is_empty() || !routes.manifests.is_empty() {
            add_traffic(&mut draft.status.traffic, cluster, entry);
        }
    }
}

/// Weights of the routes of a cluster, and whether they were read from the cluster.
#[derive(Clone, Copy)]
struct ReportedRoutes<'a> {
    weights: &'a [RouteWeights],
    verified: bool,
}

/// Adds a cluster to the entry with equal weights, or adds a new entry.
fn add_traffic(traffic: &mut Vec<ClusterTraffic>, cluster: &str, reported: ReportedRoutes<'_>) {
    let ReportedRoutes { weights, verified } = reported;
    let is_equal = |entry: &&mut ClusterTraffic| entry.verified == verified && entry.routes == weights;
    if let Some(entry) = traffic.iter_mut().find(is_equal) {
        entry.cluster_names.push(cluster.to_owned());
        return;
    }
    traffic.push(ClusterTraffic {
        cluster_names: vec![cluster.to_owned()],
        routes: weights.to_vec(),
        verified,
    });
}

fn report_placement(draft: &mut Draft<'_>, stage: &Stage<'_>) {
    let now = draft.now();
    let idle = idle_times(&draft.status);
    let end = from_status(&super::end_allocation(&stage.rollout).placement);
    let source = from_status(&stage.rollout.source.placement);
    let mut names: std::collections::BTreeMap<String, &str> = std::collections::BTreeMap::new();
    for assignment in end.keys().chain(source.keys()) {
        names.insert(label_value(&assignment.revision), &assignment.revision);
    }
    let mut revisions: std::collections::BTreeMap<&str, Vec<ClusterPlacement>> =
        std::collections::BTreeMap::new();
    let previous = std::mem::take(&mut draft.status.placement);
    for (revision, placement) in unobserved_placements(&previous, stage) {
        revisions.entry(revision).or_default().push(placement.clone());
    }
    for state in stage.clusters.values().filter(|state| !state.view.is_unobserved) {
        let routes = stage.routes.get(&state.name);
        let is_verified = routes.is_some_and(|routes| routes.is_verified);
        for cell in state.cells.values().filter(|cell| is_shown(cell)) {
            let key = (state.name.clone(), cell.revision.clone());
            let is_idle = is_verified && cell.weight == 0 && cell.has_service;
            let since = idle.get(&key).copied().unwrap_or(now);
            let name = names.get(&cell.revision).copied().unwrap_or(&cell.revision);
            revisions.entry(name).or_default().push(ClusterPlacement {
                cluster_name: state.name.clone(),
                replicas: cell.is_managed.then_some(cell.spec),
                available: Some(cell.available),
                idle_since: is_idle.then_some(since),
                last_error: state.view.last_error.clone().unwrap_or_default(),
            });
        }
    }
    draft.status.placement = revisions
        .into_iter()
        .map(|(revision, mut clusters)| {
            clusters.sort_by(|left, right| left.cluster_name.cmp(&right.cluster_name));
            RevisionPlacement {
                revision_name: revision.to_owned(),
                clusters,
            }
        })
        .collect();
}

/// Returns the entries of the previous status for clusters that the controllers could not read since their
/// start.
fn unobserved_placements<'a>(
    previous: &'a [RevisionPlacement],
    stage: &Stage<'_>,
) -> Vec<(&'a str, &'a ClusterPlacement)> {
    let is_unobserved = |placement: &&ClusterPlacement| {
        let state = stage.clusters.get(&placement.cluster_name);
        state.is_some_and(|state| state.view.is_unobserved)
    };
    let entries = previous.iter().flat_map(|revision| {
        let own = revision.clusters.iter().filter(is_unobserved);
        own.map(|placement| (revision.revision_name.as_str(), placement))
    });
    entries.collect()
}

fn is_shown(cell: &Cell<'_>) -> bool {
    cell.is_in_target || !cell.workloads.is_empty()
}

fn report_clusters(draft: &mut Draft<'_>, stage: &Stage<'_>) {
    let lost: Vec<&str> = stage
        .clusters
        .values()
        .filter(|state| !state.is_reachable && !state.cells.is_empty())
        .map(|state| state.name.as_str())
        .collect();
    for state in stage.clusters.values() {
        draft.requeue_times.extend(
            state
                .view
                .breaker_open_until
                .filter(|until| *until > draft.snapshot.now),
        );
    }
    let reachable = if lost.is_empty() {
        (true, Reason::ClustersReachable, String::new())
    } else {
        (
            false,
            Reason::ClusterUnreachable,
            format!("unreachable: {}", lost.join(", ")),
        )
    };
    set_condition(draft, ConditionType::ClustersReachable, reachable);
    let used = || {
        stage.routes.iter().filter(|(name, _)| {
            stage
                .clusters
                .get(*name)
                .is_some_and(|state| !state.cells.is_empty())
        })
    };
    let traffic = if draft.snapshot.deployment.spec.traffic.is_none() {
        (true, Reason::NoTraffic, String::new())
    } else if let Some((name, _)) = used().find(|(_, routes)| routes.lacks_provider) {
        let message = format!("cluster {name:?} supports no provider for these routes");
        (false, Reason::NoTrafficProvider, message)
    } else if let Some((name, _)) = used().find(|(_, routes)| routes.lacks_backend) {
        let message = format!("no revision with a weight is available in cluster {name:?}");
        (false, Reason::NoAvailableBackend, message)
    } else if let Some((name, _)) = used().find(|(_, routes)| !routes.is_verified) {
        (
            false,
            Reason::TrafficPending,
            format!("routes of cluster {name:?} are not in effect"),
        )
    } else {
        (true, Reason::TrafficApplied, String::new())
    };
    set_condition(draft, ConditionType::TrafficApplied, traffic);
    let failure = draft
        .status
        .rollout
        .as_ref()
        .map(|rollout| rollout.failure.clone());
    let analysis = match failure {
        Some(Reason::AnalysisFailed) => (false, Reason::AnalysisFailed, String::new()),
        _ => match &draft.waiting {
            Some(reason @ (Reason::AnalysisNoData | Reason::AnalysisTemplateNotFound)) => {
                (false, reason.clone(), String::new())
            }
            _ => (true, Reason::AnalysisPassed, String::new()),
        },
    };
    set_condition(draft, ConditionType::AnalysisPassed, analysis);
}
