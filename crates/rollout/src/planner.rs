//! Plans one deployment from a snapshot.
//!
//! ```text
//! spec ──resolve──▶ target ──begin──▶ rollout ──actions, analysis, advance──▶ stage
//! stage, observed ──goals──▶ replicas and weights ──▶ actions by cluster
//! ```
//!
//! A plan that moves the rollout to another step writes only the status, and the next plan acts on it.
//! Every step is stored before it has effects, so that a crash between two writes loses no information.

#![allow(clippy::similar_names, reason = "stage and state are both established terms")]

mod actions;
mod advance;
mod analysis;
mod begin;
mod capacity;
mod cluster_state;
mod deletion;
mod duplicates;
mod objects;
mod report;
mod routes;
mod stage;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    Allocation, DeploymentStatus, Direction, RolloutStatus, RolloutStep, RouteShare,
};
use mainstay_api::{Reason, Time};

use crate::manifest::{Identity, Manifest, ObjectKey, PreparedRevision, ServicePorts, prepare_revision};
use crate::names::{label_value, service_name};
use crate::plan::{Action, Plan, Requeue, Step};
use crate::snapshot::{Snapshot, Version};
pub use actions::check_action;
use cluster_state::ClusterState;
use routes::ClusterRoutes;
pub(crate) use stage::steps as rollout_steps;
use target::Problem;

/// Rendered revisions by label value.
#[derive(Default)]
struct PreparedRevisions {
    revisions: BTreeMap<String, PreparedRevision>,
    problem: Option<Problem>,
}

impl PreparedRevisions {
    fn service_of(&self, revision: &str, component: &str) -> String {
        let known = self.revisions.get(&label_value(revision));
        let known = known.and_then(|revision| revision.services.get(component));
        known
            .cloned()
            .unwrap_or_else(|| service_name(revision, component, 1))
    }
}

/// A plan in progress.
struct Draft<'a> {
    snapshot: &'a Snapshot,
    status: DeploymentStatus,
    /// Whether the rollout moved to another step.
    is_transition: bool,
    finish: Vec<Step>,
    requeue_times: Vec<Timestamp>,
    /// Reason why the current step waits.
    waiting: Option<Reason>,
}

impl<'a> Draft<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            status: snapshot.deployment.status.clone(),
            is_transition: false,
            finish: Vec::new(),
            requeue_times: Vec::new(),
            waiting: None,
        }
    }

    fn now(&self) -> Time {
        Time::from_timestamp(self.snapshot.now)
    }

    /// Whether `seconds` have passed since `since`. If not, requeues the deployment at that time.
    fn has_passed(&mut self, since: Time, seconds: u32) -> bool {
        let due = since.after(SignedDuration::from_secs(i64::from(seconds)));
        if due > self.snapshot.now {
            self.requeue_times.push(due);
        }
        due <= self.snapshot.now
    }

    fn add_event(&mut self, reason: Reason, is_warning: bool, message: impl Into<String>) {
        self.finish.push(Step {
            action: Action::Event {
                is_warning,
                message: message.into(),
            },
            reason,
        });
    }

    /// Completes the plan. A status with a transition is written first, any other status is written last.
    fn into_plan(mut self, clusters: Clusters) -> Plan {
        let deployment = &self.snapshot.deployment;
        let mut prepare = clusters.prepare;
        if self.status != deployment.status {
            let write = Step {
                action: Action::WriteStatus(
                    object_version(&deployment.metadata),
                    Box::new(self.status.clone()),
                ),
                reason: Reason::StatusChanged,
            };
            if self.is_transition {
                prepare.push(write);
            } else {
                self.finish.insert(0, write);
            }
        }
        self.finish.extend(clusters.finish);
        let requeue = if self.is_transition {
            Requeue::Immediately
        } else {
            self.requeue_times.sort();
            self.requeue_times
                .first()
                .map_or(Requeue::OnEvent, |at| Requeue::At(*at))
        };
        Plan {
            prepare,
            clusters: clusters.steps,
            finish: self.finish,
            desired: clusters.desired,
            status: self.status,
            requeue,
        }
    }
}

/// Steps of the clusters, and the writes to the host cluster before and after them.
#[derive(Default)]
struct Clusters {
    prepare: Vec<Step>,
    steps: BTreeMap<String, Vec<Step>>,
    finish: Vec<Step>,
    desired: BTreeMap<String, Vec<Arc<Manifest>>>,
}

fn object_version(metadata: &mainstay_api::ObjectMeta) -> Version {
    Version {
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
    }
}

