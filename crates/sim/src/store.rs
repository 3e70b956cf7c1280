//! Stores immutable versions of objects and their history. Objects are not checked here, but in `write`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use serde_json::Value;

use crate::object::{Fields, Meta, Object};
use crate::tree;

mod history;

pub use history::{Event, EventKind, History};

/// Location of an object: table and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectLocation {
    /// Table, such as `deployments.apps`.
    pub table: Arc<str>,
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub key: Box<str>,
}

/// All objects of a cluster, with one sequence of resource versions.
#[derive(Debug)]
pub struct Store {
    version: u64,
    tables: BTreeMap<Arc<str>, Table>,
    dependents: HashMap<Box<str>, BTreeSet<ObjectLocation>>,
    locations: HashMap<Box<str>, ObjectLocation>,
    history_limit: usize,
}

#[derive(Debug)]
struct Table {
    name: Arc<str>,
    objects: BTreeMap<Box<str>, Arc<Object>>,
    history: History,
    /// Wakers of watches by namespace. The empty namespace contains the watches of all namespaces.
    watch_wakers: BTreeMap<Box<str>, Vec<Waker>>,
    /// Number of events since all wakers were last notified.
    pending_events: usize,
}

impl Table {
    fn record(&mut self, event: Event) {
        self.pending_events += 1;
        self.history.push(event);
    }

    /// Removes and returns all wakers.
    fn take_all_wakers(&mut self) -> Vec<Waker> {
        self.pending_events = 0;
        std::mem::take(&mut self.watch_wakers)
            .into_values()
            .flatten()
            .collect()
    }

    /// Removes and returns the wakers of watches that are affected by events after `since`. Returns all
    /// wakers after half of `history_limit` events, before the history drops events that idle watches have
    /// not observed.
    fn take_affected_wakers(&mut self, since: u64, history_limit: usize) -> Vec<Waker> {
        if self.watch_wakers.is_empty() {
            return Vec::new();
        }
        let events = self.history.after(since);
        let Some(events) = events.filter(|_| self.pending_events < history_limit / 2) else {
            return self.take_all_wakers();
        };
        let namespaces: BTreeSet<&str> = events
            .map(|event| &*event.object.meta().namespace)
            .chain([""])
            .collect();
        let watch_wakers = &mut self.watch_wakers;
        let wakers = namespaces
            .iter()
            .filter_map(|namespace| watch_wakers.remove(*namespace));
        wakers.flatten().collect()
    }
}

impl Store {
    /// Creates an empty store that keeps `history_limit` events per table.
    #[must_use]
    pub fn new(history_limit: usize) -> Self {
        Self {
            version: 1,
            tables: BTreeMap::new(),
            dependents: HashMap::new(),
            locations: HashMap::new(),
            history_limit,
        }
    }

    /// Returns the resourceVersion of the last write.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Skips versions up to `to`. Used when a snapshot is loaded. The sequence of a real server also has
    /// gaps.
    pub fn advance_version(&mut self, to: u64) {
        self.version = self.version.max(to);
    }

    /// Returns the object with this key, or `None` if it does not exist.
    #[must_use]
    pub fn get(&self, table: &str, key: &str) -> Option<&Arc<Object>> {
        self.tables.get(table)?.objects.get(key)
    }

    /// Returns the location of the object with `uid`.
    #[must_use]
    pub fn location_of(&self, uid: &str) -> Option<&ObjectLocation> {
        self.locations.get(uid)
    }

    /// Returns the objects that have `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectLocation> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Iterates over the objects of a table in key order, starting after the key `after`. An empty namespace
    /// selects all namespaces.
    pub fn range<'a>(
        &'a self,
        table: &str,
        namespace: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a str, &'a Arc<Object>)> + use<'a> {
        let prefix = key_prefix(namespace);
        let start = match after {
            Some(after) => Bound::Excluded(Box::from(after)),
            None => Bound::Included(Box::from(prefix.as_str())),
        };
        let range = (start, Bound::<Box<str>>::Unbounded);
        self.tables
            .get(table)
            .map(|table| table.objects.range(range))
            .into_iter()
            .flatten()
            .map(|(key, object)| (&**key, object))
            .take_while(move |(key, _)| key.starts_with(&prefix))
    }

