//! Undoes the edits that the undo record of a pod lists: the counterpart of [`crate::editor::flow`]. Also
//! processes lists that a formatter has converted to block style.

use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, NodeKind};

use super::{ClearedLists, Undo};
use crate::editor::check_anchors;
use crate::editor::flow::content_start;
use crate::lines;
use crate::record::Before;
use crate::splice::Splice;
use crate::tree::{ListEntry, View};
use crate::{Code, Finding, rejection};

/// A list with injected items, and the content to restore in it.
#[derive(Clone, Debug)]
pub(super) struct RecordedList {
    pub(super) entry: ListEntry,
    /// Whether each item was injected.
    pub(super) injected: Vec<bool>,
    pub(super) before: Option<Before>,
    /// Replaced items as JSON, with their index among the kept items.
    pub(super) restored: Vec<(usize, String)>,
}

impl Undo<'_, '_> {
    /// Undoes the record of a flow list.
    pub(super) fn undo_flow_list(&mut self, list: &RecordedList) {
        let elements: Vec<(usize, usize)> = self
            .view
            .items(list.entry.list)
            .iter()
            .map(|item| span(self.view, *item))
            .collect();
        if list.injected.iter().all(|injected| *injected) {
            return self.undo_whole_flow_list(list);
        }
        self.restore_elements(list, &elements);
        for (index, _) in list
            .injected
            .iter()
            .enumerate()
            .filter(|(_, injected)| **injected)
        {
            let later = list.injected.iter().skip(index + 1).any(|injected| !injected);
            self.remove_element(&elements, index, later);
        }
    }

    /// Inserts replaced items between the kept items.
    fn restore_elements(&mut self, list: &RecordedList, elements: &[(usize, usize)]) {
        let kept: Vec<(usize, usize)> = elements
            .iter()
            .zip(&list.injected)
            .filter(|(_, injected)| !**injected)
            .map(|(element, _)| *element)
            .collect();
        for (index, text) in &list.restored {
            let splice = match (kept.get(*index), kept.last()) {
                (Some((start, _)), _) => Splice::insert(*start, format!("{text}, ")),
                (None, Some((_, end))) => Splice::insert(*end, format!(", {text}")),
                (None, None) => return,
            };
            self.splices.push(splice);
        }
    }

    /// Undoes the record of a flow list without items of the user.
    fn undo_whole_flow_list(&mut self, list: &RecordedList) {
        let (view, id) = (self.view, list.entry.list);
        let Some(open) = content_start(view, id) else {
            return;
        };
        let restored: Vec<&str> = list.restored.iter().map(|(_, text)| text.as_str()).collect();
        match &list.before {
            Some(Before::Absent) if restored.is_empty() => {
                self.remove_entry(list.entry.map, list.entry.key, "[]");
            }
            Some(Before::Text(text)) if restored.is_empty() => {
                self.restore_value(id, text);
            }
            _ => {
                let close = span(view, id).1.saturating_sub(1).max(open);
                self.splices
                    .push(Splice::replace(open, close, restored.join(", ")));
            }
        }
    }

    /// Removes the entry of `key` from `map`; if that is not possible, replaces its value by `empty`.
    pub(super) fn remove_entry(&mut self, map: NodeId, key: NodeId, empty: &str) {
        let view = self.view;
        let entries = view.entries(map);
        let Some(index) = entries.iter().position(|(other, _)| *other == key) else {
            return;
        };
        let value = entries.get(index).map_or(key, |(_, value)| *value);
        if view.is_flow(map) {
            let elements: Vec<(usize, usize)> = entries
                .iter()
                .map(|(key, value)| {
                    (
                        element_start(view, *key),
                        span(view, *value).1.max(span(view, *key).1),
                    )
                })
                .collect();
            return self.remove_element(&elements, index, index + 1 < elements.len());
        }
        let start = span(view, key).0;
        let after = crate::editor::block::insertion_point_after(view, value);
        match (lines::indent(view.text, start), after) {
            (Some(indent), Some(after)) if entries.len() > 1 => self.removed.push((start - indent, after.at)),
            _ => {
                let (start, end) = span(view, value);
                self.splices.push(Splice::replace(start, end, empty.to_owned()));
            }
        }
    }

    fn remove_element(&mut self, elements: &[(usize, usize)], index: usize, later: bool) {
        let text = self.view.text;
        let Some((start, end)) = elements.get(index).copied() else {
            return;
        };
        let before = index.checked_sub(1).and_then(|before| elements.get(before));
        let own_line = lines::start_of_own_line(text, start).filter(|line| *line > 0);
        let space = |at: usize| usize::from(text.get(at) == Some(&b' '));
        let (from, to) = match (comma_after(text, end), before) {
            (Some(comma), _) if let Some(line) = own_line => (lines::preceding_break(text, line), comma + 1),
            (Some(comma), _) if later => (start, comma + 1 + space(comma + 1)),
            (Some(comma), _) => (start - start.checked_sub(1).map_or(0, space), comma + 1),
            (None, Some((_, before))) => (*before, end),
            (None, None) => (start, end),
        };
        self.splices.push(Splice::remove(from, to));
    }

