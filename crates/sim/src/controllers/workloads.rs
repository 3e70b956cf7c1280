//! The workload controllers: takes what happened in the store, gives the writes that the controller manager would make. One index of
//! pods serves them all; each controller is a function from a key to writes, and a queue of keys decides who is called when.

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
mod names;
mod pod;
mod queue;
mod replica_set;
mod revision;
mod stateful_set;

use index::Index;
use queue::Queue;

/// When to look at a key again although nothing happens.
type Again = Option<Instant>;

/// One controller: the table it answers for and what it does about one object of it.
struct Part {
    table: &'static str,
    kind: &'static str,
    sync: fn(&mut State, &Index, &str) -> Result<Again>,
}

const PARTS: [Part; 7] = [
    Part {
        table: "deployments.apps",
        kind: "Deployment",
        sync: deployment::sync,
    },
    Part {
        table: "replicasets.apps",
        kind: "ReplicaSet",
        sync: replica_set::sync,
    },
    Part {
        table: "statefulsets.apps",
        kind: "StatefulSet",
        sync: stateful_set::sync,
    },
    Part {
        table: "daemonsets.apps",
        kind: "DaemonSet",
        sync: daemon_set::sync,
    },
    Part {
        table: "jobs.batch",
        kind: "Job",
        sync: job::sync,
    },
    Part {
        table: SERVICES,
        kind: "Service",
        sync: endpoints::sync,
    },
    Part {
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

/// Deployments, replica sets, stateful sets, daemon sets, jobs, endpoint slices and disruption budgets.
#[derive(Debug, Default)]
pub struct Workloads {
    seen: u64,
    index: Index,
    queues: [Queue; PARTS.len()],
    /// Answers from outside that were heard of.
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
            self.queues.iter_mut().for_each(Queue::wake_held);
        }
        for at in 0..PARTS.len() {
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
    /// Calls one controller for every key that waits for it.
    fn run(&mut self, state: &mut State, at: usize) {
        let (Some(part), Some(queue)) = (PARTS.get(at), self.queues.get_mut(at)) else {
            return;
        };
        let now = state.now();
        for key in queue.take(now) {
            match (part.sync)(state, &self.index, &key) {
                Ok(again) => queue.done(&key, again),
                Err(error) if error.is_webhook_pending() => queue.hold(&key),
                Err(_) => queue.failed(&key, now),
            }
        }
    }

    /// Learns what was written since the last time.
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
                    self.heard(state, &table, &event.object, event.previous.as_ref(), gone);
                }
            } else {
                self.reload(state, &table);
            }
        }
        self.seen = state.store.version();
    }

    /// Too much happened: looks at everything.
    fn reload(&mut self, state: &State, table: &Arc<str>) {
        self.index.forget(table);
        for part in &PARTS {
            for object in state.store.all(part.table) {
                self.wake(part.table, &object.key());
            }
        }
        for object in state.store.all(table) {
            self.heard(state, table, object, None, false);
        }
    }

    fn heard(
        &mut self,
        state: &State,
        table: &str,
        object: &Arc<Object>,
        previous: Option<&Arc<Object>>,
        gone: bool,
    ) {
        let key = object.key();
        self.wake(table, &key);
        for owner in object
            .meta()
            .controller()
            .into_iter()
            .chain(previous.and_then(|previous| previous.meta().controller()))
        {
            if let Some(part) = PARTS.iter().find(|part| part.kind == &*owner.kind) {
                let key = crate::object::key(&object.meta().namespace, &owner.name);
                self.wake(part.table, &key);
            }
        }
        match table {
            PODS => {
                for (part, key) in self.index.put_pod(object, gone) {
                    self.wake(part, &key);
                }
            }
            SERVICES | BUDGETS => self.index.put_selector(table, object, gone),
            NODES => {
                // Heartbeats change nothing that a daemon set asks for, but they are rare here.
                for object in state.store.all(DAEMONS) {
                    self.wake(DAEMONS, &object.key());
                }
            }
            _ => {}
        }
    }

    fn wake(&mut self, table: &str, key: &str) {
        let at = PARTS.iter().position(|part| part.table == table);
        if let Some(queue) = at.and_then(|at| self.queues.get_mut(at)) {
            queue.add(key);
        }
    }
}
