//! Inserts items into flow collections. The counterpart is [`crate::undo::flow`].

use mainstay_yaml::{NodeId, NodeKind};

use super::{EditResult, Editor, NewItems};
use crate::lines;
use crate::record::Before;
use crate::rejection;
use crate::splice::Splice;
use crate::tree::{ListEntry, View};
use crate::write::{flow_item, flow_key};

impl Editor<'_, '_> {
    /// Adds a list as first entry of a map, so that no comma is required before it.
    pub(super) fn create_flow_list(
        &mut self,
        map: NodeId,
        key: &str,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let json = self.is_json(map);
        let list = format!("{} [{}]", flow_key(key, json), format_items(new_items, json));
        self.record_edit(key, new_items, Some(Before::Absent));
        self.insert_front(map, list)
    }

    pub(super) fn insert_front(&mut self, collection: NodeId, element: String) -> EditResult {
        let reject = || rejection::unsupported_layout(self.view, collection, "this");
        let open = content_start(self.view, collection).ok_or_else(reject)?;
        let splice = match first_element(self.view, collection) {
            None => Splice::insert(open, element),
            Some(first) => match line_indent(self.view, open, first) {
                // On a separate line, after the comment that may follow the bracket.
                Some(indent) => {
                    let line = lines::end(self.view.text, open);
                    Splice::insert(line, format!("{indent}{element},{}", self.layout.eol()))
                }
                None => Splice::insert(open, format!("{element}, ")),
            },
        };
        self.splices.push(splice);
        Ok(())
    }

    /// Adds items to a flow list that is not empty.
    pub(super) fn add_to_flow_list(
        &mut self,
        entry: ListEntry,
        key: &str,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let ListEntry { map, list, .. } = entry;
        self.record_edit(key, new_items, None);
        let first = self.view.items(list).first().copied();
        let json = self.is_json(map) || first.is_some_and(|item| self.is_json(item));
        for item in &new_items.first {
            self.insert_front(list, flow_item(item, json))?;
        }
        for item in &new_items.last {
            self.insert_back(list, &flow_item(item, json))?;
        }
        Ok(())
    }

    fn insert_back(&mut self, list: NodeId, element: &str) -> EditResult {
        let reject = || rejection::unsupported_layout(self.view, list, "the list");
        let open = content_start(self.view, list).ok_or_else(reject)?;
        let items = self.view.items(list);
        let (Some(first), Some(final_item)) = (items.first(), items.last()) else {
            return Err(reject());
        };
        let end = self.view.node(*final_item).map_or(0, |node| node.span.end.offset);
        let gap = match line_indent(self.view, open, *first) {
            Some(indent) => format!("{}{indent}", self.layout.eol()),
            None => " ".into(),
        };
        let splice = match comma_after(self.view.text, end) {
            Some(comma) => Splice::insert(comma + 1, format!("{gap}{element},")),
            None => Splice::insert(end, format!(",{gap}{element}")),
        };
        self.splices.push(splice);
        Ok(())
    }

    /// Adds items to an empty list, or replaces a null by a list.
    pub(super) fn fill_flow_list(
        &mut self,
        entry: ListEntry,
        key: &str,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let ListEntry { map, list: value, .. } = entry;
        let items = format_items(new_items, self.is_json(map));
        let before = self.original_text(map, value, "[]");
        self.fill_value(value, &items, ["[", "]"])?;
        self.record_edit(key, new_items, Some(before));
        Ok(())
    }

