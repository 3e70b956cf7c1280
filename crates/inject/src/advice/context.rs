//! The annotations of one workload by level, for the checks.

use mainstay_yaml::{Document, Node, NodeId, NodeKind};

use crate::workload::{Workload, place};
use crate::{Code, Finding, Level, Options, Place, Severity};

/// One workload as the checks see it.
pub(super) struct AnnotationContext<'a> {
    pub(super) workload: &'a Workload<'a>,
    pub(super) options: &'a Options,
    /// Of the pod template, or of the Pod itself.
    pub(super) template: Vec<Entry<'a>>,
    /// Of the object; empty for a Pod, whose only level is the template.
    pub(super) object: Vec<Entry<'a>>,
}

/// One key with its value, aliases followed.
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
                find(workload.document, id, &["metadata", "annotations"]),
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

    /// The annotations of a level.
    pub(super) fn level(&self, level: Level) -> &[Entry<'a>] {
        match level {
            Level::Template => &self.template,
            Level::Object => &self.object,
        }
    }

    /// The entry of `key` that counts: levels in the profile's order, of two in one level the last.
    pub(super) fn effective(&self, key: &str) -> Option<Entry<'a>> {
        let mut levels = self.options.profile.levels.iter();
        levels.find_map(|level| named(self.level(*level), key))
    }

    /// Whether annotations of the object are read at all.
    pub(super) fn reads_object(&self) -> bool {
        self.options.profile.levels.contains(&Level::Object)
    }
}

/// The last entry called `key`.
pub(super) fn named<'a>(entries: &[Entry<'a>], key: &str) -> Option<Entry<'a>> {
    entries.iter().rev().find(|entry| entry.key == key).copied()
}

/// The node reached from `id` by `keys`.
pub(super) fn find(document: &Document<'_>, id: NodeId, keys: &[&str]) -> Option<NodeId> {
    keys.iter().try_fold(id, |id, key| document.get(id, key))
}

/// The entries of a map whose keys are scalars; none if it is no map.
pub(super) fn entries<'a>(document: &'a Document<'a>, id: Option<NodeId>) -> Vec<Entry<'a>> {
    let Some(NodeKind::Map { entries, .. }) = id.and_then(|id| followed(document, id)).map(|node| &node.kind)
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
            value: followed(document, *value)?,
        })
    };
    entries.iter().filter_map(entry).collect()
}

/// The node `id`, or what it stands for as an alias.
pub(super) fn followed<'a>(document: &'a Document<'a>, id: NodeId) -> Option<&'a Node<'a>> {
    let mut node = document.node(id)?;
    // An alias stands behind its target, so this ends.
    while let NodeKind::Alias { target, .. } = &node.kind {
        node = document.node(*target)?;
    }
    Some(node)
}

/// A warning about a whole node.
pub(super) fn warning(code: Code, node: &Node, message: String) -> Finding {
    at(code, Severity::Warning, place(node.span), message)
}

/// A finding without help.
pub(super) fn at(code: Code, severity: Severity, place: Place, message: String) -> Finding {
    Finding {
        severity,
        code,
        message,
        place,
        help: None,
    }
}
