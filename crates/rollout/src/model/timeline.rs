//! Runs a rollout on the model and records all changes.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{ActionVerb, ClusterTraffic, DeploymentPhase, RolloutStep, StrategyType};
use mainstay_api::{ConditionType, Reason};

use super::{Behavior, Model};
use crate::manifest::Role;
use crate::names::label_value;
use crate::plan::{Action, Plan, Requeue, Step};
use crate::planner::{plan, rollout_steps};

/// Options of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct TimelineOptions {
    /// Maximum duration of the timeline.
    pub limit: SignedDuration,
    /// Whether pauses that wait for a promotion are promoted.
    pub promotes: bool,
}

/// Maximum number of plans in a timeline. Ends the timeline of a rollout that never settles.
const MAX_PLANS: usize = 20_000;

/// Recorded course of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// States in order of time. The first one is the state before the rollout.
    pub frames: Vec<Frame>,
    /// Outcome of the timeline.
    pub end: End,
}

/// State from this time until the time of the next frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Time since the start.
    pub at: SignedDuration,
    /// Phase of the deployment.
    pub phase: DeploymentPhase,
    /// Reason of the condition `Progressing`.
    pub reason: Reason,
    /// Current wave.
    pub wave: String,
    /// Current step, such as `setWeight 10`; empty outside steps.
    pub step: String,
    /// Replicas by cluster and revision.
    pub replicas: BTreeMap<(String, String), Replicas>,
    /// Weights by cluster as last verified.
    pub traffic: Vec<ClusterTraffic>,
    /// Writes that led to this state.
    pub writes: Vec<Write>,
    /// Whether a promotion was assumed for reaching this state.
    pub is_promoted: bool,
}

/// Replicas of one revision in one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Largest `spec.replicas` of a component.
    pub desired: u32,
    /// Smallest number of available replicas of a component.
    pub available: u32,
}

/// A write to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Name of the cluster; empty for the host cluster.
    pub cluster: String,
    /// Description of the action.
    pub action: String,
    /// Reason of the action.
    pub reason: Reason,
}

/// Outcome of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The rollout settled.
    Settled,
    /// The rollout waits for a promotion or another action.
    Waiting,
    /// The time limit was reached.
    Limit,
}

/// Runs the deployment of a model until it has settled.
pub fn timeline(model: &mut Model, behavior: &mut dyn Behavior, options: TimelineOptions) -> Timeline {
    let mut run = Run {
        start: model.now,
        frames: vec![capture_frame(model, SignedDuration::ZERO)],
        writes: Vec::new(),
        is_promoted: false,
    };
    let end = run.run_to_end(model, behavior, options);
    Timeline {
        frames: run.frames,
        end,
    }
}

struct Run {
    start: Timestamp,
    frames: Vec<Frame>,
    writes: Vec<Write>,
    is_promoted: bool,
}

impl Run {
    fn run_to_end(
        &mut self,
        model: &mut Model,
        behavior: &mut dyn Behavior,
        options: TimelineOptions,
    ) -> End {
        let limit = self.start.saturating_add(options.limit).unwrap_or(Timestamp::MAX);
        for _ in 0..MAX_PLANS {
            let planned = plan(&model.snapshot());
            self.record_writes(&planned);
            model.execute(&planned, behavior);
            if planned.requeue == Requeue::Immediately {
                continue;
            }
            self.record_frame(model);
            if waits_for_promotion(model) {
                if !options.promotes {
                    return End::Waiting;
                }
                model.request(ActionVerb::Promote);
                self.is_promoted = true;
                continue;
            }
            let Some(next) = next_time(model, &planned) else {
                return final_end(model);
            };
            if next > limit {
                return End::Limit;
            }
            model.advance(next.duration_since(model.now));
        }
        End::Limit
    }

    fn record_writes(&mut self, planned: &Plan) {
        let write = |cluster: &str, step: &Step| Write {
            cluster: cluster.to_owned(),
            action: step.action.to_string(),
            reason: step.reason.clone(),
        };
        for (cluster, steps) in &planned.clusters {
            self.writes.extend(steps.iter().map(|step| write(cluster, step)));
        }
    }

    fn record_frame(&mut self, model: &Model) {
        let mut next = capture_frame(model, model.now.duration_since(self.start));
        let is_equal = self.frames.last().is_some_and(|last| last.has_equal_state(&next));
        if is_equal && self.writes.is_empty() && !self.is_promoted {
            return;
        }
        next.writes = std::mem::take(&mut self.writes);
        next.is_promoted = std::mem::take(&mut self.is_promoted);
        self.frames.push(next);
    }
}

