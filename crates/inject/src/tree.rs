//! Lookups in a parsed document, through aliases and merges.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use mainstay_yaml::{Document, Node, NodeId, NodeKind, ScalarStyle};

/// How many maps one lookup may go through by merges; a hostile document nests them without end.
const MERGES: u32 = 1_000;

/// A parsed document with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The document's text.
    pub(crate) text: &'a [u8],
    /// Its nodes.
    pub(crate) document: &'a Document<'a>,
}

/// What a map has under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing.
    Absent,
    /// A key and its value, written in this very map.
    Own(NodeId, NodeId),
    /// A value that comes by `<<`.
    Merged(NodeId),
}

impl Entry {
    /// The value, wherever it comes from.
    pub(crate) fn value(self) -> Option<NodeId> {
        match self {
            Self::Absent => None,
            Self::Own(_, value) | Self::Merged(value) => Some(value),
        }
    }
}

impl<'a> View<'a> {
    /// The node `id`.
    pub(crate) fn node(&self, id: NodeId) -> Option<&'a Node<'a>> {
        self.document.node(id)
    }

    /// The node that `id` stands for.
    pub(crate) fn resolve(&self, mut id: NodeId) -> NodeId {
        // An alias stands behind its target, so this ends.
        while let Some(NodeKind::Alias { target, .. }) = self.node(id).map(|node| &node.kind) {
            id = *target;
        }
        id
    }

    /// Whether this is in brackets or braces, aliases not followed.
    pub(crate) fn is_flow(&self, id: NodeId) -> bool {
        match self.node(id).map(|node| &node.kind) {
            Some(NodeKind::Map { flow, .. } | NodeKind::List { flow, .. }) => *flow,
            _ => false,
        }
    }

    /// The entries of map `id`, aliases followed.
    pub(crate) fn entries(&self, id: NodeId) -> &'a [(NodeId, NodeId)] {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::Map { entries, .. }) => entries,
            _ => &[],
        }
    }

    /// The items of list `id`, aliases followed.
    pub(crate) fn items(&self, id: NodeId) -> &'a [NodeId] {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::List { items, .. }) => items,
            _ => &[],
        }
    }

    /// The text of a scalar, aliases followed.
    pub(crate) fn scalar(&self, id: NodeId) -> Option<&'a str> {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::Scalar { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// Whether this is `null` in one of its spellings, aliases not followed.
    pub(crate) fn is_null(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| match &node.kind {
            NodeKind::Scalar {
                text,
                style: ScalarStyle::Plain,
            } => match node.tag.as_deref() {
                None => matches!(&**text, "" | "~" | "null" | "Null" | "NULL"),
                Some(tag) => tag == "tag:yaml.org,2002:null",
            },
            _ => false,
        })
    }

    /// What map `id` has under `key`.
    pub(crate) fn entry(&self, id: NodeId, key: &str) -> Entry {
        self.bounded_entry(id, key, &Cell::new(MERGES))
    }

    fn bounded_entry(&self, id: NodeId, key: &str, left: &Cell<u32>) -> Entry {
        let Some(fewer) = left.get().checked_sub(1) else {
            return Entry::Absent;
        };
        left.set(fewer);
        let entries = self.entries(id);
        let own = entries
            .iter()
            .rev()
            .find(|(name, _)| self.scalar(*name) == Some(key));
        if let Some((name, value)) = own {
            return Entry::Own(*name, *value);
        }
        let merges = entries.iter().filter(|(name, _)| self.is_merge(*name));
        let found = merges.rev().find_map(|(_, value)| self.merged(*value, key, left));
        found.map_or(Entry::Absent, Entry::Merged)
    }

    fn merged(&self, value: NodeId, key: &str, left: &Cell<u32>) -> Option<NodeId> {
        match self.node(self.resolve(value)).map(|node| &node.kind) {
            Some(NodeKind::List { items, .. }) => {
                let mut maps = items.iter();
                maps.find_map(|item| self.bounded_entry(*item, key, left).value())
            }
            _ => self.bounded_entry(value, key, left).value(),
        }
    }

    /// Whether a key is `<<`.
    pub(crate) fn is_merge(&self, key: NodeId) -> bool {
        self.node(key).is_some_and(|node| match &node.kind {
            NodeKind::Scalar {
                text,
                style: ScalarStyle::Plain,
            } => text == "<<",
            _ => false,
        })
    }

    /// The value of `key` in map `id`, wherever it comes from.
    pub(crate) fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        self.entry(id, key).value()
    }

    /// The scalar reached from `id` by `keys`.
    pub(crate) fn scalar_at(&self, id: NodeId, keys: &[&str]) -> Option<&'a str> {
        let found = keys.iter().try_fold(id, |id, key| self.get(id, key))?;
        self.scalar(found)
    }

    /// Every node that an alias stands for.
    pub(crate) fn shared(&self) -> BTreeSet<NodeId> {
        let aliases = self.document.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Alias { target, .. } => Some(*target),
            _ => None,
        });
        aliases.collect()
    }

    /// The first key that stands twice in one map of the subtree under `id`. Aliases are not entered.
    pub(crate) fn duplicate_key(&self, id: NodeId) -> Option<NodeId> {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match self.node(id).map(|node| &node.kind) {
                Some(NodeKind::List { items, .. }) => open.extend(items),
                Some(NodeKind::Map { entries, .. }) => {
                    if let Some(twice) = self.duplicate_in(entries) {
                        return Some(twice);
                    }
                    open.extend(entries.iter().map(|(_, value)| *value));
                }
                _ => {}
            }
        }
        None
    }

    fn duplicate_in(&self, entries: &[(NodeId, NodeId)]) -> Option<NodeId> {
        let mut seen: Vec<&str> = Vec::new();
        let mut many: HashSet<&str> = HashSet::new();
        for (key, _) in entries {
            let Some(name) = self.scalar(*key).filter(|_| !self.is_merge(*key)) else {
                continue;
            };
            // Most maps are small: a list is faster there than hashing.
            let new = if entries.len() <= 16 {
                let new = !seen.contains(&name);
                seen.push(name);
                new
            } else {
                many.insert(name)
            };
            if !new {
                return Some(*key);
            }
        }
        None
    }
}
