//! Lines into block style: where they go, how they are indented, and how replaced ones stay as comments.

use mainstay_yaml::{NodeId, NodeKind, ScalarStyle};

use super::{Edited, Editor, Joining};
use crate::Code;
use crate::item::Item;
use crate::lines;
use crate::mark::FORMER_LINE;
use crate::rejection;
use crate::select::Found;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use crate::write::{Layout, block_item, block_key};

/// Indentation past this is an accident, not a style.
const WIDEST: usize = 16;

/// How the pod spec is laid out, learnt from what stands in it.
pub(crate) fn layout(view: &View<'_>, found: &Found, spec: NodeId) -> Layout {
    let listed = ["containers", "initContainers", "volumes"]
        .into_iter()
        .find_map(|key| list_layout(view, spec, key));
    let (dash, gap) = listed.unwrap_or((0, 2));
    Layout {
        step: step(view, found, spec).unwrap_or(2),
        dash,
        gap,
        crlf: lines::is_crlf(view.text),
    }
}

/// From the key `spec` to the keys under it.
fn step(view: &View<'_>, found: &Found, spec: NodeId) -> Option<usize> {
    let Entry::Own(key, _) = view.entry(found.template, "spec") else {
        return None;
    };
    let step = key_column(view, spec)?.checked_sub(column(view, key)?)?;
    (1..=WIDEST).contains(&step).then_some(step)
}

/// From the key to its dashes, and from a dash to what it announces.
fn list_layout(view: &View<'_>, map: NodeId, key: &str) -> Option<(usize, usize)> {
    let Entry::Own(key, list) = view.entry(map, key) else {
        return None;
    };
    let NodeKind::List { items, flow: false } = &view.node(list)?.kind else {
        return None;
    };
    let first = *items.first()?;
    let dash = dash(view, first)?;
    let dash_column = lines::indent(view.text, dash)?;
    let offset = dash_column.checked_sub(column(view, key)?)?;
    (offset <= WIDEST).then_some((offset, gap(view, first, dash)))
}

fn gap(view: &View<'_>, item: NodeId, dash: usize) -> usize {
    let start = view.node(item).map_or(0, |node| node.span.start.offset);
    let gap = start.saturating_sub(dash);
    let same_line = lines::start(view.text, dash) == lines::start(view.text, start);
    if same_line && (2..=WIDEST).contains(&gap) {
        gap
    } else {
        2
    }
}

/// The dash of an item of a block list: on its line, or above it with only comments between.
pub(crate) fn dash(view: &View<'_>, item: NodeId) -> Option<usize> {
    let text = view.text;
    let mut at = view.node(item)?.span.start.offset;
    loop {
        let start = lines::start(text, at);
        let before = text.get(start..at)?;
        let own_line = at == view.node(item)?.span.start.offset;
        let before = if own_line { before } else { cut_comment(before) };
        match before.trim_ascii_end() {
            [] => {}
            [spaces @ .., b'-'] if spaces.iter().all(|byte| *byte == b' ') => {
                return Some(start + spaces.len());
            }
            _ => return None,
        }
        at = start.checked_sub(1)?;
    }
}

/// A line without its comment; lines of this kind hold no quotes.
fn cut_comment(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == b'#').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

/// The column of the keys of a block map.
pub(super) fn key_column(view: &View<'_>, map: NodeId) -> Option<usize> {
    let entries = view.entries(map);
    // The first key may stand behind a dash, an anchor or a tag; the second never does.
    let (key, _) = entries.get(1).or(entries.first())?;
    column(view, *key)
}

/// The column of a key, if only spaces and dashes stand before it.
fn column(view: &View<'_>, key: NodeId) -> Option<usize> {
    let at = view.node(key)?.span.start.offset;
    let before = view.text.get(..at)?;
    let width = before
        .iter()
        .rev()
        .take_while(|byte| b" -".contains(byte))
        .count();
    matches!(before.get(..at - width)?.last(), None | Some(b'\n')).then_some(width)
}

/// Where lines can follow a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    /// The start of the next line, or the end of the text.
    pub(crate) at: usize,
    /// Whether the text ends there without a line break.
    pub(crate) open: bool,
}

