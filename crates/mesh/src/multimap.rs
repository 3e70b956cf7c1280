//! An ordered multimap that removes a key with its last value.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// An ordered multimap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Multimap<K, V>(BTreeMap<K, BTreeSet<V>>);

impl<K, V> Default for Multimap<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Ord> Multimap<K, V> {
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.0.entry(key).or_default().insert(value);
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if let Some(values) = self.0.get_mut(key) {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> impl Iterator<Item = &V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.0.get(key).into_iter().flatten()
    }
}
