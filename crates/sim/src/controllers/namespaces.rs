//! Deletes the objects of a terminating namespace, then the namespace.

use std::sync::Arc;

use serde_json::Value;

use super::Controller;
use crate::context::Context;
use crate::resource::{Resource, Verb};
use crate::state::State;
use crate::strategy;
use crate::write::{self, DeleteOptions, Propagation, Target};

/// Maximum number of writes per step. Namespaces with more objects are emptied in slices.
const MAX_WRITES_PER_STEP: u64 = 250;

/// The controller for terminating namespaces.
#[derive(Debug, Default)]
pub struct Namespaces {
    seen: u64,
    /// Number of webhook replies at the last step.
    replies_seen: u64,
}

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespaces"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let replied = std::mem::replace(&mut self.replies_seen, state.webhooks.pending.replies_received)
            != self.replies_seen;
        if state.store.version() == self.seen && !replied {
            return false;
        }
        self.seen = state.store.version();
        let dying: Vec<String> = state
            .store
            .all("namespaces")
            .filter(|object| object.meta().deleting)
            .map(|object| object.meta().name.to_string())
            .collect();
        let mut busy = false;
        for name in &dying {
            busy |= empty(state, name);
        }
        busy
    }
}

/// Deletes the objects of a namespace, and the namespace when it is empty.
fn empty(state: &mut State, namespace: &str) -> bool {
    let tables: Vec<Arc<Resource>> = state
        .resources
        .tables()
        .filter(|resource| resource.namespaced && resource.verbs.contains(Verb::Delete))
        .cloned()
        .collect();
    let (mut left, mut busy) = (false, false);
    let last = state.store.version().saturating_add(MAX_WRITES_PER_STEP);
    for resource in tables {
        if state.store.version() >= last {
            return true;
        }
        let objects: Vec<_> = state
            .store
            .range(&resource.table, namespace, None)
            .map(|(_, object)| Arc::clone(object))
            .collect();
        for object in objects {
            if state.store.version() >= last {
                return true;
            }
            if !object.meta().deleting {
                let target = Target {
                    resource: &resource,
                    namespace,
                    name: &object.meta().name,
                };
                let options = DeleteOptions {
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                let mut context = Context::for_controller("namespace-controller");
                busy |= write::delete(state, &target, &options, &mut context).is_ok();
            }
            left |= state.store.get(&resource.table, &object.key()).is_some();
        }
    }
    if !left && let Some(resource) = state.resources.preferred("", "namespaces").cloned() {
        let target = Target {
            resource: &resource,
            namespace: "",
            name: namespace,
        };
        busy |= strategy::finalize(state, &target, &Value::Null).is_ok();
    }
    busy
}