/// Where lines can follow node `id`; `None` if something else follows on its last line, or it ends in a lone
/// CR.
pub(crate) fn after(view: &View<'_>, id: NodeId) -> Option<After> {
    let text = view.text;
    let end = view.node(id)?.span.end.offset;
    let block_scalar = is_block_scalar(view, last_leaf(view, id));
    if block_scalar && end > 0 && text.get(end - 1) == Some(&b'\n') {
        let at = if header_has(view, last_leaf(view, id), b'+') {
            end
        } else {
            skip_blank_lines_back(text, end)
        };
        return Some(After { at, open: false });
    }
    if !lines::nothing_follows(text, end) {
        return None;
    }
    let at = lines::end(text, end);
    let before = text.get(..at)?;
    let open = !before.ends_with(b"\n");
    // A line feed after a final CR would be part of one line break, and removed with it.
    let lone_cr = open && before.ends_with(b"\r");
    (!lone_cr).then_some(After { at, open })
}

fn last_leaf(view: &View<'_>, mut id: NodeId) -> NodeId {
    loop {
        let next = match view.node(id).map(|node| &node.kind) {
            Some(NodeKind::List { items, flow: false }) => items.last().copied(),
            Some(NodeKind::Map { entries, flow: false }) => entries.last().map(|(_, value)| *value),
            _ => None,
        };
        let Some(next) = next else { return id };
        id = next;
    }
}

fn is_block_scalar(view: &View<'_>, id: NodeId) -> bool {
    let kind = view.node(id).map(|node| &node.kind);
    matches!(
        kind,
        Some(NodeKind::Scalar {
            style: ScalarStyle::Literal | ScalarStyle::Folded,
            ..
        })
    )
}

/// Whether `sign` stands behind `|` or `>`: with `+` the blank lines at the end are part of the scalar, with
/// `-` not even the last line break is.
fn header_has(view: &View<'_>, id: NodeId, sign: u8) -> bool {
    let start = view.node(id).map_or(0, |node| node.span.start.offset);
    let header = view
        .text
        .get(start..lines::end(view.text, start))
        .unwrap_or_default();
    let header = header.split(|byte| *byte == b'#').next().unwrap_or_default();
    let mut signs = header.rsplit(|byte| b"|>".contains(byte));
    signs.next().unwrap_or_default().contains(&sign)
}

fn skip_blank_lines_back(text: &[u8], mut at: usize) -> usize {
    while let Some(before) = at.checked_sub(1) {
        let start = lines::start(text, before);
        let blank = text
            .get(start..before)
            .unwrap_or_default()
            .trim_ascii()
            .is_empty();
        if !blank {
            break;
        }
        at = start;
    }
    at
}

impl Editor<'_, '_> {
    /// Where lines can follow node `id`, or why not.
    pub(super) fn after(&self, id: NodeId) -> Edited<After> {
        let after = after(self.view, id).ok_or_else(|| rejection::layout(self.view, id, "this"))?;
        let leaf = last_leaf(self.view, id);
        if after.open && is_block_scalar(self.view, leaf) && !header_has(self.view, leaf, b'-') {
            let message =
                "the text ends without a line break inside a block scalar, and another line would change it";
            let help = "end the file with a line break, or write `|-`";
            return Err(rejection::reject(
                self.view,
                leaf,
                Code::Layout,
                message.into(),
                help,
            ));
        }
        Ok(after)
    }

    pub(super) fn join_block(&mut self, key: NodeId, list: NodeId, joining: &Joining<'_>) -> Edited {
        let reject = || rejection::layout(self.view, list, "the list");
        let items = self.view.items(list);
        let (Some(first), Some(end)) = (items.first(), items.last()) else {
            return Err(reject());
        };
        let dash = dash(self.view, *first).ok_or_else(reject)?;
        let column = lines::indent(self.view.text, dash).ok_or_else(reject)?;
        let layout = Layout {
            gap: gap(self.view, *first, dash),
            ..self.layout
        };
        if !joining.first.is_empty() {
            let at = self.before_first(key, dash).ok_or_else(reject)?;
            self.insert_items(After { at, open: false }, &joining.first, column, &layout);
        }
        if !joining.last.is_empty() {
            let at = self.after(*end)?;
            self.insert_items(at, &joining.last, column, &layout);
        }
        Ok(())
    }

    /// Right under the key, above comments that belong to the first item.
    fn before_first(&self, key: NodeId, dash: usize) -> Option<usize> {
        let text = self.view.text;
        let line = lines::start(text, dash);
        let under = lines::end(text, self.view.node(key)?.span.end.offset);
        if under > line {
            return None;
        }
        Some(if lines::silent(text, under, line) {
            under
        } else {
            line
        })
    }

    fn insert_items(&mut self, at: After, items: &[&Item], column: usize, layout: &Layout) {
        let text: String = items
            .iter()
            .map(|item| block_item(item, column, layout))
            .collect();
        // An item goes before a key in its column: there the list has come to its end.
        self.insert_lines(at, text, 2 * column + 1);
    }

