//! How kinds are called in paths and whether they live in namespaces: what charts install is known, everything else is learnt from the
//! server. Takes a group and a kind, gives both facts.

use std::collections::BTreeMap;

use crate::kinds::installed_kinds;

/// How a kind is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// Every kind that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(BTreeMap<(String, String), Kind>);

impl Default for Kinds {
    /// What charts of the pinned versions install.
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
    /// How a kind is asked for, if it is known.
    #[must_use]
    pub fn get(&self, group: &str, kind: &str) -> Option<&Kind> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Adds a kind.
    pub fn learn(&mut self, group: &str, kind: &str, how: Kind) {
        self.0.insert((group.to_owned(), kind.to_owned()), how);
    }
}
