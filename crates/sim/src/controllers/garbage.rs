//! Garbage collection: objects whose owners are gone go too; foreground deletion waits for dependents, orphaning lets them loose.

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

/// Follows owner references.
#[derive(Debug, Default)]
pub struct Garbage {
    seen: u64,
    /// Places where a write waits for an answer from outside, and the answers that were heard of.
    held: BTreeSet<ObjectLocation>,
    replies_seen: u64,
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
        for place in &places {
            let blocked = state.webhooks.pending.blocked_writes;
            handle_owner(state, place);
            if state.webhooks.pending.blocked_writes != blocked {
                self.held.insert(place.clone());
            }
        }
        let mut dependents: BTreeSet<ObjectLocation> = gone
            .iter()
            .flat_map(|uid| state.store.dependents(uid))
            .cloned()
            .collect();
        dependents.extend(places);
        for place in dependents {
            let blocked = state.webhooks.pending.blocked_writes;
            handle_dependent(state, &place);
            if state.webhooks.pending.blocked_writes != blocked {
                self.held.insert(place);
            }
        }
        state.store.version() != before
    }
}

impl Garbage {
    /// Objects written since the last step, and uids that went.
    fn changed(&mut self, state: &State) -> (BTreeSet<ObjectLocation>, BTreeSet<Box<str>>) {
        let (mut places, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for table in state.store.changed_since(self.seen) {
            let place = |object: &Object| ObjectLocation {
                table: Arc::clone(&table),
                key: object.key().into(),
            };
            let events = state
                .store
                .history(&table)
                .and_then(|history| history.after(self.seen));
            let Some(events) = events else {
                // Too much happened: look at everything.
                places.extend(state.store.all(&table).map(|object| place(object)));
                continue;
            };
            for event in events {
                let meta = event.object.meta();
                if event.kind == EventKind::Deleted {
                    gone.insert(meta.uid.clone());
                    // A foreground deletion may have waited for this one.
                    places.extend(
                        meta.owners
                            .iter()
                            .filter_map(|owner| state.store.location_of(&owner.uid))
                            .cloned(),
                    );
                } else if meta.deleting || !meta.owners.is_empty() {
                    places.insert(place(&event.object));
                }
                // Owners waiting in the foreground also care for references that were removed.
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

fn find(state: &State, place: &ObjectLocation) -> Option<(Arc<Resource>, Arc<Object>)> {
    let object = Arc::clone(state.store.get(&place.table, &place.key)?);
    let resource = state
        .resources
        .tables()
        .find(|resource| resource.table == place.table)?;
    Some((Arc::clone(resource), object))
}

/// An owner that is being deleted and waits for its dependents, or wants to let them go.
fn handle_owner(state: &mut State, place: &ObjectLocation) {
    let Some((resource, object)) = find(state, place) else {
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
        let dependents: Vec<ObjectLocation> = state.store.dependents(&object.meta().uid).cloned().collect();
        for dependent in &dependents {
            handle_dependent(state, dependent);
        }
        let blocked = state
            .store
            .dependents(&object.meta().uid)
            .any(|place| blocks(state, place, &object.meta().uid));
        if !blocked {
            remove_finalizer(state, &resource, &object, FOREGROUND);
        }
    }
}

fn blocks(state: &State, place: &ObjectLocation, owner: &str) -> bool {
    let object = state.store.get(&place.table, &place.key);
    object.is_some_and(|object| {
        object
            .meta()
            .owners
            .iter()
            .any(|have| &*have.uid == owner && have.blocks_deletion)
    })
}

/// What became of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    Gone,
    WaitingForDependents,
}

fn fate(state: &State, owner: &Owner, dependent: &Object) -> Fate {
    let found = state
        .store
        .location_of(&owner.uid)
        .and_then(|place| state.store.get(&place.table, &place.key));
    match found {
        None if state.absent_owners.contains(&owner.uid) => Fate::Alive,
        None => Fate::Gone,
        // A namespaced owner counts only in its own namespace.
        Some(object)
            if !object.meta().namespace.is_empty()
                && object.meta().namespace != dependent.meta().namespace =>
        {
            Fate::Gone
        }
        Some(object)
            if object.meta().deleting
                && object.meta().finalizers.iter().any(|have| &**have == FOREGROUND) =>
        {
            Fate::WaitingForDependents
        }
        Some(_) => Fate::Alive,
    }
}

fn handle_dependent(state: &mut State, place: &ObjectLocation) {
    let Some((resource, object)) = find(state, place) else {
        return;
    };
    let meta = object.meta();
    if meta.owners.is_empty() || (meta.deleting && !meta.finalizers.is_empty()) {
        return;
    }
    let fates: Vec<Fate> = meta
        .owners
        .iter()
        .map(|owner| fate(state, owner, &object))
        .collect();
    if fates.contains(&Fate::Alive) {
        if fates.iter().any(|fate| *fate != Fate::Alive) {
            let dead: BTreeSet<Box<str>> = meta
                .owners
                .iter()
                .zip(&fates)
                .filter(|(_, fate)| **fate != Fate::Alive)
                .map(|(owner, _)| owner.uid.clone())
                .collect();
            drop_references(state, place, &|owner| dead.contains(&owner.uid));
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
        None if fates.contains(&Fate::WaitingForDependents) && has_dependents => Propagation::Foreground,
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
            &format!("garbage-collector: delete {} {}", place.table, place.key),
        );
    }
}

fn drop_references(state: &mut State, place: &ObjectLocation, dead: &dyn Fn(&Owner) -> bool) {
    let Some((resource, object)) = find(state, place) else {
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
