//! Garbage collection: deletes objects whose owners do not exist; handles foreground deletion and orphaning.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::Controller;
use crate::context::Context;
use crate::object::{Object, Owner};
use crate::resource::Resource;
use crate::state::State;
use crate::store::{EventKind, ObjectLocation};
use crate::tree;
use crate::write::{self, DeleteOptions, Propagation, Target};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Maximum number of dependents per step. Owners with more are deleted in slices.
const MAX_OBJECTS_PER_STEP: usize = 250;

/// The garbage collector.
#[derive(Debug, Default)]
pub struct Garbage {
    seen: u64,
    /// Objects whose write waits for a webhook, and the number of webhook replies at the last step.
    held: BTreeSet<ObjectLocation>,
    replies_seen: u64,
    /// Objects to check in the next steps.
    backlog: BTreeSet<ObjectLocation>,
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let (mut places, gone) = self.changed(state);
        if std::mem::replace(&mut self.replies_seen, state.webhooks.pending.replies_received)
            != self.replies_seen
        {
            places.append(&mut self.held);
        }
        let before = state.store.version();
        for location in &places {
            let blocked = state.webhooks.pending.blocked_writes;
            handle_owner(state, location);
            if state.webhooks.pending.blocked_writes != blocked {
                self.held.insert(location.clone());
            }
        }
        let dependents = gone.iter().flat_map(|uid| state.store.dependents(uid));
        self.backlog.extend(dependents.cloned());
        self.backlog.extend(places);
        for _ in 0..MAX_OBJECTS_PER_STEP {
            let Some(location) = self.backlog.pop_first() else {
                break;
            };
            let blocked = state.webhooks.pending.blocked_writes;
            handle_dependent(state, &location);
            if state.webhooks.pending.blocked_writes != blocked {
                self.held.insert(location);
            }
        }
        state.store.version() != before || !self.backlog.is_empty()
    }
}

impl Garbage {
    /// Returns the objects written since the last step, and the deleted uids.
    fn changed(&mut self, state: &State) -> (BTreeSet<ObjectLocation>, BTreeSet<Box<str>>) {
        let (mut places, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for table in state.store.changed_since(self.seen) {
            let location = |object: &Object| ObjectLocation {
                table: Arc::clone(&table),
                key: object.key().into(),
            };
            let events = state
                .store
                .history(&table)
                .and_then(|history| history.after(self.seen));
            let Some(events) = events else {
                // The history has been compacted: check all objects.
                places.extend(state.store.all(&table).map(|object| location(object)));
                continue;
            };
            for event in events {
                let meta = event.object.meta();
                if event.kind == EventKind::Deleted {
                    gone.insert(meta.uid.clone());
                    // A foreground deletion may have waited for this object.
                    places.extend(
                        meta.owners
                            .iter()
                            .filter_map(|owner| state.store.location_of(&owner.uid))
                            .cloned(),
                    );
                } else if meta.deleting || !meta.owners.is_empty() {
                    places.insert(location(&event.object));
                }
                // Foreground deletion also depends on removed references.
                let before = event
                    .previous
                    .iter()
                    .flat_map(|previous| previous.meta().owners.iter());
                places.extend(
                    before
                        .filter_map(|owner| state.store.location_of(&owner.uid))
                        .cloned(),
                );
            }
        }
        self.seen = state.store.version();
        (places, gone)
    }
}

fn find(state: &State, location: &ObjectLocation) -> Option<(Arc<Resource>, Arc<Object>)> {
    let object = Arc::clone(state.store.get(&location.table, &location.key)?);
    let resource = state
        .resources
        .tables()
        .find(|resource| resource.table == location.table)?;
    Some((Arc::clone(resource), object))
}

/// Handles an owner that is deleted in the foreground or orphans its dependents.
fn handle_owner(state: &mut State, location: &ObjectLocation) {
    let Some((resource, object)) = find(state, location) else {
        return;
    };
    if !object.meta().deleting {
        return;
    }
    let holds = |finalizer: &str| object.meta().finalizers.iter().any(|have| &**have == finalizer);
    if holds(ORPHAN) {
        let dependents: Vec<ObjectLocation> = state.store.dependents(&object.meta().uid).cloned().collect();
        for dependent in dependents {
            drop_references(state, &dependent, &|owner| owner.uid == object.meta().uid);
        }
        remove_finalizer(state, &resource, &object, ORPHAN);
    } else if holds(FOREGROUND) {
        let is_deleting = |location: &&ObjectLocation| {
            let object = state.store.get(&location.table, &location.key);
            object.is_some_and(|object| object.meta().deleting)
        };
        // The events of their deletion return here for the rest.
        let dependents: Vec<ObjectLocation> = state
            .store
            .dependents(&object.meta().uid)
            .filter(|location| !is_deleting(location))
            .take(MAX_OBJECTS_PER_STEP)
            .cloned()
            .collect();
        for dependent in &dependents {
            handle_dependent(state, dependent);
        }
        let blocked = state
            .store
            .dependents(&object.meta().uid)
            .any(|location| blocks(state, location, &object.meta().uid));
        if !blocked {
            remove_finalizer(state, &resource, &object, FOREGROUND);
        }
    }
}

fn blocks(state: &State, location: &ObjectLocation, owner: &str) -> bool {
    let object = state.store.get(&location.table, &location.key);
    object.is_some_and(|object| {
        object
            .meta()
            .owners
            .iter()
            .any(|have| &*have.uid == owner && have.blocks_deletion)
    })
}

/// The state of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    Alive,
    Gone,
    WaitingForDependents,
}

