//! One workload in the model: takes what happens to its pods, gives the next step of its rollout, and what its status would say.

use std::time::Duration;

use mainstay_api::names;
use mainstay_mesh::plan::Move;
use mainstay_mesh::workload::{Rollout, Workload as Fact, WorkloadKey};

use crate::model::rollout::{Crew, Rules, Step, next};
use crate::scene::{Labels, Pod as ScenePod, Update, Workload};

/// How long a pod takes to stop.
pub(super) const STOP: Duration = Duration::from_secs(1);

/// Something that happens to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It is ready.
    Ready(String),
    /// It has been ready for long enough.
    Available(String),
    /// It has stopped.
    Gone(String),
}

/// One of its pods.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    ready: bool,
    available: bool,
    /// Who injected it.
    pub(super) revision: Option<String>,
    /// Its labels, as far as they matter.
    pub(super) labels: Labels,
}

/// What comes and goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) come: u32,
    pub(super) go: Vec<String>,
}

/// One workload.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) key: WorkloadKey,
    pub(super) spec: Workload,
    /// What the reconciler knows of it.
    pub(super) fact: Fact,
    old: Vec<Pod>,
    new: Vec<Pod>,
    /// Old pods that have not stopped yet.
    stopping: usize,
    /// Whether a rollout is under way.
    rolling: bool,
    /// Whether this template came up once.
    settled: bool,
    /// What its status last said of the template as it is.
    told: Option<Rollout>,
}

impl Unit {
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
            told: None,
        }
    }

    /// A pod that is there.
    pub(super) fn adopt(&mut self, pod: &ScenePod, ready: bool) {
        self.new.push(Pod {
            name: pod.name.clone(),
            ready,
            available: ready,
            revision: pod.annotations.get(names::REVISION_LABEL).cloned(),
            labels: pod.labels.clone(),
        });
    }

    /// How many pods controllers would make at once.
    pub(super) fn missing(&self) -> u32 {
        let have = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
        self.spec.replicas.saturating_sub(have)
    }

    /// Pods beyond those that are wanted; those that are not ready first.
    pub(super) fn take_surplus(&mut self) -> Vec<String> {
        let want = usize::try_from(self.spec.replicas).unwrap_or(usize::MAX);
        let surplus = self.new.len().saturating_sub(want);
        self.new.sort_by_key(|pod| pod.ready);
        self.new.drain(..surplus).map(|pod| pod.name).collect()
    }

    /// What there is counts as having come up, if it is up.
    pub(super) fn settle_first(&mut self) {
        let (replicas, ready) = self.counts();
        self.settled |= replicas == ready;
    }

    /// Pods, and how many of them are ready.
    pub(super) fn counts(&self) -> (i32, i32) {
        let all = self.old.iter().chain(&self.new);
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        (
            count(all.clone().count()),
            count(all.filter(|pod| pod.ready).count()),
        )
    }

    /// How many serve.
    pub(super) fn serving(&self) -> u32 {
        u32::try_from(self.counts().1).unwrap_or(0)
    }

    /// One more pod.
    pub(super) fn make(&mut self, name: String, revision: Option<String>, (old, ready): (bool, bool)) {
        self.new.push(Pod {
            name,
            ready,
            available: ready && (old || self.spec.min_ready.is_zero()),
            revision,
            labels: self.fact.template.clone(),
        });
    }

    /// The pod that was made last.
    pub(super) fn newest(&self) -> Option<&Pod> {
        self.new.last()
    }

    /// A pod is told to stop, and is none of the crew any more.
    pub(super) fn leave(&mut self, name: &str) -> Option<Pod> {
        self.stopping += 1;
        let at = self.old.iter().position(|pod| pod.name == name)?;
        Some(self.old.remove(at))
    }

    /// Its template changed: what is there is old now.
    pub(super) fn restart(&mut self, step: &Move) {
        self.fact.record = Some(step.record.clone());
        if step.relabel {
            let label = names::REVISION_LABEL.to_owned();
            self.fact.template.insert(label, step.record.revision.clone());
        }
        self.old.append(&mut self.new);
        self.rolling = true;
        self.settled = false;
        self.told = None;
    }

    /// Something happened to one of its pods.
    pub(super) fn happen(&mut self, event: &Event) {
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

    /// The next step of its rollout; nothing if it has to wait.
    pub(super) fn step(&mut self) -> Option<Turn> {
        if !self.rolling {
            return None;
        }
        let turn = match self.spec.update {
            Update::Recreate => self.recreate(),
            Update::Rolling { surge, unavailable } => self.roll(&Rules {
                want: self.spec.replicas,
                surge,
                unavailable,
            }),
            Update::Other => None,
        };
        if turn.is_none() {
            let full = self.is_full();
            self.settled |= full;
            self.rolling = !full;
        }
        turn
    }

    fn recreate(&self) -> Option<Turn> {
        if !self.old.is_empty() {
            return Some(Turn {
                come: 0,
                go: self.old.iter().map(|pod| pod.name.clone()).collect(),
            });
        }
        let missing = self.missing();
        (self.stopping == 0 && missing > 0).then(|| Turn {
            come: missing,
            go: Vec::new(),
        })
    }

    fn roll(&self, rules: &Rules) -> Option<Turn> {
        let count = |pods: &[Pod]| u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let available = |pods: &[Pod]| {
            let available = pods.iter().filter(|pod| pod.available).count();
            u32::try_from(available).unwrap_or(u32::MAX)
        };
        let crew = Crew {
            old: count(&self.old),
            old_available: available(&self.old),
            new: count(&self.new),
            new_available: available(&self.new),
        };
        match next(rules, &crew) {
            Step::Grow(come) => Some(Turn { come, go: Vec::new() }),
            Step::Shrink { broken, healthy } => Some(Turn {
                come: 0,
                go: self.victims(broken, healthy),
            }),
            Step::Wait => None,
        }
    }

    /// Those that go first: not ready, not available, in the order of their names.
    fn victims(&self, broken: u32, healthy: u32) -> Vec<String> {
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

    /// What its status says now, if that is news.
    pub(super) fn news(&mut self, version: String) -> Option<Fact> {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let full = self.is_full();
        self.fact.rollout = Rollout {
            desired: i32::try_from(self.spec.replicas).unwrap_or(i32::MAX),
            updated: count(self.new.len()),
            ready: self.counts().1,
            complete: full,
            was_complete: full || self.settled,
        };
        if self.told == Some(self.fact.rollout) {
            return None;
        }
        self.fact.resource_version = version;
        self.told = Some(self.fact.rollout);
        Some(self.fact.clone())
    }
}