    /// Iterates over all objects of a table.
    pub fn all<'a>(&'a self, table: &str) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        self.tables
            .get(table)
            .into_iter()
            .flat_map(|table| table.objects.values())
    }

    /// Returns the number of objects in a table.
    #[must_use]
    pub fn count(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// Returns the history of a table.
    #[must_use]
    pub fn history(&self, table: &str) -> Option<&History> {
        self.tables.get(table).map(|table| &table.history)
    }

    /// Returns the tables that changed after `version`, ordered by name.
    #[must_use]
    pub fn changed_since(&self, version: u64) -> Vec<Arc<str>> {
        let changed = self
            .tables
            .values()
            .filter(|table| table.history.last_version() > version);
        changed.map(|table| Arc::clone(&table.name)).collect()
    }

    /// Adds an object, or writes a new version of it, and sets its resourceVersion.
    pub fn put(&mut self, table: &Arc<str>, mut value: Value, fields: Fields) -> Arc<Object> {
        self.version += 1;
        tree::set(
            &mut value,
            &["metadata", "resourceVersion"],
            self.version.to_string(),
        );
        let object = Arc::new(Object::freeze(&value, fields));
        let key: Box<str> = object.key().into();
        let (version, entry) = (self.version, self.table(table));
        let previous = entry.objects.insert(key.clone(), Arc::clone(&object));
        let kind = if previous.is_some() {
            EventKind::Modified
        } else {
            EventKind::Added
        };
        entry.record(Event {
            version,
            kind,
            object: Arc::clone(&object),
            previous: previous.clone(),
        });
        let location = ObjectLocation {
            table: Arc::clone(table),
            key,
        };
        if let Some(previous) = previous {
            self.unindex(previous.meta(), &location);
        }
        self.index(object.meta(), location);
        object
    }

    /// Removes an object. Returns its last state with the resourceVersion of the removal, which the event
    /// also contains.
    pub fn remove(&mut self, table: &Arc<str>, key: &str) -> Option<Arc<Object>> {
        let previous = self.tables.get_mut(table)?.objects.remove(key)?;
        self.version += 1;
        let version = self.version;
        let mut value = previous.packed();
        tree::set(&mut value, &["metadata", "resourceVersion"], version.to_string());
        let object = Arc::new(Object::freeze(&value, previous.fields()));
        let event = Event {
            version,
            kind: EventKind::Deleted,
            object: Arc::clone(&object),
            previous: Some(Arc::clone(&previous)),
        };
        self.table(table).record(event);
        self.unindex(
            previous.meta(),
            &ObjectLocation {
                table: Arc::clone(table),
                key: key.into(),
            },
        );
        Some(object)
    }

    /// Drops the history of every table up to `version`, so that watches and reads of older versions fail
    /// with 410.
    pub fn compact(&mut self, version: u64) {
        for table in self.tables.values_mut() {
            table.history.compact(version);
        }
        self.notify_all();
    }

    /// Returns the state at `version` of each object of a table that changed after `version`. Returns `None`
    /// if the history does not contain all changes since then.
    #[must_use]
    pub fn changes_after(
        &self,
        table: &str,
        version: u64,
    ) -> Option<BTreeMap<Box<str>, Option<Arc<Object>>>> {
        match self.tables.get(table) {
            Some(table) => table.history.states_before_changes(version),
            None => Some(BTreeMap::new()),
        }
    }

    /// Registers a waker for the next event of a table in a namespace; an empty namespace selects all
    /// namespaces. The waker may be notified spuriously.
    pub fn register_waker(&mut self, table: &Arc<str>, namespace: &str, waker: &Waker) {
        let watch_wakers = &mut self.table(table).watch_wakers;
        let wakers = watch_wakers.entry(namespace.into()).or_default();
        if !wakers.iter().any(|have| have.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Removes and returns the wakers to notify after writes since the version `since`.
    pub fn take_wakers(&mut self, since: u64) -> Vec<Waker> {
        if self.version == since {
            return Vec::new();
        }
        let (limit, tables) = (self.history_limit, self.tables.values_mut());
        let changed = tables.filter(|table| table.history.last_version() > since);
        changed
            .flat_map(|table| table.take_affected_wakers(since, limit))
            .collect()
    }

    /// Notifies all wakers. Required when time has passed or a fault ends a watch.
    pub fn notify_all(&mut self) {
        for waker in self.tables.values_mut().flat_map(Table::take_all_wakers) {
            waker.wake();
        }
    }

    fn table(&mut self, name: &Arc<str>) -> &mut Table {
        let limit = self.history_limit;
        self.tables.entry(Arc::clone(name)).or_insert_with(|| Table {
            name: Arc::clone(name),
            objects: BTreeMap::new(),
            history: History::new(limit),
            watch_wakers: BTreeMap::new(),
            pending_events: 0,
        })
    }

    fn index(&mut self, meta: &Meta, location: ObjectLocation) {
        for owner in &meta.owners {
            self.dependents
                .entry(owner.uid.clone())
                .or_default()
                .insert(location.clone());
        }
        self.locations.insert(meta.uid.clone(), location);
    }

    fn unindex(&mut self, meta: &Meta, location: &ObjectLocation) {
        for owner in &meta.owners {
            if let Some(locations) = self.dependents.get_mut(&owner.uid) {
                locations.remove(location);
                if locations.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        self.locations.remove(&meta.uid);
    }
}

fn key_prefix(namespace: &str) -> String {
    if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(store: &mut Store, table: &Arc<str>, namespace: &str, name: &str, data: &str) -> u64 {
        let value = json!({"metadata": {"namespace": namespace, "name": name, "uid": name}, "data": data});
        store.put(table, value, Fields::default()).meta().version
    }

    #[test]
    fn keys_have_the_same_order_as_in_etcd() {
        let (mut store, table) = (Store::new(10), Arc::from("t"));
        for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "x"), ("a", "w")] {
            put(&mut store, &table, namespace, name, "");
        }
        let keys: Vec<_> = store
            .range("t", "", None)
            .map(|(key, _)| key.to_owned())
            .collect();
        assert_eq!(keys, ["a-b/x", "a/w", "a/x", "b/x"]);
        let keys: Vec<_> = store
            .range("t", "a", Some("a/w"))
            .map(|(key, _)| key.to_owned())
            .collect();
        assert_eq!(keys, ["a/x"]);
    }

    #[test]
    fn history_is_readable_until_compaction() {
        let (mut store, table) = (Store::new(10), Arc::from("t"));
        let first = put(&mut store, &table, "n", "a", "1");
        let second = put(&mut store, &table, "n", "a", "2");
        put(&mut store, &table, "n", "b", "1");
        store.remove(&table, "n/a");
        let undone = store.changes_after("t", first).unwrap();
        assert!(undone["n/b"].is_none());
        assert_eq!(undone["n/a"].as_ref().unwrap().meta().version, first);
        store.compact(second);
        assert!(store.changes_after("t", first).is_none());
        assert!(store.changes_after("t", second).is_some());
    }
}