    /// Inserts `content` into the empty flow collection `value`, or replaces a null by `content` in
    /// `brackets`.
    pub(super) fn fill_value(&mut self, value: NodeId, content: &str, brackets: [&str; 2]) -> EditResult {
        let [open, close] = brackets;
        let what = if open == "[" { "the list" } else { "the map" };
        let reject = || rejection::unsupported_layout(self.view, value, what);
        let span = self.view.node(value).map(|node| node.span).unwrap_or_default();
        let (start, end) = (span.start.offset, span.end.offset);
        let original = self.view.text.get(start..end).unwrap_or_default();
        if self.is_flow(value) {
            let content_start = content_start(self.view, value).ok_or_else(reject)?;
            self.splices
                .push(Splice::insert(content_start, content.to_owned()));
            return Ok(());
        }
        let before = self.view.text.get(..start).unwrap_or_default();
        if original.is_empty() && !before.trim_ascii_end().ends_with(b":") {
            // The key has no colon.
            return Err(reject());
        }
        let space = if original.is_empty() { " " } else { "" };
        let filled = format!("{space}{open}{content}{close}");
        self.splices.push(Splice::replace(start, end, filled));
        Ok(())
    }

    /// Returns the former value of an entry of `map`: its exact text in block style, `null` or `empty` in
    /// flow style.
    pub(super) fn original_text(&self, map: NodeId, value: NodeId, empty: &str) -> Before {
        let span = self.view.node(value).map(|node| node.span).unwrap_or_default();
        let text = self.view.text.get(span.start.offset..span.end.offset);
        Before::Text(if !self.is_flow(map) {
            String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
        } else if self.view.is_null(value) {
            "null".to_owned()
        } else {
            empty.to_owned()
        })
    }

    pub(super) fn is_json(&self, map: NodeId) -> bool {
        is_json(self.view, map)
    }
}

/// Whether the keys of a flow map are in double quotes.
pub(crate) fn is_json(view: &View<'_>, map: NodeId) -> bool {
    let key = match view.node(map).map(|node| &node.kind) {
        Some(NodeKind::Map { entries, flow: true }) => entries.first().map(|(key, _)| *key),
        _ => None,
    };
    let start = key
        .and_then(|key| view.node(key))
        .map(|node| node.span.start.offset);
    start.and_then(|at| view.text.get(at)) == Some(&b'"')
}

fn format_items(new_items: &NewItems<'_>, json: bool) -> String {
    let shown: Vec<String> = new_items
        .in_order()
        .into_iter()
        .map(|item| flow_item(item, json))
        .collect();
    shown.join(", ")
}

/// Returns the position after the bracket or brace that opens `collection`.
pub(crate) fn content_start(view: &View<'_>, collection: NodeId) -> Option<usize> {
    let node = view.node(collection)?;
    let sign = match &node.kind {
        NodeKind::Map { flow: true, .. } => b'{',
        NodeKind::List { flow: true, .. } => b'[',
        _ => return None,
    };
    let start = node.span.start.offset;
    let found = memchr::memchr(sign, view.text.get(start..node.span.end.offset)?)?;
    Some(start + found + 1)
}

fn first_element(view: &View<'_>, collection: NodeId) -> Option<NodeId> {
    match &view.node(collection)?.kind {
        NodeKind::Map { entries, .. } => entries.first().map(|(key, _)| *key),
        NodeKind::List { items, .. } => items.first().copied(),
        _ => None,
    }
}

/// Returns the indentation of the first element, if it is on its own line.
fn line_indent(view: &View<'_>, open: usize, first: NodeId) -> Option<String> {
    let at = view.node(first)?.span.start.offset;
    let start = lines::start_of_own_line(view.text, at).filter(|start| *start >= open)?;
    let between = view.text.get(open..start)?;
    // Lines cannot be inserted after a lone CR, which is a line break in YAML, or after `?`, which starts
    // an explicit key.
    let crs = memchr::memchr_iter(b'\r', between);
    let lone_cr = crs.into_iter().any(|cr| between.get(cr + 1) != Some(&b'\n'));
    if lone_cr || !lines::are_blank_or_comments(view.text, open, start) {
        return None;
    }
    let before = view.text.get(start..at)?;
    Some(String::from_utf8_lossy(before).into_owned())
}

/// Returns the position of the comma after `from`; white space and comments may precede it.
fn comma_after(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match text.get(at)? {
            b',' => return Some(at),
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' => at = lines::end(text, at),
            _ => return None,
        }
    }
}