impl Frame {
    fn has_equal_state(&self, other: &Self) -> bool {
        let key = |frame: &Self| {
            (
                frame.phase,
                frame.reason.clone(),
                frame.wave.clone(),
                frame.step.clone(),
            )
        };
        key(self) == key(other) && self.replicas == other.replicas && self.traffic == other.traffic
    }
}

/// Returns the time at which the model is planned again, or `None` if only a user can cause a change.
fn next_time(model: &Model, planned: &Plan) -> Option<Timestamp> {
    let requeue = match planned.requeue {
        Requeue::At(at) => Some(at.max(model.now)),
        Requeue::OnEvent | Requeue::Immediately => None,
    };
    let has_writes = planned
        .steps()
        .any(|step| !matches!(step.action, Action::Event { .. }));
    let at_once = has_writes.then_some(model.now);
    [requeue, model.next_change(), at_once]
        .into_iter()
        .flatten()
        .min()
}

fn waits_for_promotion(model: &Model) -> bool {
    let progressing = model
        .deployment
        .status
        .conditions
        .find(&ConditionType::Progressing);
    progressing.is_some_and(|condition| condition.reason == Reason::WaitingForPromotion)
}

fn current_step(model: &Model) -> Option<RolloutStep> {
    let rollout = model.deployment.status.rollout.as_ref()?;
    let steps = rollout_steps(&model.deployment, rollout);
    steps.into_iter().nth(rollout.step as usize)
}

fn final_end(model: &Model) -> End {
    match model.deployment.status.phase {
        DeploymentPhase::Paused => End::Waiting,
        _ => End::Settled,
    }
}

fn capture_frame(model: &Model, at: SignedDuration) -> Frame {
    let status = &model.deployment.status;
    let progressing = status.conditions.find(&ConditionType::Progressing);
    let rollout = status.rollout.as_ref();
    let is_running = rollout.is_some_and(|rollout| rollout.completed_at.is_none());
    let kind = model
        .deployment
        .spec
        .strategy
        .as_ref()
        .and_then(|strategy| strategy.kind);
    let step = current_step(model).filter(|_| is_running);
    Frame {
        at,
        phase: status.phase,
        reason: progressing
            .map(|condition| condition.reason.clone())
            .unwrap_or_default(),
        wave: rollout
            .filter(|_| is_running)
            .map(|rollout| rollout.wave.clone())
            .unwrap_or_default(),
        step: step.map(|step| describe_step(&step, kind)).unwrap_or_default(),
        replicas: count_replicas(model),
        traffic: status.traffic.clone(),
        writes: Vec::new(),
        is_promoted: false,
    }
}

fn count_replicas(model: &Model) -> BTreeMap<(String, String), Replicas> {
    let names: BTreeMap<String, &String> = model
        .revisions
        .keys()
        .map(|name| (label_value(name), name))
        .collect();
    let mut counts: BTreeMap<(String, String), Replicas> = BTreeMap::new();
    for (cluster, state) in &model.clusters {
        for (key, object) in &state.objects {
            if Role::for_kind(&key.kind) != Role::Workload {
                continue;
            }
            let label = object.observed.revision.clone().unwrap_or_default();
            let revision = names.get(&label).map_or(label.clone(), |name| (*name).clone());
            let available = object.ready_pods(model.now);
            let count = counts.entry((cluster.clone(), revision)).or_insert(Replicas {
                desired: 0,
                available,
            });
            count.desired = count.desired.max(object.observed.replicas);
            count.available = count.available.min(available);
        }
    }
    counts
}

/// Describes a step in one or two words.
#[must_use]
pub fn describe_step(step: &RolloutStep, kind: Option<StrategyType>) -> String {
    if let Some(share) = &step.set_replicas {
        let is_all = kind == Some(StrategyType::BlueGreen);
        return if is_all {
            "allReplicas".to_owned()
        } else {
            format!("setReplicas {share}")
        };
    }
    if let Some(weight) = step.set_weight {
        return format!("setWeight {weight}");
    }
    if let Some(pause) = step.pause {
        let length = pause.duration_seconds.map(|seconds| format!(" {seconds}s"));
        return format!("pause{}", length.unwrap_or_default());
    }
    if let Some(analysis) = &step.analysis {
        return format!("analysis {}", analysis.template_name);
    }
    if let Some(route) = &step.header_route {
        return format!("headerRoute {}", route.name);
    }
    step.mirror
        .map(|mirror| format!("mirror {}%", mirror.percent))
        .unwrap_or_default()
}
