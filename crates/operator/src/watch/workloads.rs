//! Workloads that a migration may move: takes those of one kind, tells the brain what a migration needs to know of each. The three
//! kinds are one source, which can be believed when each of them can.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_mesh::Observation;
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::workload::{Workload, WorkloadKey, WorkloadKind};
use serde_json::Value;

use super::Sink;
use crate::run::Shared;

/// Whether each kind can be believed.
pub(crate) type States = Arc<Mutex<Vec<(WorkloadKind, SourceState)>>>;

/// States in which nothing was listed yet.
pub(crate) fn states() -> States {
    let pending = WorkloadKind::ALL.map(|kind| (kind, SourceState::Pending));
    Arc::new(Mutex::new(pending.to_vec()))
}

/// Workloads of one kind.
pub(crate) struct Workloads {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: WorkloadKind,
    pub(crate) states: States,
    pub(crate) known: BTreeSet<WorkloadKey>,
    pub(crate) listed: BTreeSet<WorkloadKey>,
}

impl Workloads {
    fn tell(&self, key: WorkloadKey, workload: Option<Workload>) {
        let seen = Observation::Workload(key, workload);
        self.shared.with(|brain| brain.observe(seen));
    }

    #[allow(clippy::needless_pass_by_value, reason = "as in the other sinks")]
    fn state(&self, state: SourceState) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, known) in states.iter_mut() {
            if *kind == self.kind {
                known.clone_from(&state);
            }
        }
        let worst = states.iter().map(|(_, state)| state);
        let worst = worst.min_by_key(|state| match state {
            SourceState::Failing(_) => 0,
            SourceState::Pending => 1,
            SourceState::Ready => 2,
        });
        if let Some(state) = worst.cloned() {
            self.shared.with(|brain| brain.source(Source::Workloads, state));
        }
    }
}

impl Sink for Workloads {
    type Item = Value;

    fn begin(&mut self) {
        self.listed.clear();
    }

    fn seen(&mut self, object: Value) {
        let Some((key, workload)) = Workload::of(self.kind, &object) else {
            let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
            tracing::warn!(kind = self.kind.name(), %name, "cannot be read");
            return;
        };
        self.known.insert(key.clone());
        self.listed.insert(key.clone());
        self.tell(key, Some(workload));
    }

    fn gone(&mut self, object: Value) {
        if let Some((key, _)) = Workload::of(self.kind, &object) {
            self.known.remove(&key);
            self.tell(key, None);
        }
    }

    fn listed(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        let known = std::mem::replace(&mut self.known, listed);
        let lost: Vec<WorkloadKey> = known.difference(&self.known).cloned().collect();
        for key in lost {
            self.tell(key, None);
        }
        self.state(SourceState::Ready);
    }

    fn failing(&mut self, message: &str) {
        self.state(SourceState::Failing(message.to_owned()));
    }

    fn recovered(&mut self) {
        self.state(SourceState::Ready);
    }
}
