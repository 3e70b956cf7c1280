//! Plural names and scopes of kinds. Those in charts are built in; others are discovered from the API.

use std::collections::BTreeMap;

use crate::kinds::installed_kinds;

/// Plural name and scope of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The plural name in API paths.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
}

/// Table of the kinds that are built in or were discovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(BTreeMap<(String, String), Kind>);

impl Default for Kinds {
    /// Creates a table of the kinds in charts of the pinned versions.
    fn default() -> Self {
        let mut kinds = Self(BTreeMap::new());
        for known in installed_kinds() {
            let kind = Kind {
                plural: known.plural.to_owned(),
                is_namespaced: known.namespaced,
            };
            kinds.insert(known.group, known.kind, kind);
        }
        kinds
    }
}

impl Kinds {
    /// Returns a kind, or `None` if it is unknown.
    #[must_use]
    pub fn get(&self, group: &str, kind: &str) -> Option<&Kind> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Adds a kind.
    pub fn insert(&mut self, group: &str, kind: &str, value: Kind) {
        self.0.insert((group.to_owned(), kind.to_owned()), value);
    }
}
