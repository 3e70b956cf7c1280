//! A workload in the calculated cluster: applies pod events and computes the next rollout step and the
//! status.

use std::time::Duration;

use mainstay_api::names;
use mainstay_mesh::plan::Move;
use mainstay_mesh::workload::{Rollout, Workload as Fact, WorkloadKey};

use crate::calculated::rollout::{PodCounts, RolloutLimits, Step, next_step};
use crate::cluster_model::{Labels, Pod as ModelPod, Update, Workload};

/// Time from the deletion of a pod until it has stopped.
pub(super) const STOP_DURATION: Duration = Duration::from_secs(1);

/// An event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The pod is ready.
    Ready(String),
    /// The pod has been ready for `minReadySeconds`.
    Available(String),
    /// The pod has stopped.
    Stopped(String),
}

/// A pod of the workload.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    ready: bool,
    available: bool,
    /// Revision that injected the pod.
    pub(super) revision: Option<String>,
    /// Labels of the template from which the pod was created.
    pub(super) labels: Labels,
}

/// Readiness of a new pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialReadiness {
    /// Whether the pod existed before the rehearsal, so that `minReadySeconds` has already passed.
    pub(super) old: bool,
    /// Whether the pod is ready immediately.
    pub(super) ready: bool,
}

/// Pods to create and pods to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RolloutStep {
    pub(super) create: u32,
    pub(super) stop: Vec<String>,
}

/// A workload in the calculated cluster.
#[derive(Clone, Debug)]
pub(super) struct SimulatedWorkload<'m> {
    pub(super) key: WorkloadKey,
    pub(super) spec: &'m Workload,
    /// The workload as last reported to the reconciler.
    pub(super) fact: Fact,
    old: Vec<Pod>,
    new: Vec<Pod>,
    /// Number of pods that are stopping.
    stopping: usize,
    /// Whether a rollout is in progress.
    is_rolling_out: bool,
    /// Whether all pods of the current template were ready at some time.
    was_complete: bool,
    /// Rollout status of the current template as last reported.
    reported: Option<Rollout>,
}

impl<'m> SimulatedWorkload<'m> {
    pub(super) fn new(key: WorkloadKey, spec: &'m Workload, fact: Fact) -> Self {
        let was_complete = fact.rollout.was_complete;
        Self {
            key,
            spec,
            fact,
            old: Vec::new(),
            new: Vec::new(),
            stopping: 0,
            is_rolling_out: false,
            was_complete,
            reported: None,
        }
    }

    pub(super) fn add_existing_pod(&mut self, pod: &ModelPod, ready: bool) {
        self.new.push(Pod {
            name: pod.name.clone(),
            ready,
            available: ready,
            revision: pod.annotations.get(names::REVISION_LABEL).cloned(),
            labels: pod.labels.clone(),
        });
    }

    /// Returns the number of pods to create.
    pub(super) fn missing_pods(&self) -> u32 {
        let have = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
        self.spec.replicas.saturating_sub(have)
    }

    /// Removes surplus pods and returns their names. Pods that are not ready are removed first.
    pub(super) fn take_surplus(&mut self) -> Vec<String> {
        let desired = usize::try_from(self.spec.replicas).unwrap_or(usize::MAX);
        let surplus = self.new.len().saturating_sub(desired);
        self.new.sort_by_key(|pod| pod.ready);
        self.new.drain(..surplus).map(|pod| pod.name).collect()
    }

    /// Marks the current template as complete if all pods are ready.
    pub(super) fn mark_complete_if_ready(&mut self) {
        let (replicas, ready) = self.pod_counts();
        self.was_complete |= replicas == ready;
    }

    /// Returns the number of pods and of ready pods.
    pub(super) fn pod_counts(&self) -> (i32, i32) {
        let all = self.old.iter().chain(&self.new);
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        (
            count(all.clone().count()),
            count(all.filter(|pod| pod.ready).count()),
        )
    }

    /// Returns the number of ready pods.
    pub(super) fn ready_pods(&self) -> u32 {
        u32::try_from(self.pod_counts().1).unwrap_or(0)
    }

