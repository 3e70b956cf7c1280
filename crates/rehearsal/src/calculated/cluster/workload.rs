//! A workload in the calculated cluster: applies pod events, computes the next rollout step and the resulting
//! status.

use std::time::Duration;

use mainstay_api::names;
use mainstay_mesh::plan::Move;
use mainstay_mesh::workload::{Rollout, Workload as Fact, WorkloadKey};

use crate::calculated::rollout::{PodCounts, Rules, Step, next};
use crate::cluster_model::{Labels, Pod as ModelPod, Update, Workload};

/// Time a pod takes to stop.
pub(super) const STOP_DURATION: Duration = Duration::from_secs(1);

/// An event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The pod is ready.
    Ready(String),
    /// The pod has been ready for `minReadySeconds`.
    Available(String),
    /// The pod has stopped.
    Gone(String),
}

/// A pod of the workload.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    ready: bool,
    available: bool,
    /// Revision that injected the pod.
    pub(super) revision: Option<String>,
    /// Labels of its template.
    pub(super) labels: Labels,
}

/// Readiness of a new pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialReadiness {
    /// Whether the pod existed before the rehearsal, so that `minReadySeconds` has passed.
    pub(super) old: bool,
    /// Whether the pod is ready at once.
    pub(super) ready: bool,
}

/// Pods to create and to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RolloutStep {
    pub(super) create: u32,
    pub(super) stop: Vec<String>,
}

/// A workload in the calculated cluster.
#[derive(Clone, Debug)]
pub(super) struct SimulatedWorkload {
    pub(super) key: WorkloadKey,
    pub(super) spec: Workload,
    /// The workload as last reported to the reconciler.
    pub(super) fact: Fact,
    old: Vec<Pod>,
    new: Vec<Pod>,
    /// Number of pods that are stopping.
    stopping: usize,
    /// Whether a rollout is in progress.
    rolling: bool,
    /// Whether the current template was complete once.
    settled: bool,
    /// Last reported rollout of the current template.
    reported: Option<Rollout>,
}

impl SimulatedWorkload {
    pub(super) fn new(key: WorkloadKey, spec: Workload, fact: Fact) -> Self {
        let settled = fact.rollout.was_complete;
        Self {
            key,
            spec,
            fact,
            old: Vec::new(),
            new: Vec::new(),
            stopping: 0,
            rolling: false,
            settled,
            reported: None,
        }
    }

    /// Adds an existing pod.
    pub(super) fn adopt(&mut self, pod: &ModelPod, ready: bool) {
        self.new.push(Pod {
            name: pod.name.clone(),
            ready,
            available: ready,
            revision: pod.annotations.get(names::REVISION_LABEL).cloned(),
            labels: pod.labels.clone(),
        });
    }

    /// Resteps the number of pods to create.
    pub(super) fn missing(&self) -> u32 {
        let have = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
        self.spec.replicas.saturating_sub(have)
    }

    /// Removes surplus pods, pods that are not ready first.
    pub(super) fn take_surplus(&mut self) -> Vec<String> {
        let want = usize::try_from(self.spec.replicas).unwrap_or(usize::MAX);
        let surplus = self.new.len().saturating_sub(want);
        self.new.sort_by_key(|pod| pod.ready);
        self.new.drain(..surplus).map(|pod| pod.name).collect()
    }

    /// Marks the current template as complete if all pods are ready.
    pub(super) fn settle_first(&mut self) {
        let (replicas, ready) = self.counts();
        self.settled |= replicas == ready;
    }

    /// Resteps the number of pods and of ready pods.
    pub(super) fn counts(&self) -> (i32, i32) {
        let all = self.old.iter().chain(&self.new);
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        (
            count(all.clone().count()),
            count(all.filter(|pod| pod.ready).count()),
        )
    }

    /// Resteps the number of ready pods.
    pub(super) fn serving(&self) -> u32 {
        u32::try_from(self.counts().1).unwrap_or(0)
    }

    /// Adds a new pod.
    pub(super) fn make(&mut self, name: String, revision: Option<String>, readiness: InitialReadiness) {
        let InitialReadiness { old, ready } = readiness;
        self.new.push(Pod {
            name,
            ready,
            available: ready && (old || self.spec.min_ready.is_zero()),
            revision,
            labels: self.fact.template.clone(),
        });
    }

    /// Resteps the pod that was added last.
    pub(super) fn newest(&self) -> Option<&Pod> {
        self.new.last()
    }