/// State of a rollout and the values derived from it.
struct Stage<'a> {
    rollout: RolloutStatus,
    clusters: BTreeMap<String, ClusterState<'a>>,
    groups: Vec<stage::Group>,
    steps: Vec<RolloutStep>,
    routes: BTreeMap<String, ClusterRoutes>,
    prepared: PreparedRevisions,
    /// Objects with names that collide. They are not applied.
    duplicates: BTreeSet<ObjectKey>,
    /// Whether replicas of the previous revision are kept after completion.
    is_kept_warm: bool,
}

/// Returns the plan of a deployment. Never fails: errors are reported as conditions.
#[must_use]
pub fn plan(snapshot: &Snapshot) -> Plan {
    let metadata = &snapshot.deployment.metadata;
    if metadata.is_deleting() {
        return deletion::plan_deletion(snapshot);
    }
    let mut draft = Draft::new(snapshot);
    let has_finalizer = metadata
        .finalizers
        .iter()
        .any(|name| name == mainstay_api::delivery::FINALIZER);
    if !has_finalizer {
        let step = Step {
            action: Action::AddFinalizer(object_version(metadata)),
            reason: Reason::FinalizerMissing,
        };
        draft.is_transition = true;
        let prepare = vec![step];
        return draft.into_plan(Clusters {
            prepare,
            ..Clusters::default()
        });
    }
    let problem = match target::resolve_target(snapshot) {
        Ok(target) => begin::begin_rollout(&mut draft, target).err(),
        Err(problem) => Some(problem),
    };
    if draft.status.rollout.is_none() {
        report::update_status(&mut draft, None, problem.as_ref());
        return draft.into_plan(Clusters::default());
    }
    actions::handle_actions(&mut draft);
    analysis::count_measurements(&mut draft);
    let is_transition = draft.is_transition;
    let Some(rollout) = draft.status.rollout.as_ref().filter(|_| !is_transition).cloned() else {
        report::update_status(&mut draft, None, problem.as_ref());
        return draft.into_plan(Clusters::default());
    };
    let stage = build_stage(snapshot, rollout, &mut draft);
    let problem = problem.or_else(|| stage.prepared.problem.clone());
    advance::advance(&mut draft, &stage);
    report::update_status(&mut draft, Some(&stage), problem.as_ref());
    if draft.is_transition {
        return draft.into_plan(Clusters::default());
    }
    let clusters = objects::plan_objects(snapshot, &stage);
    draft.into_plan(clusters)
}

/// Returns the allocation at which a rollout ends.
fn end_allocation(rollout: &RolloutStatus) -> &Allocation {
    match rollout.direction {
        Direction::Forward => &rollout.target,
        Direction::Back => &rollout.stable,
    }
}

fn build_stage<'a>(snapshot: &'a Snapshot, rollout: RolloutStatus, draft: &mut Draft<'_>) -> Stage<'a> {
    let deployment = &snapshot.deployment;
    let mut prepared = prepare_revisions(snapshot, Some(&rollout));
    let mut clusters = cluster_state::build_states(snapshot, &rollout, end_allocation(&rollout), &prepared);
    let groups = stage::groups(deployment, &rollout, &clusters);
    let steps = stage::steps(deployment, &rollout);
    stage::set_goals(&mut clusters, &rollout, &groups, &steps);
    let effects = stage::effects(&steps, rollout.step as usize);
    let effects = if (rollout.step as usize) < steps.len() {
        effects
    } else {
        stage::Effects::default()
    };
    let input = routes::RouteInput {
        deployment,
        rollout: &rollout,
        end: end_allocation(&rollout),
        effects: &effects,
        prepared: &prepared,
        releasable: capacity::releasable_replicas(&clusters),
    };
    let routes = routes::plan_all(&input, &clusters);
    assign_capacity(draft, &rollout, &mut clusters, &routes);
    let found = duplicates::find_in_rollout(&prepared, &clusters, &routes);
    prepared.problem = prepared.problem.or(found.problem);
    Stage {
        is_kept_warm: advance::keeps_previous_warm(deployment, &rollout),
        rollout,
        clusters,
        groups,
        steps,
        routes,
        prepared,
        duplicates: found.keys,
    }
}

