//! Writes the undo record of a pod into the annotations of its pod template.

use std::fmt::Write as _;

use mainstay_yaml::{NodeId, NodeKind};

use super::block::key_column;
use super::{EditResult, Editor};
use crate::record::{Before, Record, UNDO_ANNOTATION};
use crate::tree::Entry;
use crate::write::{annotation, flow_key};
use crate::{Code, rejection};

const METADATA: &str = "metadata";
const ANNOTATIONS: &str = "annotations";

impl Editor<'_, '_> {
    /// Adds `record` to the annotations of `template`; returns the annotation's value.
    pub(super) fn annotate(&mut self, template: NodeId, mut record: Record) -> EditResult<String> {
        let entry = self.view.entry(template, METADATA);
        self.check_editable(entry, "the metadata of the pod template")?;
        let inner = entry.value().and_then(|metadata| {
            let is_filled = self.is_filled_map(metadata);
            is_filled.then(|| self.view.entry(metadata, ANNOTATIONS))
        });
        if let Some(inner) = inner {
            self.check_editable(inner, "the annotations of the pod template")?;
        }
        let (annotations, metadata) = match (inner, entry.value()) {
            (Some(inner), Some(metadata)) => (self.original_map_text(metadata, inner.value()), None),
            (_, metadata) => (Some(Before::Absent), self.original_map_text(template, metadata)),
        };
        record
            .before
            .extend(annotations.map(|before| (ANNOTATIONS.to_owned(), before)));
        record
            .before
            .extend(metadata.map(|before| (METADATA.to_owned(), before)));
        let Some(value) = record.to_text() else {
            let message = "the container that must be replaced is too long to be kept for --uninject".into();
            let help = "remove it: it is generated again";
            return Err(rejection::reject(
                self.view,
                self.spec,
                Code::NotRestorable,
                message,
                help,
            ));
        };
        match (entry.value(), inner) {
            (Some(metadata), Some(Entry::Own(_, annotations))) if self.is_filled_map(annotations) => {
                self.insert_entry(annotations, &[], &value, self.is_json(metadata))
            }
            (Some(metadata), Some(Entry::Own(_, annotations))) => {
                self.fill_map(annotations, &[], &value, self.is_json(metadata))
            }
            (Some(metadata), Some(_)) => {
                self.insert_entry(metadata, &[ANNOTATIONS], &value, self.is_json(metadata))
            }
            (Some(metadata), None) => self.fill_map(metadata, &[ANNOTATIONS], &value, self.is_json(template)),
            (None, _) => {
                self.insert_entry(template, &[METADATA, ANNOTATIONS], &value, self.is_json(template))
            }
        }?;
        Ok(value)
    }

    /// Returns the former value of a map without entries; `None` for a map with entries.
    fn original_map_text(&self, parent: NodeId, map: Option<NodeId>) -> Option<Before> {
        match map {
            None => Some(Before::Absent),
            Some(map) => (!self.is_filled_map(map)).then(|| self.original_text(parent, map, "{}")),
        }
    }

    fn is_filled_map(&self, id: NodeId) -> bool {
        !self.view.entries(id).is_empty()
    }

    /// Adds the annotation to a map that has entries, nested below the new `keys`.
    fn insert_entry(&mut self, map: NodeId, keys: &[&str], value: &str, json: bool) -> EditResult {
        if self.is_flow(map) {
            return self.insert_front(map, nested_annotation(keys, value, json));
        }
        let reject = || rejection::unsupported_layout(self.view, map, "the map");
        let column = key_column(self.view, map).ok_or_else(reject)?;
        let (_, last) = self.view.entries(map).last().ok_or_else(reject)?;
        let at = self.insertion_point_after(*last)?;
        let mut text = String::new();
        for (depth, key) in keys.iter().enumerate() {
            let indent = column + depth * self.layout.step;
            let _ = write!(text, "{:indent$}{key}:{}", "", self.layout.eol());
        }
        let indent = column + keys.len() * self.layout.step;
        let line = annotation(UNDO_ANNOTATION, value, false);
        let _ = write!(text, "{:indent$}{line}{}", "", self.layout.eol());
        self.insert_lines(at, text, 2 * column);
        Ok(())
    }

    /// Adds the annotation to an empty map or replaces a null by it, nested below the new `keys`.
    fn fill_map(&mut self, map: NodeId, keys: &[&str], value: &str, json: bool) -> EditResult {
        let is_map = matches!(
            self.view.node(map).map(|node| &node.kind),
            Some(NodeKind::Map { .. })
        );
        if !is_map && !self.view.is_null(map) {
            return Err(rejection::wrong_type(
                self.view,
                map,
                "the metadata of the pod template",
                "a map",
            ));
        }
        self.fill_value(map, &nested_annotation(keys, value, json), ["{", "}"])
    }
}

/// Formats the annotation nested below `keys` in flow style, without the braces of the outermost map.
fn nested_annotation(keys: &[&str], value: &str, json: bool) -> String {
    let innermost = annotation(UNDO_ANNOTATION, value, json);
    keys.iter().rev().fold(innermost, |inner, key| {
        format!("{} {{{inner}}}", flow_key(key, json))
    })
}
