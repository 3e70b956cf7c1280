//! Inserts items into flow collections. The counterpart is [`crate::undo::flow`].

use mainstay_yaml::{NodeId, NodeKind};

use super::{Edited, Editor, Joining};
use crate::lines;
use crate::record::Before;
use crate::rejection;
use crate::splice::Splice;
use crate::tree::View;
use crate::write::{flow_item, flow_key};

impl Editor<'_, '_> {
    /// Adds a key at the front of the map, where no comma before it is needed.
    pub(super) fn create_flow(&mut self, map: NodeId, key: &str, joining: &Joining<'_>) -> Edited {
        let json = self.is_json(map);
        let list = format!("{} [{}]", flow_key(key, json), items(joining, json));
        self.note(key, joining, Some(Before::Absent));
        self.insert_front(map, list)
    }

    pub(super) fn insert_front(&mut self, collection: NodeId, element: String) -> Edited {
        let reject = || rejection::layout(self.view, collection, "this");
        let open = opening(self.view, collection).ok_or_else(reject)?;
        let splice = match first_element(self.view, collection) {
            None => Splice::insert(open, element),
            Some(first) => match line_indent(self.view, open, first) {
                // On its own line, behind the comment that may follow the bracket.
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

    /// Adds to a flow list that has items.
    pub(super) fn join_flow(
        &mut self,
        map: NodeId,
        (key, list): (&str, NodeId),
        joining: &Joining<'_>,
    ) -> Edited {
        self.note(key, joining, None);
        let first = self.view.items(list).first().copied();
        let json = self.is_json(map) || first.is_some_and(|item| self.is_json(item));
        for item in &joining.first {
            self.insert_front(list, flow_item(item, json))?;
        }
        for item in &joining.last {
            self.insert_back(list, &flow_item(item, json))?;
        }
        Ok(())
    }

    fn insert_back(&mut self, list: NodeId, element: &str) -> Edited {
        let reject = || rejection::layout(self.view, list, "the list");
        let open = opening(self.view, list).ok_or_else(reject)?;
        let items = self.view.items(list);
        let (Some(first), Some(final_item)) = (items.first(), items.last()) else {
            return Err(reject());
        };
        let end = self.view.node(*final_item).map_or(0, |node| node.span.end.offset);
        let gap = match line_indent(self.view, open, *first) {
            Some(indent) => format!("{}{indent}", self.layout.eol()),
            None => " ".into(),
        };
        let splice = match comma(self.view.text, end) {
            Some(comma) => Splice::insert(comma + 1, format!("{gap}{element},")),
            None => Splice::insert(end, format!(",{gap}{element}")),
        };
        self.splices.push(splice);
        Ok(())
    }

    /// Fills an empty list, or replaces a null.
    pub(super) fn fill_flow(
        &mut self,
        map: NodeId,
        (key, value): (&str, NodeId),
        joining: &Joining<'_>,
    ) -> Edited {
        let items = items(joining, self.is_json(map));
        let before = self.former_text(map, value, "[]");
        self.fill_value(value, &items, ["[", "]"])?;
        self.note(key, joining, Some(before));
        Ok(())
    }

    /// Puts `content` into the empty flow collection `value`, or in place of a null with `brackets` around
    /// it.
    pub(super) fn fill_value(&mut self, value: NodeId, content: &str, brackets: [&str; 2]) -> Edited {
        let [open, close] = brackets;
        let what = if open == "[" { "the list" } else { "the map" };
        let reject = || rejection::layout(self.view, value, what);
        let span = self.view.node(value).map(|node| node.span).unwrap_or_default();
        let (start, end) = (span.start.offset, span.end.offset);
        let former = self.view.text.get(start..end).unwrap_or_default();
        if self.is_flow(value) {
            let opening = opening(self.view, value).ok_or_else(reject)?;
            self.splices.push(Splice::insert(opening, content.to_owned()));
            return Ok(());
        }
        let before = self.view.text.get(..start).unwrap_or_default();
        if former.is_empty() && !before.trim_ascii_end().ends_with(b":") {
            // A key without a colon.
            return Err(reject());
        }
        let space = if former.is_empty() { " " } else { "" };
        let filled = format!("{space}{open}{content}{close}");
        self.splices.push(Splice::exchange(start, end, filled));
        Ok(())
    }

    /// What stood in `map` before: the exact text in block style, `null` or `empty` in flow style.
    pub(super) fn former_text(&self, map: NodeId, value: NodeId, empty: &str) -> Before {
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

fn items(joining: &Joining<'_>, json: bool) -> String {
    let shown: Vec<String> = joining
        .all()
        .into_iter()
        .map(|item| flow_item(item, json))
        .collect();
    shown.join(", ")
}

/// Just behind the bracket or brace that opens `collection`.
pub(crate) fn opening(view: &View<'_>, collection: NodeId) -> Option<usize> {
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

/// The indentation of the first element, if it is on its own line.
fn line_indent(view: &View<'_>, open: usize, first: NodeId) -> Option<String> {
    let at = view.node(first)?.span.start.offset;
    let start = lines::own_start(view.text, at).filter(|start| *start >= open)?;
    let between = view.text.get(open..start)?;
    // A lone CR is a line break to YAML, and `?` announces a key: lines cannot be added behind either.
    let crs = memchr::memchr_iter(b'\r', between);
    let lone_cr = crs.into_iter().any(|cr| between.get(cr + 1) != Some(&b'\n'));
    if lone_cr || !lines::silent(view.text, open, start) {
        return None;
    }
    let before = view.text.get(start..at)?;
    Some(String::from_utf8_lossy(before).into_owned())
}

/// The comma behind `from`, white space and comments passed over.
fn comma(text: &[u8], from: usize) -> Option<usize> {
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
