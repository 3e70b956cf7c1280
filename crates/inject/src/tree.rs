//! Lookups in a parsed document that follow aliases and merge keys.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use mainstay_yaml::{Document, Node, NodeId, NodeKind, ScalarStyle};

/// Maximum number of maps that one lookup visits; a malicious document can nest merge keys without limit.
const MAX_VISITED_MAPS: u32 = 1_000;

/// A parsed document with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The document's text.
    pub(crate) text: &'a [u8],
    /// The parsed text.
    pub(crate) document: &'a Document<'a>,
}

/// A list as an entry of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListEntry {
    pub(crate) map: NodeId,
    pub(crate) key: NodeId,
    pub(crate) list: NodeId,
}

/// Entry of a map under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The key is absent.
    Absent,
    /// Key and value in the map itself.
    Own(NodeId, NodeId),
    /// Value from a map that is merged with `<<`.
    Merged(NodeId),
}

impl Entry {
    /// Returns the value, whether it is merged or not.
    pub(crate) fn value(self) -> Option<NodeId> {
        match self {
            Self::Absent => None,
            Self::Own(_, value) | Self::Merged(value) => Some(value),
        }
    }
}

impl<'a> View<'a> {
    /// Returns the node with this ID.
    pub(crate) fn node(&self, id: NodeId) -> Option<&'a Node<'a>> {
        self.document.node(id)
    }

    /// Follows aliases from `id` to the node that they refer to.
    pub(crate) fn resolve(&self, mut id: NodeId) -> NodeId {
        // An alias follows its target, so the loop ends.
        while let Some(NodeKind::Alias { target, .. }) = self.node(id).map(|node| &node.kind) {
            id = *target;
        }
        id
    }

    /// Whether the node is a collection in flow style. Does not follow aliases.
    pub(crate) fn is_flow(&self, id: NodeId) -> bool {
        match self.node(id).map(|node| &node.kind) {
            Some(NodeKind::Map { flow, .. } | NodeKind::List { flow, .. }) => *flow,
            _ => false,
        }
    }

    /// Returns the entries of map `id`; follows aliases.
    pub(crate) fn entries(&self, id: NodeId) -> &'a [(NodeId, NodeId)] {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::Map { entries, .. }) => entries,
            _ => &[],
        }
    }

    /// Returns the items of list `id`; follows aliases.
    pub(crate) fn items(&self, id: NodeId) -> &'a [NodeId] {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::List { items, .. }) => items,
            _ => &[],
        }
    }

    /// Returns the text of a scalar; follows aliases.
    pub(crate) fn scalar(&self, id: NodeId) -> Option<&'a str> {
        match self.node(self.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::Scalar { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// Whether the node is `null` in any spelling. Does not follow aliases.
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

    /// Returns the entry of map `id` under `key`.
    pub(crate) fn entry(&self, id: NodeId, key: &str) -> Entry {
        self.entry_within_limit(id, key, &Cell::new(MAX_VISITED_MAPS))
    }

    fn entry_within_limit(&self, id: NodeId, key: &str, remaining: &Cell<u32>) -> Entry {
        let Some(rest) = remaining.get().checked_sub(1) else {
            return Entry::Absent;
        };
        remaining.set(rest);
        let entries = self.entries(id);
        let own = entries
            .iter()
            .rev()
            .find(|(name, _)| self.scalar(*name) == Some(key));
        if let Some((name, value)) = own {
            return Entry::Own(*name, *value);
        }
        let merges = entries.iter().filter(|(name, _)| self.is_merge(*name));
        let found = merges
            .rev()
            .find_map(|(_, value)| self.merged_value(*value, key, remaining));
        found.map_or(Entry::Absent, Entry::Merged)
    }

    fn merged_value(&self, value: NodeId, key: &str, remaining: &Cell<u32>) -> Option<NodeId> {
        match self.node(self.resolve(value)).map(|node| &node.kind) {
            Some(NodeKind::List { items, .. }) => {
                let mut maps = items.iter();
                maps.find_map(|item| self.entry_within_limit(*item, key, remaining).value())
            }
            _ => self.entry_within_limit(value, key, remaining).value(),
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

    /// Returns the value of `key` in map `id`, whether it is merged or not.
    pub(crate) fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        self.entry(id, key).value()
    }

    /// Returns the scalar at the path `keys` below `id`.
    pub(crate) fn scalar_at(&self, id: NodeId, keys: &[&str]) -> Option<&'a str> {
        let found = keys.iter().try_fold(id, |id, key| self.get(id, key))?;
        self.scalar(found)
    }

    /// Returns all nodes that aliases refer to.
    pub(crate) fn aliased_nodes(&self) -> BTreeSet<NodeId> {
        let aliases = self.document.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Alias { target, .. } => Some(*target),
            _ => None,
        });
        aliases.collect()
    }

    /// Returns the first key that a map below `id` contains twice. Does not follow aliases.
    pub(crate) fn duplicate_key(&self, id: NodeId) -> Option<NodeId> {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match self.node(id).map(|node| &node.kind) {
                Some(NodeKind::List { items, .. }) => open.extend(items),
                Some(NodeKind::Map { entries, .. }) => {
                    if let Some(duplicate) = self.duplicate_in(entries) {
                        return Some(duplicate);
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
        let mut hashed: HashSet<&str> = HashSet::new();
        for (key, _) in entries {
            let Some(name) = self.scalar(*key).filter(|_| !self.is_merge(*key)) else {
                continue;
            };
            // Most maps are small: comparing their keys is faster than hashing them.
            let new = if entries.len() <= 16 {
                let new = !seen.contains(&name);
                seen.push(name);
                new
            } else {
                hashed.insert(name)
            };
            if !new {
                return Some(*key);
            }
        }
        None
    }
}
