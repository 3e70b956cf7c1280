//! Sinks that pass workloads to the reconciler. The three kinds of workloads are one source, which counts
//! as listed when all three kinds were listed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::workload::{RawWorkload, WorkloadKey, WorkloadKind};

use super::{Item, Sink};
use crate::run::Shared;

/// State of each kind of workload.
pub(crate) type WorkloadStates = Arc<Mutex<Vec<(WorkloadKind, SourceState)>>>;

/// Returns the initial states, in which no kind was listed.
pub(crate) fn pending_states() -> WorkloadStates {
    let pending = WorkloadKind::ALL.map(|kind| (kind, SourceState::Pending));
    Arc::new(Mutex::new(pending.to_vec()))
}

impl Item for RawWorkload {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

/// A sink for the workloads of one kind.
pub(crate) struct Workloads {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: WorkloadKind,
    pub(crate) states: WorkloadStates,
    pub(crate) listed: BTreeSet<WorkloadKey>,
    pub(crate) is_listing: bool,
}

impl Workloads {
    #[allow(clippy::needless_pass_by_value, reason = "as in the other sinks")]
    fn set_state(&self, state: SourceState) {
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
            self.shared
                .with(|reconciler| reconciler.set_source_state(Source::Workloads, state));
        }
    }
}

impl Sink for Workloads {
    type Item = RawWorkload;

    fn begin_list(&mut self) {
        self.listed.clear();
        self.is_listing = true;
    }

    fn apply(&mut self, raw: RawWorkload) {
        let key = raw.key(self.kind);
        if self.is_listing {
            self.listed.insert(key.clone());
        }
        let workload = raw.to_workload(self.kind);
        self.shared
            .with(|reconciler| reconciler.observe_workload(key, workload));
    }

    fn delete(&mut self, raw: RawWorkload) {
        let key = raw.key(self.kind);
        self.shared.with(|reconciler| reconciler.remove_workload(&key));
    }

    fn finish_list(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.is_listing = false;
        self.shared.with(|reconciler| {
            let known = reconciler.snapshot().workloads().map(|(key, _)| key);
            let deleted = known.filter(|key| key.kind() == self.kind && !listed.contains(key));
            let deleted: Vec<WorkloadKey> = deleted.cloned().collect();
            for key in deleted {
                reconciler.remove_workload(&key);
            }
        });
        self.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.set_state(SourceState::Failing(message.to_owned()));
    }

    fn mark_recovered(&mut self) {
        self.set_state(SourceState::Ready);
    }
}
