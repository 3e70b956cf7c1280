//! Garbage collection: deletes objects if none of their owners exists, and handles foreground deletion and
//! orphaning.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::Controller;
use crate::context::Context;
use crate::finalizers::{FOREGROUND, ORPHAN};
use crate::object::{Object, Owner};
use crate::resource::Resource;
use crate::state::State;
use crate::store::{EventKind, ObjectLocation};
use crate::tree;
use crate::write::{self, DeleteOptions, Propagation, Target};

/// Maximum number of dependents that are handled per step. The others are handled in the next steps.
const MAX_OBJECTS_PER_STEP: usize = 250;

/// The garbage collector.
#[derive(Debug, Default)]
pub struct Garbage {
    seen_version: u64,
    /// Objects with a write that is waiting for a webhook.
    blocked: BTreeSet<ObjectLocation>,
    /// Number of webhook replies at the last step.
    seen_replies: u64,
    /// Dependents to check in the next steps.
    backlog: BTreeSet<ObjectLocation>,
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let (mut locations, deleted_uids) = self.read_changes(state);
        if std::mem::replace(&mut self.seen_replies, state.webhooks.pending.replies_received)
            != self.seen_replies
        {
            locations.append(&mut self.blocked);
        }
        let before = state.store.version();
        for location in &locations {
            let blocked = state.webhooks.pending.blocked_writes;
            handle_owner(state, location);
            if state.webhooks.pending.blocked_writes != blocked {
                self.blocked.insert(location.clone());
            }
        }
        let dependents = deleted_uids.iter().flat_map(|uid| state.store.dependents(uid));
        self.backlog.extend(dependents.cloned());
        self.backlog.extend(locations);
        for _ in 0..MAX_OBJECTS_PER_STEP {
            let Some(location) = self.backlog.pop_first() else {
                break;
            };
            let blocked = state.webhooks.pending.blocked_writes;
            handle_dependent(state, &location);
            if state.webhooks.pending.blocked_writes != blocked {
                self.blocked.insert(location);
            }
        }
        state.store.version() != before || !self.backlog.is_empty()
    }
}

impl Garbage {
    /// Returns the objects to check after the changes since the last step, and the uids of deleted objects.
    fn read_changes(&mut self, state: &State) -> (BTreeSet<ObjectLocation>, BTreeSet<Box<str>>) {
        let (mut locations, mut deleted_uids) = (BTreeSet::new(), BTreeSet::new());
        for table in state.store.changed_since(self.seen_version) {
            let location = |object: &Object| ObjectLocation {
                table: Arc::clone(&table),
                key: object.key().into(),
            };
            let events = state
                .store
                .history(&table)
                .and_then(|history| history.after(self.seen_version));
            let Some(events) = events else {
                // The history has been compacted: check all objects.
                locations.extend(state.store.all(&table).map(|object| location(object)));
                continue;
            };
            for event in events {
                let meta = event.object.meta();
                if event.kind == EventKind::Deleted {
                    deleted_uids.insert(meta.uid.clone());
                    // The foreground deletion of an owner may be waiting for this object.
                    locations.extend(
                        meta.owners
                            .iter()
                            .filter_map(|owner| state.store.location_of(&owner.uid))
                            .cloned(),
                    );
                } else if meta.deleting || !meta.owners.is_empty() {
                    locations.insert(location(&event.object));
                }
                // The foreground deletion of an owner also continues when a reference to it is removed.
                let before = event
                    .previous
                    .iter()
                    .flat_map(|previous| previous.meta().owners.iter());
                locations.extend(
                    before
                        .filter_map(|owner| state.store.location_of(&owner.uid))
                        .cloned(),
                );
            }
        }
        self.seen_version = state.store.version();
        (locations, deleted_uids)
    }
}

fn find_object(state: &State, location: &ObjectLocation) -> Option<(Arc<Resource>, Arc<Object>)> {
    let object = Arc::clone(state.store.get(&location.table, &location.key)?);
    let resource = state
        .resources
        .tables()
        .find(|resource| resource.table == location.table)?;
    Some((Arc::clone(resource), object))
}