    /// Undoes the record of a list that was converted to block style.
    pub(super) fn undo_recorded_block_list(&mut self, list: &RecordedList) {
        let (view, text) = (self.view, self.view.text);
        let items = view.items(list.entry.list);
        let injected: Vec<NodeId> = items
            .iter()
            .zip(&list.injected)
            .filter(|(_, injected)| **injected)
            .map(|(item, _)| *item)
            .collect();
        let Some(lines) = injected
            .iter()
            .map(|item| self.item_lines(*item))
            .collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let dash = items
            .first()
            .and_then(|item| crate::editor::block::dash_position(view, *item));
        let column = dash
            .and_then(|dash| lines::indent(text, dash))
            .unwrap_or_default();
        let eol = if lines::is_crlf(text) { "\r\n" } else { "\n" };
        let restored = list
            .restored
            .iter()
            .map(|(_, item)| format!("{:column$}- {item}{eol}", ""));
        let colon = colon_after(text, span(view, list.entry.key).1);
        match (&list.before, colon) {
            _ if injected.len() < items.len() || !list.restored.is_empty() => {
                let kept = items
                    .iter()
                    .zip(&list.injected)
                    .filter(|(_, injected)| !**injected);
                let kept: Vec<(usize, usize)> = kept.filter_map(|(item, _)| self.item_lines(*item)).collect();
                let end = lines
                    .iter()
                    .chain(&kept)
                    .map(|(_, end)| *end)
                    .max()
                    .unwrap_or_default();
                for ((index, _), line) in list.restored.iter().zip(restored) {
                    let at = kept.get(*index).map_or(end, |(start, _)| *start);
                    self.splices.push(Splice::insert(at, line));
                }
                self.removed.extend(lines);
            }
            (Some(Before::Absent), _) => self.remove_entry(list.entry.map, list.entry.key, "[]"),
            (before, Some(colon)) => {
                let value = match before {
                    Some(Before::Text(text)) if text.is_empty() => String::new(),
                    Some(Before::Text(text)) if !text.contains(['\n', '\r', '#']) => format!(" {text}"),
                    _ => " []".into(),
                };
                self.splices.push(Splice::insert(colon + 1, value));
                self.removed.extend(lines);
            }
            (_, None) => {}
        }
    }
}

/// Returns the start of an entry of a flow map, which is the `?` of an explicit key.
fn element_start(view: &View<'_>, key: NodeId) -> usize {
    let start = span(view, key).0;
    let before = view.text.get(..start).unwrap_or_default().trim_ascii_end();
    if before.ends_with(b"?") {
        before.len() - 1
    } else {
        start
    }
}

/// Returns the position of the comma after `from`; white space may precede it.
fn comma_after(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let blanks = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    (rest.get(blanks) == Some(&b',')).then_some(from + blanks)
}

fn colon_after(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let blanks = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
    (rest.get(blanks) == Some(&b':')).then_some(from + blanks)
}

/// Init containers of a flow list that will be replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replacement<'r> {
    pub(super) list: NodeId,
    /// Names of the containers to replace.
    pub(super) names: &'r [&'static str],
    pub(super) aliased: &'r BTreeSet<NodeId>,
}

/// The position of a replaced container in its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplacedPosition {
    /// Index in the whole list.
    pub(super) position: usize,
    /// Index among the kept containers.
    pub(super) index: usize,
}

/// Removes the init containers that will be replaced from a flow list.
pub(super) fn clear_list(
    view: &View<'_>,
    replacement: Replacement<'_>,
    cleared: &mut ClearedLists,
) -> Vec<ReplacedPosition> {
    let Replacement { list, names, aliased } = replacement;
    let is_replaced = |item: NodeId| {
        let name = view.scalar_at(item, &["name"]);
        name.is_some_and(|name| names.contains(&name))
    };
    let items = view.items(list);
    let mut replaced_items = items.iter().filter(|item| is_replaced(**item));
    if let Some(error) = replaced_items.find_map(|item| check_anchors(view, aliased, *item).err()) {
        cleared.rejected.push(error);
        return Vec::new();
    }
    let ranges = removed_ranges(view, list, &is_replaced);
    cleared
        .splices
        .extend(ranges.iter().map(|(start, end)| Splice::remove(*start, *end)));
    let mut index = 0;
    let mut replaced = Vec::new();
    for (position, item) in items.iter().enumerate() {
        if is_replaced(*item) {
            replaced.push(ReplacedPosition { position, index });
        } else {
            index += 1;
        }
    }
    replaced
}

/// Returns the ranges to remove from a list. Each includes one of the adjacent commas, so that the
/// remaining list is valid.
fn removed_ranges(
    view: &View<'_>,
    list: NodeId,
    is_replaced: &dyn Fn(NodeId) -> bool,
) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut kept_end = None;
    let mut open: Option<(usize, usize)> = None;
    for item in view.items(list) {
        let (start, end) = span(view, *item);
        if is_replaced(*item) {
            open = Some((open.map_or(start, |(first, _)| first), end));
            continue;
        }
        if let Some((first, _)) = open.take() {
            ranges.push((first, start));
        }
        kept_end = Some(end);
    }
    match (open, kept_end) {
        (Some((_, end)), Some(from)) => ranges.push((from, end)),
        (Some((first, _)), None) => {
            let close = span(view, list).1.saturating_sub(1);
            ranges.push((content_start(view, list).unwrap_or(first), close));
        }
        (None, _) => {}
    }
    ranges
}

pub(super) fn span(view: &View<'_>, id: NodeId) -> (usize, usize) {
    let span = view.node(id).map(|node| node.span).unwrap_or_default();
    (span.start.offset, span.end.offset)
}

/// Whether a list is in flow style; `None` if it is not a list.
pub(super) fn list_style(view: &View<'_>, id: NodeId) -> Option<bool> {
    match view.node(id).map(|node| &node.kind) {
        Some(NodeKind::List { flow, .. }) => Some(*flow),
        _ => None,
    }
}

/// Returns the finding about an annotation that is not an undo record.
pub(crate) fn invalid_record(view: &View<'_>, annotation: NodeId) -> Finding {
    let message = "the annotation mainstay-injected is not an undo record".into();
    let help = "restore it, or remove it and the injected content";
    rejection::reject(view, annotation, Code::Layout, message, help)
}
