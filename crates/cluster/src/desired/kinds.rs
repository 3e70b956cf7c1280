//! Plural names and scopes of kinds: those in charts are built in, others come from API discovery.

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

/// The known kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(BTreeMap<(String, String), Kind>);

impl Default for Kinds {
    /// The kinds in charts of the pinned versions.
    fn default() -> Self {
        let mut kinds = Self(BTreeMap::new());
        for known in installed_kinds() {
            let kind = Kind {
                plural: known.plural.to_owned(),
                is_namespaced: known.namespaced,
            };
            kinds.learn(known.group, known.kind, kind);
        }
        kinds
    }
}

impl Kinds {
    /// Returns a kind, if it is known.
    #[must_use]
    pub fn get(&self, group: &str, kind: &str) -> Option<&Kind> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Adds a kind.
    pub fn learn(&mut self, group: &str, kind: &str, how: Kind) {
        self.0.insert((group.to_owned(), kind.to_owned()), how);
    }
}
