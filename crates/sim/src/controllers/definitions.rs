//! Deletes the custom objects of a terminating `CustomResourceDefinition`, then the definition.

use std::sync::Arc;

use serde_json::Value;

use super::{Controller, SeenInputs};
use crate::context::Context;
use crate::crd::definition::{
    Condition, FINALIZER, TABLE, is_condition_true, set_condition, update_accepted_names_of_others,
    write_status,
};
use crate::state::State;
use crate::tree;
use crate::write::{self, DeleteOptions, Target};

/// Controller for terminating definitions.
#[derive(Debug, Default)]
pub struct Definitions {
    seen: SeenInputs,
}

impl Controller for Definitions {
    fn name(&self) -> &'static str {
        "definitions"
    }

    fn step(&mut self, state: &mut State) -> bool {
        if !self.seen.update(state) {
            return false;
        }
        let terminating: Vec<Value> = state
            .store
            .all(TABLE)
            .filter(|object| object.meta().deleting)
            .map(|object| object.value())
            .collect();
        let before = state.store.version();
        for definition in terminating {
            finalize(state, &definition);
        }
        state.store.version() != before
    }
}

/// Deletes the objects of a terminating definition, and removes its finalizer when none is left.
fn finalize(state: &mut State, definition: &Value) {
    let finalizers = tree::list(definition, &["metadata", "finalizers"]);
    if !finalizers.iter().any(|one| one == FINALIZER) {
        return;
    }
    let name = tree::text(definition, &["metadata", "name"]);
    let now = state.now().rfc3339();
    let mut new = definition.clone();
    let detail = "CustomResource deletion is in progress";
    set_condition(
        &mut new,
        Condition {
            kind: "Terminating",
            status: true,
            reason: "InstanceDeletionInProgress",
            message: detail,
        },
        &now,
    );
    if new != *definition {
        write_status(state, name, &new);
    }
    let established = is_condition_true(definition, "Established");
    if established && delete_objects(state, definition) {
        return;
    }
    let Some(mut last) = state.store.get(TABLE, name).map(|object| object.value()) else {
        return;
    };
    let condition = if established {
        Condition {
            kind: "Terminating",
            status: false,
            reason: "InstanceDeletionCompleted",
            message: "removed all instances",
        }
    } else {
        Condition {
            kind: "Terminating",
            status: false,
            reason: "NeverEstablished",
            message: "resource was never established",
        }
    };
    set_condition(&mut last, condition, &now);
    if let Some(finalizers) = tree::list_mut(&mut last, &["metadata", "finalizers"]) {
        finalizers.retain(|one| one != FINALIZER);
    }
    write_status(state, name, &last);
    update_accepted_names_of_others(state, definition);
}

/// Deletes the objects of a definition. Returns whether any is left.
fn delete_objects(state: &mut State, definition: &Value) -> bool {
    let (group, plural) = (
        tree::text(definition, &["spec", "group"]),
        tree::text(definition, &["spec", "names", "plural"]),
    );
    let Some(resource) = state.resources.preferred(group, plural).cloned() else {
        return false;
    };
    let objects: Vec<_> = state.store.all(&resource.table).map(Arc::clone).collect();
    for object in objects.iter().filter(|object| !object.meta().deleting) {
        let target = Target {
            resource: &resource,
            namespace: &object.meta().namespace,
            name: &object.meta().name,
        };
        let mut context = Context::for_controller("kube-apiserver");
        // Ignored: objects that remain are checked in the next step.
        let _ = write::delete(state, &target, &DeleteOptions::default(), &mut context);
    }
    state.store.all(&resource.table).next().is_some()
}
