//! Objects of one kind, indexed by name and owner.

use std::collections::BTreeMap;

use mainstay_api::{Kind, Resource};

use crate::multimap::Multimap;

/// All objects of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects<S: Kind> {
    by_name: BTreeMap<String, Resource<S>>,
    by_owner: Multimap<String, String>,
}

impl<S: Kind> Default for Objects<S> {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            by_owner: Multimap::default(),
        }
    }
}

impl<S: Kind> Objects<S> {
    /// Returns an object by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Resource<S>> {
        self.by_name.get(name)
    }

    /// Returns all objects, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Resource<S>> {
        self.by_name.values()
    }

    /// Returns the objects with an owner of this UID, sorted by name.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Resource<S>> {
        self.by_owner.get(uid).filter_map(|name| self.by_name.get(name))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn insert(&mut self, object: Resource<S>) -> Option<Resource<S>> {
        let old = self.remove(object.name());
        for owner in &object.metadata.owner_references {
            self.by_owner
                .insert(owner.uid.clone(), object.metadata.name.clone());
        }
        self.by_name.insert(object.metadata.name.clone(), object);
        old
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Resource<S>> {
        let old = self.by_name.remove(name)?;
        for owner in &old.metadata.owner_references {
            self.by_owner.remove(owner.uid.as_str(), &old.metadata.name);
        }
        Some(old)
    }
}
