//! Deletes the objects of a terminating namespace, then the namespace.

use std::sync::Arc;

use serde_json::Value;

use super::{Controller, SeenInputs};
use crate::context::Context;
use crate::resource::{Resource, Verb};
use crate::state::State;
use crate::strategy;
use crate::write::{self, DeleteOptions, Propagation, Target};

/// Maximum number of writes per step. The remaining objects are deleted in the next steps.
const MAX_WRITES_PER_STEP: u64 = 250;

/// Controller for terminating namespaces.
#[derive(Debug, Default)]
pub struct Namespaces {
    seen: SeenInputs,
}

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespaces"
    }

    fn step(&mut self, state: &mut State) -> bool {
        if !self.seen.update(state) {
            return false;
        }
        let terminating: Vec<String> = state
            .store
            .all("namespaces")
            .filter(|object| object.meta().deleting)
            .map(|object| object.meta().name.to_string())
            .collect();
        let mut changed = false;
        for name in &terminating {
            changed |= finalize(state, name);
        }
        changed
    }
}

/// Deletes the objects of a namespace, and the namespace when it is empty. Returns whether anything
/// changed or the maximum number of writes was reached.
fn finalize(state: &mut State, namespace: &str) -> bool {
    let tables: Vec<Arc<Resource>> = state
        .resources
        .tables()
        .filter(|resource| resource.namespaced && resource.verbs.contains(Verb::Delete))
        .cloned()
        .collect();
    let (mut any_left, mut changed) = (false, false);
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
                changed |= write::delete(state, &target, &options, &mut context).is_ok();
            }
            any_left |= state.store.get(&resource.table, &object.key()).is_some();
        }
    }
    if !any_left && let Some(resource) = state.resources.preferred("", "namespaces").cloned() {
        let target = Target {
            resource: &resource,
            namespace: "",
            name: namespace,
        };
        changed |= strategy::finalize(state, &target, &Value::Null).is_ok();
    }
    changed
}