fn assign_capacity(
    draft: &mut Draft<'_>,
    rollout: &RolloutStatus,
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    routes: &BTreeMap<String, ClusterRoutes>,
) {
    let deployment = &draft.snapshot.deployment;
    let (surge, unavailable) = stage::budget(deployment, rollout, clusters);
    let is_complete = rollout.completed_at.is_some();
    let limits = capacity::Limits {
        surge,
        unavailable,
        is_paused: !is_complete && advance::is_paused(deployment, rollout),
    };
    let may_remove = has_warm_period_passed(draft, rollout);
    let drain = deployment.spec.traffic.as_ref();
    let drain = drain.map_or(0, |traffic| traffic.drain_seconds.unwrap_or(30));
    let mut requeue_times = Vec::new();
    let now = draft.snapshot.now;
    let idle = idle_times(&draft.snapshot.deployment.status);
    let due = |cluster: &str, revision: &str| {
        let since: &Time = idle.get(&(cluster.to_owned(), revision.to_owned()))?;
        Some(since.after(SignedDuration::from_secs(i64::from(drain))))
    };
    capacity::assign_replicas(
        clusters,
        limits,
        |state, _| capacity::ShrinkPermission {
            is_routed: routes.get(&state.name).is_some_and(|routes| routes.is_verified),
            may_remove,
        },
        |state, cell| due(&state.name, &cell.revision).is_some_and(|due| due <= now),
    );
    for state in clusters.values() {
        for cell in state.cells.values().filter(|cell| cell.spec > cell.target) {
            requeue_times.extend(due(&state.name, &cell.revision).filter(|due| *due > now));
        }
    }
    draft.requeue_times.extend(requeue_times);
}

fn idle_times(status: &DeploymentStatus) -> BTreeMap<(String, String), Time> {
    let mut times = BTreeMap::new();
    for placement in &status.placement {
        let label = label_value(&placement.revision_name);
        for cluster in &placement.clusters {
            if let Some(since) = cluster.idle_since {
                times.insert((cluster.cluster_name.clone(), label.clone()), since);
            }
        }
    }
    times
}

/// Whether the time for which replicas of the previous revision are kept has passed.
fn has_warm_period_passed(draft: &mut Draft<'_>, rollout: &RolloutStatus) -> bool {
    let keep = keep_warm_seconds(&draft.snapshot.deployment);
    if keep == 0 || rollout.direction == Direction::Back {
        return true;
    }
    rollout
        .completed_at
        .is_some_and(|completed| draft.has_passed(completed, keep))
}

fn keep_warm_seconds(deployment: &mainstay_api::delivery::ApplicationDeployment) -> u32 {
    let window = stage::strategy(deployment).rollback_window;
    window
        .and_then(|window| window.keep_warm_seconds)
        .unwrap_or_default()
}

/// Renders every revision that the deployment refers to.
fn prepare_revisions(snapshot: &Snapshot, rollout: Option<&RolloutStatus>) -> PreparedRevisions {
    let deployment = &snapshot.deployment;
    let mut ports: BTreeMap<&str, ServicePorts> = BTreeMap::new();
    let rules = deployment.spec.traffic.iter().flat_map(|traffic| &traffic.http);
    for target in rules.flat_map(|rule| &rule.weighted_targets) {
        let components = ports.entry(&target.revision_name).or_default();
        let known = components.entry(target.component_name.clone()).or_default();
        known.insert(target.port);
    }
    for share in previous_shares(deployment.spec.traffic.is_some(), rollout) {
        let components = ports.entry(&share.revision_name).or_default();
        let known = components.entry(share.component_name.clone()).or_default();
        known.insert(share.port);
    }
    let mut prepared = PreparedRevisions::default();
    let none = ServicePorts::new();
    for name in referenced_revisions(snapshot, rollout) {
        let Some(revision) = snapshot.revisions.get(name) else {
            continue;
        };
        let identity = Identity {
            deployment: deployment.name().to_owned(),
            namespace: deployment.namespace().to_owned(),
            application: revision.spec.application_name.clone(),
            revision: name.to_owned(),
        };
        match prepare_revision(&identity, revision, ports.get(name).unwrap_or(&none)) {
            Ok(ready) => {
                prepared.revisions.insert(label_value(name), ready);
            }
            Err(error) => {
                prepared.problem = Some(Problem {
                    reason: Reason::InvalidSpec,
                    message: format!("revision {name:?}: {error}"),
                });
            }
        }
    }
    prepared
}

fn previous_shares(has_traffic: bool, rollout: Option<&RolloutStatus>) -> impl Iterator<Item = &RouteShare> {
    let rollout = rollout.filter(|_| has_traffic).into_iter();
    rollout.flat_map(|rollout| {
        let routes = [&rollout.stable, &rollout.target]
            .into_iter()
            .flat_map(|allocation| &allocation.routes);
        let source = rollout.source_traffic.iter().flat_map(|traffic| &traffic.routes);
        routes.chain(source).flat_map(|route| &route.shares)
    })
}

fn referenced_revisions<'a>(snapshot: &'a Snapshot, rollout: Option<&'a RolloutStatus>) -> BTreeSet<&'a str> {
    let spec = snapshot.deployment.spec.app_revisions.iter();
    let allocations = rollout
        .into_iter()
        .flat_map(|rollout| [&rollout.stable, &rollout.source, &rollout.target]);
    let known = allocations.flat_map(|allocation| &allocation.placement);
    spec.map(|revision| revision.revision_name.as_str())
        .chain(known.map(|placement| placement.revision_name.as_str()))
        .collect()
}