fn owner_state(state: &State, owner: &Owner, dependent: &Object) -> OwnerState {
    let found = state
        .store
        .location_of(&owner.uid)
        .and_then(|location| state.store.get(&location.table, &location.key));
    match found {
        None if state.absent_owners.contains(&owner.uid) => OwnerState::Alive,
        None => OwnerState::Gone,
        // A namespaced owner is valid in its own namespace only.
        Some(object)
            if !object.meta().namespace.is_empty()
                && object.meta().namespace != dependent.meta().namespace =>
        {
            OwnerState::Gone
        }
        Some(object)
            if object.meta().deleting
                && object.meta().finalizers.iter().any(|have| &**have == FOREGROUND) =>
        {
            OwnerState::WaitingForDependents
        }
        Some(_) => OwnerState::Alive,
    }
}

fn handle_dependent(state: &mut State, location: &ObjectLocation) {
    let Some((resource, object)) = find(state, location) else {
        return;
    };
    let meta = object.meta();
    if meta.owners.is_empty() || (meta.deleting && !meta.finalizers.is_empty()) {
        return;
    }
    let owner_states: Vec<OwnerState> = meta
        .owners
        .iter()
        .map(|owner| owner_state(state, owner, &object))
        .collect();
    if owner_states.contains(&OwnerState::Alive) {
        if owner_states
            .iter()
            .any(|owner_state| *owner_state != OwnerState::Alive)
        {
            let dead: BTreeSet<Box<str>> = meta
                .owners
                .iter()
                .zip(&owner_states)
                .filter(|(_, owner_state)| **owner_state != OwnerState::Alive)
                .map(|(owner, _)| owner.uid.clone())
                .collect();
            drop_references(state, location, &|owner| dead.contains(&owner.uid));
        }
        return;
    }
    if meta.deleting {
        return;
    }
    let has_dependents = state.store.dependents(&meta.uid).next().is_some();
    let standing = meta.finalizers.iter().find_map(|finalizer| match &**finalizer {
        ORPHAN => Some(Propagation::Orphan),
        FOREGROUND => Some(Propagation::Foreground),
        _ => None,
    });
    let policy = match standing {
        Some(policy) => policy,
        None if owner_states.contains(&OwnerState::WaitingForDependents) && has_dependents => {
            Propagation::Foreground
        }
        None => Propagation::Background,
    };
    let options = DeleteOptions {
        propagation: Some(policy),
        uid: Some(meta.uid.to_string()),
        ..DeleteOptions::default()
    };
    let target = Target {
        resource: &resource,
        namespace: &meta.namespace,
        name: &meta.name,
    };
    let mut context = Context::for_controller("garbage-collector");
    if write::delete(state, &target, &options, &mut context).is_ok() {
        let now = state.now();
        state.trace.line(
            now,
            &format!("garbage-collector: delete {} {}", location.table, location.key),
        );
    }
}

fn drop_references(state: &mut State, location: &ObjectLocation, dead: &dyn Fn(&Owner) -> bool) {
    let Some((resource, object)) = find(state, location) else {
        return;
    };
    change(state, &resource, &object, &mut |value| {
        let kept: Vec<Value> = tree::list(value, &["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| !dead(&Owner::from_value(owner)))
            .cloned()
            .collect();
        put_list(value, "ownerReferences", kept);
    });
}

fn remove_finalizer(state: &mut State, resource: &Arc<Resource>, object: &Arc<Object>, finalizer: &str) {
    change(state, resource, object, &mut |value| {
        let kept: Vec<Value> = tree::list(value, &["metadata", "finalizers"])
            .iter()
            .filter(|have| *have != finalizer)
            .cloned()
            .collect();
        put_list(value, "finalizers", kept);
    });
}

fn put_list(value: &mut Value, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        tree::remove(value, &["metadata", field]);
    } else {
        tree::set(value, &["metadata", field], list);
    }
}

fn change(
    state: &mut State,
    resource: &Arc<Resource>,
    object: &Arc<Object>,
    how: &mut dyn FnMut(&mut Value),
) {
    let target = Target {
        resource,
        namespace: &object.meta().namespace,
        name: &object.meta().name,
    };
    let mut context = Context::for_controller("garbage-collector");
    let _ = write::update(state, &target, &mut context, false, &mut |_, live, _| {
        let mut value = live.cloned().unwrap_or_default();
        how(&mut value);
        Ok(value)
    });
}