    /// Adds a new pod.
    pub(super) fn add_pod(&mut self, name: String, revision: Option<String>, readiness: InitialReadiness) {
        let InitialReadiness { old, ready } = readiness;
        self.new.push(Pod {
            name,
            ready,
            available: ready && (old || self.spec.min_ready.is_zero()),
            revision,
            labels: self.fact.template.clone(),
        });
    }

    /// Returns the pod that was added last.
    pub(super) fn last_pod(&self) -> Option<&Pod> {
        self.new.last()
    }

    /// Begins to stop an old pod and returns it.
    pub(super) fn stop_pod(&mut self, name: &str) -> Option<Pod> {
        self.stopping += 1;
        let at = self.old.iter().position(|pod| pod.name == name)?;
        Some(self.old.remove(at))
    }

    /// Applies a changed template: all existing pods become old.
    pub(super) fn restart(&mut self, step: &Move) {
        self.fact.record = Some(step.record.clone());
        if step.relabel {
            let label = names::REVISION_LABEL.to_owned();
            self.fact.template.insert(label, step.record.revision.clone());
        }
        self.old.append(&mut self.new);
        self.is_rolling_out = true;
        self.was_complete = false;
        self.reported = None;
    }

    /// Applies a pod event.
    pub(super) fn apply_event(&mut self, event: &Event) {
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
            Event::Stopped(_) => self.stopping = self.stopping.saturating_sub(1),
        }
    }

    /// Returns the next step of the rollout, or `None` if the rollout waits or is complete.
    pub(super) fn next_step(&mut self) -> Option<RolloutStep> {
        if !self.is_rolling_out {
            return None;
        }
        let step = match self.spec.update {
            Update::Recreate => self.recreate_step(),
            Update::Rolling { surge, unavailable } => self.rolling_step(&RolloutLimits {
                desired: self.spec.replicas,
                surge,
                unavailable,
            }),
            Update::Other => None,
        };
        if step.is_none() {
            let full = self.is_complete();
            self.was_complete |= full;
            self.is_rolling_out = !full;
        }
        step
    }

    fn recreate_step(&self) -> Option<RolloutStep> {
        if !self.old.is_empty() {
            return Some(RolloutStep {
                create: 0,
                stop: self.old.iter().map(|pod| pod.name.clone()).collect(),
            });
        }
        let missing = self.missing_pods();
        (self.stopping == 0 && missing > 0).then(|| RolloutStep {
            create: missing,
            stop: Vec::new(),
        })
    }

    fn rolling_step(&self, rules: &RolloutLimits) -> Option<RolloutStep> {
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
        match next_step(rules, &pods) {
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

    /// Returns the old pods to stop: first those that are not ready, then those that are not available,
    /// then by name.
    fn pods_to_stop(&self, broken: u32, healthy: u32) -> Vec<String> {
        let mut pods: Vec<&Pod> = self.old.iter().collect();
        pods.sort_by(|a, b| (a.ready, a.available, &a.name).cmp(&(b.ready, b.available, &b.name)));
        let count = usize::try_from(broken + healthy).unwrap_or(usize::MAX);
        pods.into_iter().take(count).map(|pod| pod.name.clone()).collect()
    }

    fn is_complete(&self) -> bool {
        let desired = usize::try_from(self.spec.replicas).unwrap_or(usize::MAX);
        let ready = self.new.iter().filter(|pod| pod.ready && pod.available).count();
        self.old.is_empty() && self.new.len() == desired && ready == desired
    }

    /// Returns the workload if its rollout status has changed since the last report.
    pub(super) fn changed_fact(&mut self, version: String) -> Option<Fact> {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let full = self.is_complete();
        self.fact.rollout = Rollout {
            desired: i32::try_from(self.spec.replicas).unwrap_or(i32::MAX),
            updated: count(self.new.len()),
            old: count(self.old.len()),
            ready: self.pod_counts().1,
            available: count(
                self.old
                    .iter()
                    .chain(&self.new)
                    .filter(|pod| pod.available)
                    .count(),
            ),
            complete: full,
            was_complete: full || self.was_complete,
        };
        if self.reported == Some(self.fact.rollout) {
            return None;
        }
        self.fact.resource_version = version;
        self.reported = Some(self.fact.rollout);
        Some(self.fact.clone())
    }
}
