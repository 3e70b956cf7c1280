//! Our own objects by name and by owner: takes them one at a time, gives the ones of an owner without a search.

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
    /// The object of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Resource<S>> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Resource<S>> {
        self.by_name.values()
    }

    /// Those that have an owner of this identity, by name.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Resource<S>> {
        self.by_owner.of(uid).filter_map(|name| self.by_name.get(name))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
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
