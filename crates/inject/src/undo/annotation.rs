//! Removes the undo record from the annotations of a pod template: the counterpart of the editor's
//! `annotation` module.

use mainstay_yaml::{NodeId, NodeKind};

use super::Undo;
use super::flow::span;
use crate::record::{Before, Recorded};
use crate::splice::Splice;

impl Undo<'_, '_> {
    /// Removes the annotation, and maps that were created for it and contain nothing else.
    pub(super) fn remove_annotation(&mut self, template: NodeId, recorded: &Recorded) {
        let Recorded {
            record,
            metadata,
            annotations,
            entry,
        } = recorded;
        if self.view.entries(annotations.1).len() > 1 {
            return self.remove_entry(annotations.1, entry.0, "''");
        }
        match record.before.get("annotations") {
            Some(Before::Absent) if self.view.entries(metadata.1).len() > 1 => {
                self.remove_entry(metadata.1, annotations.0, "{}");
            }
            Some(Before::Absent) => match record.before.get("metadata") {
                Some(Before::Absent) => self.remove_entry(template, metadata.0, "{}"),
                Some(Before::Text(text)) => self.restore_value(metadata.1, text),
                None => self.restore_value(metadata.1, "{}"),
            },
            Some(Before::Text(text)) => self.restore_value(annotations.1, text),
            None => self.restore_value(annotations.1, "{}"),
        }
    }

    /// Replaces `value` by its former text.
    pub(super) fn restore_value(&mut self, value: NodeId, text: &str) {
        let (start, end) = span(self.view, value);
        // A tool may have converted the document to JSON, in which `null` is the only spelling of null.
        let is_yaml_null = text != "null" && !text.contains(['[', '{']);
        let text = if is_yaml_null && self.is_json_document() {
            "null"
        } else {
            text
        };
        // The injection added a space if nothing followed the colon.
        let before = start.checked_sub(1).and_then(|at| self.view.text.get(at));
        let start = start - usize::from(text.is_empty() && before == Some(&b' '));
        self.splices.push(Splice::replace(start, end, text.to_owned()));
    }

    /// Whether every key of the document is in double quotes, as in JSON.
    fn is_json_document(&self) -> bool {
        let view = self.view;
        let is_quoted = |key: NodeId| view.text.get(span(view, key).0) == Some(&b'"');
        view.document.nodes.iter().all(|node| match &node.kind {
            NodeKind::Map { entries, flow } => *flow && entries.iter().all(|(key, _)| is_quoted(*key)),
            NodeKind::List { flow, .. } => *flow,
            _ => true,
        })
    }
}
