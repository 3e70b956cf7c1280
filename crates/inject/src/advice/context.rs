//! The annotations of one workload by level, as input of the checks.

use mainstay_yaml::{Document, Node, NodeId, NodeKind};

use crate::workload::{Workload, place_from_span};
use crate::{Code, Finding, Level, Options, Place, Severity};

/// A workload with its annotations.
pub(super) struct AnnotationContext<'a> {
    pub(super) workload: &'a Workload<'a>,
    pub(super) options: &'a Options,
    /// Annotations of the pod template, or of the Pod itself.
    pub(super) template: Vec<Entry<'a>>,
    /// Annotations of the object; empty for a Pod, which has only the template level.
    pub(super) object: Vec<Entry<'a>>,
}

/// A key with its value. Aliases are resolved.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) key_node: &'a Node<'a>,
    pub(super) value: &'a Node<'a>,
}

impl<'a> AnnotationContext<'a> {
    pub(super) fn new(workload: &'a Workload<'a>, options: &'a Options) -> Self {
        let annotations = |id| {
            entries(
                workload.document,
                find_node(workload.document, id, &["metadata", "annotations"]),
            )
        };
        let object = if workload.object == workload.template {
            Vec::new()
        } else {
            annotations(workload.object)
        };
        Self {
            workload,
            options,
            template: annotations(workload.template),
            object,
        }
    }

    /// Returns the annotations of a level.
    pub(super) fn level(&self, level: Level) -> &[Entry<'a>] {
        match level {
            Level::Template => &self.template,
            Level::Object => &self.object,
        }
    }

    /// Returns the effective entry of `key`: that of the first level of the profile that has the key, and
    /// the last one of several in one level.
    pub(super) fn effective(&self, key: &str) -> Option<Entry<'a>> {
        let mut levels = self.options.profile.levels.iter();
        levels.find_map(|level| last_named(self.level(*level), key))
    }

    /// Whether annotations of the object are read.
    pub(super) fn reads_object(&self) -> bool {
        self.options.profile.levels.contains(&Level::Object)
    }
}

/// Returns the last entry with this key.
pub(super) fn last_named<'a>(entries: &[Entry<'a>], key: &str) -> Option<Entry<'a>> {
    entries.iter().rev().find(|entry| entry.key == key).copied()
}

/// Returns the node at the path `keys` below `id`.
pub(super) fn find_node(document: &Document<'_>, id: NodeId, keys: &[&str]) -> Option<NodeId> {
    keys.iter().try_fold(id, |id, key| document.get(id, key))
}

/// Returns the entries of a map with scalar keys; empty if the node is not a map.
pub(super) fn entries<'a>(document: &'a Document<'a>, id: Option<NodeId>) -> Vec<Entry<'a>> {
    let Some(NodeKind::Map { entries, .. }) = id.and_then(|id| resolve(document, id)).map(|node| &node.kind)
    else {
        return Vec::new();
    };
    let entry = |(key, value): &(NodeId, NodeId)| {
        let key_node = document.node(*key)?;
        let NodeKind::Scalar { text, .. } = &key_node.kind else {
            return None;
        };
        Some(Entry {
            key: text,
            key_node,
            value: resolve(document, *value)?,
        })
    };
    entries.iter().filter_map(entry).collect()
}

/// Returns the node `id`; follows aliases.
pub(super) fn resolve<'a>(document: &'a Document<'a>, id: NodeId) -> Option<&'a Node<'a>> {
    let mut node = document.node(id)?;
    // An alias follows its target, so the loop ends.
    while let NodeKind::Alias { target, .. } = &node.kind {
        node = document.node(*target)?;
    }
    Some(node)
}

/// Returns a warning about a node.
pub(super) fn warning(code: Code, node: &Node, message: String) -> Finding {
    finding_at(code, Severity::Warning, place_from_span(node.span), message)
}

/// Returns a finding without help.
pub(super) fn finding_at(code: Code, severity: Severity, place: Place, message: String) -> Finding {
    Finding {
        severity,
        code,
        message,
        place,
        help: None,
    }
}