/// Handles an owner that is deleted in the foreground or orphans its dependents.
fn handle_owner(state: &mut State, location: &ObjectLocation) {
    let Some((resource, object)) = find_object(state, location) else {
        return;
    };
    if !object.meta().deleting {
        return;
    }
    let has_finalizer = |finalizer: &str| object.meta().finalizers.iter().any(|name| &**name == finalizer);
    if has_finalizer(ORPHAN) {
        let dependents: Vec<ObjectLocation> = state.store.dependents(&object.meta().uid).cloned().collect();
        for dependent in dependents {
            remove_owner_references(state, &dependent, &|owner| owner.uid == object.meta().uid);
        }
        remove_finalizer(state, &resource, &object, ORPHAN);
    } else if has_finalizer(FOREGROUND) {
        let is_deleting = |location: &&ObjectLocation| {
            let object = state.store.get(&location.table, &location.key);
            object.is_some_and(|object| object.meta().deleting)
        };
        // The other dependents are handled when the events of these deletions arrive.
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
            .any(|location| blocks_deletion(state, location, &object.meta().uid));
        if !blocked {
            remove_finalizer(state, &resource, &object, FOREGROUND);
        }
    }
}

/// Returns whether the object has a reference to `owner` that blocks its deletion.
fn blocks_deletion(state: &State, location: &ObjectLocation, owner: &str) -> bool {
    let object = state.store.get(&location.table, &location.key);
    object.is_some_and(|object| {
        object
            .meta()
            .owners
            .iter()
            .any(|reference| &*reference.uid == owner && reference.blocks_deletion)
    })
}

/// State of an owner, named as in the real garbage collector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    Solid,
    Dangling,
    WaitingForDependents,
}

fn owner_state(state: &State, owner: &Owner, dependent: &Object) -> OwnerState {
    let found = state
        .store
        .location_of(&owner.uid)
        .and_then(|location| state.store.get(&location.table, &location.key));
    match found {
        None if state.absent_owners.contains(&owner.uid) => OwnerState::Solid,
        None => OwnerState::Dangling,
        // A namespaced owner must be in the namespace of the dependent.
        Some(object)
            if !object.meta().namespace.is_empty()
                && object.meta().namespace != dependent.meta().namespace =>
        {
            OwnerState::Dangling
        }
        Some(object)
            if object.meta().deleting
                && object.meta().finalizers.iter().any(|name| &**name == FOREGROUND) =>
        {
            OwnerState::WaitingForDependents
        }
        Some(_) => OwnerState::Solid,
    }
}

fn handle_dependent(state: &mut State, location: &ObjectLocation) {
    let Some((resource, object)) = find_object(state, location) else {
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
    if owner_states.contains(&OwnerState::Solid) {
        if owner_states
            .iter()
            .any(|owner_state| *owner_state != OwnerState::Solid)
        {
            let removed: BTreeSet<Box<str>> = meta
                .owners
                .iter()
                .zip(&owner_states)
                .filter(|(_, owner_state)| **owner_state != OwnerState::Solid)
                .map(|(owner, _)| owner.uid.clone())
                .collect();
            remove_owner_references(state, location, &|owner| removed.contains(&owner.uid));
        }
        return;
    }
    if meta.deleting {
        return;
    }
    let has_dependents = state.store.dependents(&meta.uid).next().is_some();
    let policy_of_finalizer = meta
        .finalizers
        .iter()
        .find_map(|finalizer| Propagation::from_finalizer(finalizer));
    let policy = match policy_of_finalizer {
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

fn remove_owner_references(
    state: &mut State,
    location: &ObjectLocation,
    is_removed: &dyn Fn(&Owner) -> bool,
) {
    let Some((resource, object)) = find_object(state, location) else {
        return;
    };
    update_object(state, &resource, &object, &mut |value| {
        let kept: Vec<Value> = tree::list(value, &["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| !is_removed(&Owner::from_value(owner)))
            .cloned()
            .collect();
        set_metadata_list(value, "ownerReferences", kept);
    });
}

fn remove_finalizer(state: &mut State, resource: &Arc<Resource>, object: &Arc<Object>, finalizer: &str) {
    update_object(state, resource, object, &mut |value| {
        let kept: Vec<Value> = tree::list(value, &["metadata", "finalizers"])
            .iter()
            .filter(|name| *name != finalizer)
            .cloned()
            .collect();
        set_metadata_list(value, "finalizers", kept);
    });
}

fn set_metadata_list(value: &mut Value, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        tree::remove(value, &["metadata", field]);
    } else {
        tree::set(value, &["metadata", field], list);
    }
}

fn update_object(
    state: &mut State,
    resource: &Arc<Resource>,
    object: &Arc<Object>,
    modify: &mut dyn FnMut(&mut Value),
) {
    let target = Target {
        resource,
        namespace: &object.meta().namespace,
        name: &object.meta().name,
    };
    let mut context = Context::for_controller("garbage-collector");
    let _ = write::update(state, &target, &mut context, false, &mut |_, live, _| {
        let mut value = live.cloned().unwrap_or_default();
        modify(&mut value);
        Ok(value)
    });
}
