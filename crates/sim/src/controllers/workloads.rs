//! The workload controllers. They share one index of pods; each controller is a function from an object key
//! to writes, called by a work queue.

use std::sync::Arc;

use super::Controller;
use crate::clock::Instant;
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::store::EventKind;

mod act;
mod budget;
mod condition;
mod daemon_set;
mod deployment;
mod endpoints;
mod index;
pub mod int_or_percent;
mod job;
mod legacy_endpoints;
mod names;
mod pod;
mod queue;
mod replica_set;
mod revision;
mod stateful_set;

use index::Index;
use queue::Queue;

/// Time at which to sync a key again without a change.
type RequeueAt = Option<Instant>;

/// A controller: its table and its sync function.
struct WorkloadController {
    table: &'static str,
    kind: &'static str,
    sync: fn(&mut State, &Index, &str) -> Result<RequeueAt>,
}

const CONTROLLERS: [WorkloadController; 7] = [
    WorkloadController {
        table: "deployments.apps",
        kind: "Deployment",
        sync: deployment::sync,
    },
    WorkloadController {
        table: "replicasets.apps",
        kind: "ReplicaSet",
        sync: replica_set::sync,
    },
    WorkloadController {
        table: "statefulsets.apps",
        kind: "StatefulSet",
        sync: stateful_set::sync,
    },
    WorkloadController {
        table: "daemonsets.apps",
        kind: "DaemonSet",
        sync: daemon_set::sync,
    },
    WorkloadController {
        table: "jobs.batch",
        kind: "Job",
        sync: job::sync,
    },
    WorkloadController {
        table: SERVICES,
        kind: "Service",
        sync: endpoints::sync,
    },
    WorkloadController {
        table: BUDGETS,
        kind: "PodDisruptionBudget",
        sync: budget::sync,
    },
];

const PODS: &str = "pods";
const NODES: &str = "nodes";
const SERVICES: &str = "services";
const BUDGETS: &str = "poddisruptionbudgets.policy";
const DAEMONS: &str = "daemonsets.apps";

/// The controllers for Deployments, `ReplicaSets`, `StatefulSets`, `DaemonSets`, Jobs, `EndpointSlices` and
/// `PodDisruptionBudgets`.
#[derive(Debug, Default)]
pub struct Workloads {
    seen: u64,
    index: Index,
    queues: [Queue; CONTROLLERS.len()],
    /// Number of webhook replies at the last step.
    replies_seen: u64,
}

impl Controller for Workloads {
    fn name(&self) -> &'static str {
        "workloads"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let before = state.store.version();
        self.ingest(state);
        if std::mem::replace(&mut self.replies_seen, state.webhooks.pending.replies_received)
            != self.replies_seen
        {
            self.queues.iter_mut().for_each(Queue::release_held);
        }
        for at in 0..CONTROLLERS.len() {
            self.run(state, at);
            self.ingest(state);
        }
        state.store.version() != before || self.queues.iter().any(Queue::is_busy)
    }

    fn next(&self, _state: &State) -> Option<Instant> {
        self.queues.iter().filter_map(Queue::next).min()
    }
}

impl Workloads {
    /// Runs one controller for every key in its queue.
    fn run(&mut self, state: &mut State, at: usize) {
        let (Some(part), Some(queue)) = (CONTROLLERS.get(at), self.queues.get_mut(at)) else {
            return;
        };
        let now = state.now();
        for key in queue.take(now) {
            if state.is_paused() {
                queue.add(&key);
                continue;
            }
            match (part.sync)(state, &self.index, &key) {
                // The rest of its writes follows when controllers continue.
                Ok(_) if state.is_paused() => queue.done(&key, Some(now)),
                Ok(again) => queue.done(&key, again),
                Err(error) if error.is_webhook_pending() => queue.hold(&key),
                Err(_) => queue.failed(&key, now),
            }
        }
    }

    /// Reads the changes since the last step.
    fn ingest(&mut self, state: &State) {
        if state.store.version() == self.seen {
            return;
        }
        for table in state.store.changed_since(self.seen) {
            let events = state
                .store
                .history(&table)
                .and_then(|history| history.after(self.seen));
            if let Some(events) = events {
                for event in events {
                    let gone = event.kind == EventKind::Deleted;
                    self.observe(state, &table, &event.object, event.previous.as_ref(), gone);
                }
            } else {
                self.reload(state, &table);
            }
        }
        self.seen = state.store.version();
    }

    /// Enqueues all objects of a table after its history has been compacted.
    fn reload(&mut self, state: &State, table: &Arc<str>) {
        self.index.forget(table);
        for part in &CONTROLLERS {
            for object in state.store.all(part.table) {
                self.enqueue(part.table, &object.key());
            }
        }
        for object in state.store.all(table) {
            self.observe(state, table, object, None, false);
        }
    }

    fn observe(
        &mut self,
        state: &State,
        table: &str,
        object: &Arc<Object>,
        previous: Option<&Arc<Object>>,
        gone: bool,
    ) {
        let key = object.key();
        self.enqueue(table, &key);
        for owner in object
            .meta()
            .controller()
            .into_iter()
            .chain(previous.and_then(|previous| previous.meta().controller()))
        {
            if let Some(part) = CONTROLLERS.iter().find(|part| part.kind == &*owner.kind) {
                let key = crate::object::key(&object.meta().namespace, &owner.name);
                self.enqueue(part.table, &key);
            }
        }
        match table {
            PODS => {
                for (part, key) in self.index.put_pod(object, gone) {
                    self.enqueue(part, &key);
                }
            }
            SERVICES | BUDGETS => self.index.put_selector(table, object, gone),
            NODES => {
                // Node heartbeats do not matter to daemon sets, but they are rare in the simulator.
                for object in state.store.all(DAEMONS) {
                    self.enqueue(DAEMONS, &object.key());
                }
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, table: &str, key: &str) {
        let at = CONTROLLERS.iter().position(|part| part.table == table);
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(at)) {
            queue.add(key);
        }
    }
}
