//! The workload controllers. They share an index of pods. Each controller is a function that syncs one object
//! and is called for the keys in its work queue.

use std::sync::Arc;

use super::Controller;
use crate::clock::Instant;
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::store::EventKind;

mod actor;
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

/// Time at which to sync a key again even if nothing changes.
type RequeueAt = Option<Instant>;

/// Table, kind and sync function of a controller.
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
const DAEMON_SETS: &str = "daemonsets.apps";

/// Controllers for Deployments, `ReplicaSets`, `StatefulSets`, `DaemonSets`, Jobs, `EndpointSlices` and
/// `PodDisruptionBudgets`.
#[derive(Debug, Default)]
pub struct Workloads {
    seen_version: u64,
    index: Index,
    queues: [Queue; CONTROLLERS.len()],
    /// Number of webhook replies at the last step.
    seen_replies: u64,
}

impl Controller for Workloads {
    fn name(&self) -> &'static str {
        "workloads"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let before = state.store.version();
        self.read_changes(state);
        if std::mem::replace(&mut self.seen_replies, state.webhooks.pending.replies_received)
            != self.seen_replies
        {
            self.queues.iter_mut().for_each(Queue::release_blocked);
        }
        for at in 0..CONTROLLERS.len() {
            self.run_controller(state, at);
            self.read_changes(state);
        }
        state.store.version() != before || self.queues.iter().any(Queue::is_busy)
    }

    fn next(&self, _state: &State) -> Option<Instant> {
        self.queues.iter().filter_map(Queue::next).min()
    }
}

impl Workloads {
    /// Runs the controller with the index `at` for every key that is due in its queue.
    fn run_controller(&mut self, state: &mut State, at: usize) {
        let (Some(controller), Some(queue)) = (CONTROLLERS.get(at), self.queues.get_mut(at)) else {
            return;
        };
        let now = state.now();
        for key in queue.take(now) {
            if state.is_paused() {
                queue.add(&key);
                continue;
            }
            match (controller.sync)(state, &self.index, &key) {
                // The remaining writes for this key are done when controllers continue.
                Ok(_) if state.is_paused() => queue.done(&key, Some(now)),
                Ok(requeue_at) => queue.done(&key, requeue_at),
                Err(error) if error.is_webhook_pending() => queue.block(&key),
                Err(_) => queue.failed(&key, now),
            }
        }
    }

    /// Reads the changes since the last step.
    fn read_changes(&mut self, state: &State) {
        if state.store.version() == self.seen_version {
            return;
        }
        for table in state.store.changed_since(self.seen_version) {
            let events = state
                .store
                .history(&table)
                .and_then(|history| history.after(self.seen_version));
            if let Some(events) = events {
                for event in events {
                    let deleted = event.kind == EventKind::Deleted;
                    self.observe(state, &table, &event.object, event.previous.as_ref(), deleted);
                }
            } else {
                self.relist(state, &table);
            }
        }
        self.seen_version = state.store.version();
    }

    /// Reads all objects of a table after its history has been compacted, and enqueues all keys.
    fn relist(&mut self, state: &State, table: &Arc<str>) {
        self.index.clear_table(table);
        for controller in &CONTROLLERS {
            for object in state.store.all(controller.table) {
                self.enqueue(controller.table, &object.key());
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
        deleted: bool,
    ) {
        let key = object.key();
        self.enqueue(table, &key);
        for owner in object
            .meta()
            .controller()
            .into_iter()
            .chain(previous.and_then(|previous| previous.meta().controller()))
        {
            if let Some(controller) = CONTROLLERS
                .iter()
                .find(|controller| controller.kind == &*owner.kind)
            {
                let key = crate::object::key(&object.meta().namespace, &owner.name);
                self.enqueue(controller.table, &key);
            }
        }
        match table {
            PODS => {
                for (table, key) in self.index.put_pod(object, deleted) {
                    self.enqueue(table, &key);
                }
            }
            SERVICES | BUDGETS => self.index.put_selector(table, object, deleted),
            NODES => {
                // Heartbeats of nodes are not relevant for daemon sets, but they are rare in the simulator.
                for object in state.store.all(DAEMON_SETS) {
                    self.enqueue(DAEMON_SETS, &object.key());
                }
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, table: &str, key: &str) {
        let at = CONTROLLERS
            .iter()
            .position(|controller| controller.table == table);
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(at)) {
            queue.add(key);
        }
    }
}