    /// Starts to stop a pod.
    pub(super) fn stop(&mut self, name: &str) -> Option<Pod> {
        self.stopping += 1;
        let at = self.old.iter().position(|pod| pod.name == name)?;
        Some(self.old.remove(at))
    }

    /// Applies a changed template: all current pods are old.
    pub(super) fn restart(&mut self, step: &Move) {
        self.fact.record = Some(step.record.clone());
        if step.relabel {
            let label = names::REVISION_LABEL.to_owned();
            self.fact.template.insert(label, step.record.revision.clone());
        }
        self.old.append(&mut self.new);
        self.rolling = true;
        self.settled = false;
        self.reported = None;
    }

    /// Applies a pod event.
    pub(super) fn apply(&mut self, event: &Event) {
        let at_once = self.spec.min_ready.is_zero();
        let pods = self.old.iter_mut().chain(&mut self.new);
        match event {
            Event::Ready(name) => {
                for pod in pods.filter(|pod| pod.name == *name) {
                    pod.ready = true;
                    pod.available |= at_once;
                }
            }
            Event::Available(name) => {
                for pod in pods.filter(|pod| pod.name == *name) {
                    pod.available = true;
                }
            }
            Event::Gone(_) => self.stopping = self.stopping.saturating_sub(1),
        }
    }

    /// Resteps the next step of the rollout, or `None` if it must wait.
    pub(super) fn step(&mut self) -> Option<RolloutStep> {
        if !self.rolling {
            return None;
        }
        let step = match self.spec.update {
            Update::Recreate => self.recreate(),
            Update::Rolling { surge, unavailable } => self.roll(&Rules {
                want: self.spec.replicas,
                surge,
                unavailable,
            }),
            Update::Other => None,
        };
        if step.is_none() {
            let full = self.is_full();
            self.settled |= full;
            self.rolling = !full;
        }
        step
    }

    fn recreate(&self) -> Option<RolloutStep> {
        if !self.old.is_empty() {
            return Some(RolloutStep {
                create: 0,
                stop: self.old.iter().map(|pod| pod.name.clone()).collect(),
            });
        }
        let missing = self.missing();
        (self.stopping == 0 && missing > 0).then(|| RolloutStep {
            create: missing,
            stop: Vec::new(),
        })
    }

    fn roll(&self, rules: &Rules) -> Option<RolloutStep> {
        let count = |pods: &[Pod]| u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let available = |pods: &[Pod]| {
            let available = pods.iter().filter(|pod| pod.available).count();
            u32::try_from(available).unwrap_or(u32::MAX)
        };
        let pods = PodCounts {
            old: count(&self.old),
            old_available: available(&self.old),
            new: count(&self.new),
            new_available: available(&self.new),
        };
        match next(rules, &pods) {
            Step::Grow(create) => Some(RolloutStep {
                create,
                stop: Vec::new(),
            }),
            Step::Shrink { broken, healthy } => Some(RolloutStep {
                create: 0,
                stop: self.pods_to_stop(broken, healthy),
            }),
            Step::Wait => None,
        }
    }

    /// Resteps the pods to stop: not ready, then not available, then by name.
    fn pods_to_stop(&self, broken: u32, healthy: u32) -> Vec<String> {
        let mut pods: Vec<&Pod> = self.old.iter().collect();
        pods.sort_by(|a, b| (a.ready, a.available, &a.name).cmp(&(b.ready, b.available, &b.name)));
        let count = usize::try_from(broken + healthy).unwrap_or(usize::MAX);
        pods.into_iter().take(count).map(|pod| pod.name.clone()).collect()
    }

    fn is_full(&self) -> bool {
        let want = usize::try_from(self.spec.replicas).unwrap_or(usize::MAX);
        let ready = self.new.iter().filter(|pod| pod.ready && pod.available).count();
        self.old.is_empty() && self.new.len() == want && ready == want
    }

    /// Resteps the workload if its rollout status changed.
    pub(super) fn changed_fact(&mut self, version: String) -> Option<Fact> {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let full = self.is_full();
        self.fact.rollout = Rollout {
            desired: i32::try_from(self.spec.replicas).unwrap_or(i32::MAX),
            updated: count(self.new.len()),
            old: count(self.old.len()),
            ready: self.counts().1,
            available: count(
                self.old
                    .iter()
                    .chain(&self.new)
                    .filter(|pod| pod.available)
                    .count(),
            ),
            complete: full,
            was_complete: full || self.settled,
        };
        if self.reported == Some(self.fact.rollout) {
            return None;
        }
        self.fact.resource_version = version;
        self.reported = Some(self.fact.rollout);
        Some(self.fact.clone())
    }
}