    /// Whole lines; where the text ends without a break, it still does.
    pub(super) fn insert_lines(&mut self, at: After, mut text: String, depth: usize) {
        if at.open {
            let eol = self.layout.eol();
            text.truncate(text.len().saturating_sub(eol.len()));
            text.insert_str(0, eol);
        }
        let splice = Splice::insert(at.at, text);
        self.splices.push(Splice { depth, ..splice });
    }

    pub(super) fn create_block(&mut self, map: NodeId, key: &'static str, joining: &Joining<'_>) -> Edited {
        let reject = || rejection::layout(self.view, map, "the map");
        let column = key_column(self.view, map).ok_or_else(reject)?;
        let text = block_key(key, &joining.all(), column, &self.layout);
        let before = if key == "initContainers" {
            self.before_containers(map, column)
        } else {
            None
        };
        let at = if let Some(at) = before {
            After { at, open: false }
        } else {
            let (_, last) = self.view.entries(map).last().ok_or_else(reject)?;
            self.after(*last)?
        };
        self.insert_lines(at, text, 2 * column);
        Ok(())
    }

    /// Above `containers` and the comments that belong to it.
    fn before_containers(&self, map: NodeId, column: usize) -> Option<usize> {
        let text = self.view.text;
        let entries = self.view.entries(map);
        let at = entries
            .iter()
            .position(|(key, _)| self.view.scalar(*key) == Some("containers"))?;
        let key = self.view.node(entries.get(at)?.0)?.span.start.offset;
        if lines::indent(text, key)? != column {
            return None;
        }
        let floor = match at.checked_sub(1).and_then(|before| entries.get(before)) {
            Some((_, value)) => after(self.view, *value)?.at,
            None => return Some(lines::start(text, key)).map(|line| self.above_comments(line, 0, column)),
        };
        Some(self.above_comments(lines::start(text, key), floor, column))
    }

    fn above_comments(&self, mut line: usize, floor: usize, column: usize) -> usize {
        let text = self.view.text;
        while line > floor {
            let above = lines::start(text, line - 1);
            let content = text.get(above..line).unwrap_or_default();
            let spaces = content.iter().take_while(|byte| **byte == b' ').count();
            if above < floor || spaces != column || content.get(spaces) != Some(&b'#') {
                break;
            }
            line = above;
        }
        line
    }

    /// Replaces `key: []` or `key:` by a key with items; the former lines stay above it as comments.
    pub(super) fn fill_block(
        &mut self,
        (name, value): (NodeId, NodeId),
        key: &str,
        joining: &Joining<'_>,
    ) -> Edited {
        let text = self.view.text;
        let from = self.view.node(name).map_or(0, |node| node.span.start.offset);
        let start = lines::start(text, from);
        let column = from - start;
        let end = self.after(value)?;
        let mut new = former(text.get(start..end.at).unwrap_or_default(), column);
        let mut lines = block_key(key, &joining.all(), column, &self.layout);
        if end.open {
            new.push_str(self.layout.eol());
            lines.truncate(lines.len().saturating_sub(self.layout.eol().len()));
        }
        new.push_str(&lines);
        self.splices.push(Splice::exchange(start, end.at, new));
        Ok(())
    }

    /// Turns the lines of an item into comments.
    pub(super) fn drop_block_item(&mut self, item: NodeId) -> Edited {
        let reject = || rejection::layout(self.view, item, "the container that must be replaced");
        let text = self.view.text;
        let dash = dash(self.view, item).ok_or_else(reject)?;
        let column = lines::indent(text, dash).ok_or_else(reject)?;
        let end = self.after(item)?;
        let start = lines::start(text, dash);
        let commented = former(text.get(start..end.at).unwrap_or_default(), column);
        self.splices.push(Splice::exchange(start, end.at, commented));
        Ok(())
    }
}

/// Turns `lines` into comments that keep every byte. The mark goes to `column` for alignment; to the start of
/// lines that are shorter.
fn former(lines: &[u8], column: usize) -> String {
    let text = String::from_utf8_lossy(lines);
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let reaches = line.len() >= column && line.bytes().take(column).all(|byte| byte == b' ');
        let (indent, rest) = line.split_at(if reaches { column } else { 0 });
        out.push_str(indent);
        out.push_str(FORMER_LINE);
        if !matches!(rest, "\n" | "\r\n" | "") {
            out.push(' ');
        }
        out.push_str(rest);
    }
    out
}
