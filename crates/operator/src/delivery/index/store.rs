//! Stores the objects of one kind of the host cluster by name. An object is never replaced by an older
//! version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_api::delivery::{Kind, Resource};
use mainstay_cluster::live::parse_version;
use serde_json::Value;

use crate::delivery::names::Name;

/// Maximum number of remembered UIDs of deleted objects. All are dropped when it is exceeded.
const MAX_TOMBSTONES: usize = 1000;

/// Whether the resource version `new` is older than `known`. Returns `false` if one of them is not a number.
pub(crate) fn is_older(new: &str, known: &str) -> bool {
    let versions = parse_version(new).zip(parse_version(known));
    versions.is_some_and(|(new, known)| new < known)
}

/// UIDs of deleted objects. Late events of these objects are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones(BTreeSet<String>);

impl Tombstones {
    pub(crate) fn add(&mut self, uid: &str) {
        if self.0.len() >= MAX_TOMBSTONES {
            self.0.clear();
        }
        if !uid.is_empty() {
            self.0.insert(uid.to_owned());
        }
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.0.contains(uid)
    }
}

/// Objects of one kind.
#[derive(Debug)]
pub(crate) struct Store<S: Kind> {
    objects: BTreeMap<Name, Arc<Resource<S>>>,
    tombstones: Tombstones,
}

impl<S: Kind> Default for Store<S> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            tombstones: Tombstones::default(),
        }
    }
}

impl<S: Kind> Store<S> {
    /// Stores an object. Returns its name if it is new or changed, otherwise `None`.
    pub(super) fn observe(&mut self, object: Value) -> Result<Option<Name>, serde_json::Error> {
        let object: Resource<S> = serde_json::from_value(object)?;
        let name = Name::new(object.namespace(), object.name());
        if self.tombstones.contains(&object.metadata.uid) {
            return Ok(None);
        }
        let version = &object.metadata.resource_version;
        let known = self.objects.get(&name);
        let is_known = known.is_some_and(|known| {
            known.metadata.resource_version == *version || is_older(version, &known.metadata.resource_version)
        });
        if is_known {
            return Ok(None);
        }
        self.objects.insert(name.clone(), Arc::new(object));
        Ok(Some(name))
    }

    /// Removes the object with this name and UID. A later object of the same name is kept.
    pub(super) fn remove(&mut self, name: &Name, uid: &str) {
        self.tombstones.add(uid);
        if self
            .objects
            .get(name)
            .is_some_and(|known| known.metadata.uid == uid)
        {
            self.objects.remove(name);
        }
    }

    /// Removes the objects that are not in `names`, the result of a list at `version`, and returns their
    /// names. Objects that are newer than the list are kept.
    pub(super) fn retain(&mut self, names: &BTreeSet<Name>, version: &str) -> Vec<Name> {
        let gone: Vec<Name> = self
            .objects
            .iter()
            .filter(|(name, known)| {
                !names.contains(*name) && !is_older(version, &known.metadata.resource_version)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            self.objects.remove(name);
        }
        gone
    }

    /// Returns an object.
    pub(crate) fn get(&self, name: &Name) -> Option<&Arc<Resource<S>>> {
        self.objects.get(name)
    }

    /// Returns all names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.objects.keys()
    }

    /// Returns the objects of a namespace.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Name, &'a Arc<Resource<S>>)> {
        let start = Name::new(namespace, "");
        self.objects
            .range(start..)
            .take_while(move |(name, _)| name.namespace == namespace)
    }
}
