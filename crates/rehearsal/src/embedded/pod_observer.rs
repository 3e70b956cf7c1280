//! Counts the ready pods of each workload from the store's watch history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mainstay_mesh::workload::{PodController, WorkloadKey};
use mainstay_sim::State;
use mainstay_sim::controllers::Controller;
use mainstay_sim::object::Object;
use mainstay_sim::store::EventKind;
use serde_json::Value;

use super::{SharedRecording, lock};
use crate::input::text;
use crate::recording::Recording;

const PODS: &str = "pods";

/// Controller that observes pods and records their numbers.
pub(super) struct PodObserver {
    recording: SharedRecording,
    seen: u64,
    /// Workload of each pod, and whether the pod is serving.
    pods: BTreeMap<Box<str>, (WorkloadKey, bool)>,
    counts: BTreeMap<WorkloadKey, u32>,
    initial_counts_recorded: bool,
}

impl PodObserver {
    pub(super) fn new(recording: SharedRecording) -> Self {
        Self {
            recording,
            seen: 0,
            pods: BTreeMap::new(),
            counts: BTreeMap::new(),
            initial_counts_recorded: false,
        }
    }

    fn observe(&mut self, recording: &mut Recording, object: &Object, gone: bool, at: Timestamp) {
        let key: Box<str> = object.key().into();
        let was = self
            .pods
            .get(&key)
            .map(|(workload, ready)| (workload.clone(), *ready));
        let is = if gone { None } else { serving(object) };
        if was.is_none() && is.is_some() && recording.started_at.is_some() {
            recording.created_pods += 1;
        }
        let workload = was.as_ref().or(is.as_ref()).map(|(workload, _)| workload.clone());
        let Some(workload) = workload else {
            return;
        };
        let count = self.counts.entry(workload.clone()).or_default();
        let before = *count;
        *count = count.saturating_sub(u32::from(was.is_some_and(|(_, ready)| ready)));
        *count += u32::from(is.as_ref().is_some_and(|(_, ready)| *ready));
        if *count != before && recording.started_at.is_some() {
            recording.record_ready_pods(&workload, at, *count);
        }
        match is {
            Some(is) => self.pods.insert(key, is),
            None => self.pods.remove(&key),
        };
    }

    fn catch_up(&mut self, state: &State, recording: &mut Recording, at: Timestamp) {
        let events = state
            .store
            .history(PODS)
            .and_then(|history| history.after(self.seen));
        if let Some(events) = events {
            let events: Vec<_> = events
                .map(|event| (event.object.clone(), event.kind == EventKind::Deleted))
                .collect();
            for (object, gone) in events {
                self.observe(recording, &object, gone, at);
            }
        } else {
            // The history was compacted, so all pods are read.
            self.pods.clear();
            self.counts.clear();
            let all: Vec<_> = state.store.all(PODS).cloned().collect();
            for object in all {
                self.observe(recording, &object, false, at);
            }
        }
        self.seen = state.store.version();
    }
}

impl Controller for PodObserver {
    fn name(&self) -> &'static str {
        "pod-observer"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let recording = self.recording.clone();
        let mut recording = lock(&recording);
        let at = Timestamp::from_microsecond(state.now().as_micros()).unwrap_or(Timestamp::MAX);
        self.catch_up(state, &mut recording, at);
        if let (Some(started_at), false) = (recording.started_at, self.initial_counts_recorded) {
            self.initial_counts_recorded = true;
            for (workload, count) in &self.counts {
                recording
                    .ready_pods
                    .entry(workload.clone())
                    .or_default()
                    .insert(0, (started_at, *count));
            }
        }
        false
    }
}

/// Returns the workload of a pod, and whether the pod is serving: ready and not terminating.
fn serving(object: &Object) -> Option<(WorkloadKey, bool)> {
    let meta = object.meta();
    let owner = meta.controller()?;
    let hash = meta.label("pod-template-hash").unwrap_or_default();
    let labels = [("pod-template-hash".to_owned(), hash.to_owned())].into();
    let controller = PodController {
        kind: &owner.kind,
        name: &owner.name,
    };
    let workload = WorkloadKey::for_pod(&meta.namespace, controller, &labels)?;
    let pod = object.packed();
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True");
    Some((workload, ready && !meta.deleting))
}
