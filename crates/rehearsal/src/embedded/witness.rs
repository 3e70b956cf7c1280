//! Who sees pods come and go: takes the store's history, tells how many pods of each workload are ready.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mainstay_mesh::workload::{PodController, WorkloadKey};
use mainstay_sim::State;
use mainstay_sim::controllers::Controller;
use mainstay_sim::object::Object;
use mainstay_sim::store::EventKind;
use serde_json::Value;

use super::{Tape, lock};
use crate::input::text;
use crate::recording::Recording;

const PODS: &str = "pods";

/// Sees pods.
pub(super) struct Witness {
    tape: Tape,
    seen: u64,
    /// Of every pod its workload, and whether it is ready to serve.
    pods: BTreeMap<Box<str>, (WorkloadKey, bool)>,
    counts: BTreeMap<WorkloadKey, u32>,
    told: bool,
}

impl Witness {
    pub(super) fn new(tape: Tape) -> Self {
        Self {
            tape,
            seen: 0,
            pods: BTreeMap::new(),
            counts: BTreeMap::new(),
            told: false,
        }
    }

    fn see(&mut self, tape: &mut Recording, object: &Object, gone: bool, at: Timestamp) {
        let key: Box<str> = object.key().into();
        let was = self
            .pods
            .get(&key)
            .map(|(workload, ready)| (workload.clone(), *ready));
        let is = if gone { None } else { serving(object) };
        if was.is_none() && is.is_some() && tape.began.is_some() {
            tape.made += 1;
        }
        let workload = was.as_ref().or(is.as_ref()).map(|(workload, _)| workload.clone());
        let Some(workload) = workload else {
            return;
        };
        let count = self.counts.entry(workload.clone()).or_default();
        let before = *count;
        *count = count.saturating_sub(u32::from(was.is_some_and(|(_, ready)| ready)));
        *count += u32::from(is.as_ref().is_some_and(|(_, ready)| *ready));
        if *count != before && tape.began.is_some() {
            tape.crew(&workload, at, *count);
        }
        match is {
            Some(is) => self.pods.insert(key, is),
            None => self.pods.remove(&key),
        };
    }

    fn catch_up(&mut self, state: &State, tape: &mut Recording, at: Timestamp) {
        let events = state
            .store
            .history(PODS)
            .and_then(|history| history.after(self.seen));
        if let Some(events) = events {
            let events: Vec<_> = events
                .map(|event| (event.object.clone(), event.kind == EventKind::Deleted))
                .collect();
            for (object, gone) in events {
                self.see(tape, &object, gone, at);
            }
        } else {
            // Too much happened at once: everything is looked at.
            self.pods.clear();
            self.counts.clear();
            let all: Vec<_> = state.store.all(PODS).cloned().collect();
            for object in all {
                self.see(tape, &object, false, at);
            }
        }
        self.seen = state.store.version();
    }
}

impl Controller for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let tape = self.tape.clone();
        let mut tape = lock(&tape);
        let at = Timestamp::from_microsecond(state.now().as_micros()).unwrap_or(Timestamp::MAX);
        self.catch_up(state, &mut tape, at);
        if let (Some(began), false) = (tape.began, self.told) {
            self.told = true;
            for (workload, count) in &self.counts {
                tape.crews
                    .entry(workload.clone())
                    .or_default()
                    .insert(0, (began, *count));
            }
        }
        false
    }
}

/// The workload a pod belongs to, and whether it serves: ready and not on its way out.
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
