//! Inserts lines in block style: determines position and indentation, and turns replaced lines into
//! comments.

use mainstay_yaml::{NodeId, NodeKind, ScalarStyle};

use super::{EditResult, Editor, NewItems};
use crate::Code;
use crate::item::Item;
use crate::lines;
use crate::mark::REPLACED_LINE_MARK;
use crate::rejection;
use crate::select::PodTemplate;
use crate::splice::Splice;
use crate::tree::{Entry, ListEntry, View};
use crate::write::{Layout, block_item, block_key};

/// Maximum indentation that is copied; larger indentation is probably not intended.
const MAX_INDENT: usize = 16;

/// Determines the layout of the pod spec from its existing lines.
pub(crate) fn detect_layout(view: &View<'_>, pod: &PodTemplate, spec: NodeId) -> Layout {
    let list_layout = ["containers", "initContainers", "volumes"]
        .into_iter()
        .find_map(|key| detect_list_layout(view, spec, key));
    let (dash, gap) = list_layout.unwrap_or((0, 2));
    Layout {
        step: detect_step(view, pod, spec).unwrap_or(2),
        dash,
        gap,
        crlf: lines::is_crlf(view.text),
    }
}

/// Returns the indentation of the pod spec's keys relative to the key `spec`.
fn detect_step(view: &View<'_>, pod: &PodTemplate, spec: NodeId) -> Option<usize> {
    let Entry::Own(key, _) = view.entry(pod.template, "spec") else {
        return None;
    };
    let step = key_column(view, spec)?.checked_sub(column(view, key)?)?;
    (1..=MAX_INDENT).contains(&step).then_some(step)
}

/// Returns the indentation of a list's dashes relative to its key, and that of its items relative to the
/// dashes.
fn detect_list_layout(view: &View<'_>, map: NodeId, key: &str) -> Option<(usize, usize)> {
    let Entry::Own(key, list) = view.entry(map, key) else {
        return None;
    };
    let NodeKind::List { items, flow: false } = &view.node(list)?.kind else {
        return None;
    };
    let first = *items.first()?;
    let dash = dash_position(view, first)?;
    let dash_column = lines::indent(view.text, dash)?;
    let offset = dash_column.checked_sub(column(view, key)?)?;
    (offset <= MAX_INDENT).then_some((offset, item_gap(view, first, dash)))
}

fn item_gap(view: &View<'_>, item: NodeId, dash: usize) -> usize {
    let start = view.node(item).map_or(0, |node| node.span.start.offset);
    let gap = start.saturating_sub(dash);
    let same_line = lines::start(view.text, dash) == lines::start(view.text, start);
    if same_line && (2..=MAX_INDENT).contains(&gap) {
        gap
    } else {
        2
    }
}

/// Returns the position of the dash of a block list item. The dash is on the item's line, or on an earlier
/// line followed only by comments.
pub(crate) fn dash_position(view: &View<'_>, item: NodeId) -> Option<usize> {
    let text = view.text;
    let mut at = view.node(item)?.span.start.offset;
    loop {
        let start = lines::start(text, at);
        let before = text.get(start..at)?;
        let own_line = at == view.node(item)?.span.start.offset;
        let before = if own_line { before } else { strip_comment(before) };
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

/// Returns a line without its comment. Lines with only a dash contain no quotes.
fn strip_comment(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == b'#').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

/// Returns the column of the keys of a block map.
pub(super) fn key_column(view: &View<'_>, map: NodeId) -> Option<usize> {
    let entries = view.entries(map);
    // The first key may follow a dash, an anchor or a tag; the second never does.
    let (key, _) = entries.get(1).or(entries.first())?;
    column(view, *key)
}

/// Returns the column of a key; `None` if other characters than spaces and dashes precede it.
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

/// A position at which lines can be inserted after a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsertionPoint {
    /// Start of the next line, or the end of the text.
    pub(crate) at: usize,
    /// Whether the text ends at this position without a line break.
    pub(crate) open: bool,
}

/// Returns the position for lines after node `id`; `None` if other content follows on its last line, or the
/// text ends with a lone CR.
pub(crate) fn insertion_point_after(view: &View<'_>, id: NodeId) -> Option<InsertionPoint> {
    let text = view.text;
    let end = view.node(id)?.span.end.offset;
    let block_scalar = is_block_scalar(view, last_leaf(view, id));
    if block_scalar && end > 0 && text.get(end - 1) == Some(&b'\n') {
        let at = if header_has(view, last_leaf(view, id), b'+') {
            end
        } else {
            skip_blank_lines_back(text, end)
        };
        return Some(InsertionPoint { at, open: false });
    }
    if !lines::no_content_follows(text, end) {
        return None;
    }
    let at = lines::end(text, end);
    let before = text.get(..at)?;
    let open = !before.ends_with(b"\n");
    // A final CR would form one line break with an inserted LF, and would be removed with it.
    let lone_cr = open && before.ends_with(b"\r");
    (!lone_cr).then_some(InsertionPoint { at, open })
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

/// Whether the header of a block scalar contains `sign`: with `+` blank lines at the end belong to the
/// scalar, with `-` even the last line break does not.
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
    /// Returns the position for lines after node `id`, or the reason why there is none.
    pub(super) fn insertion_point_after(&self, id: NodeId) -> EditResult<InsertionPoint> {
        let point = insertion_point_after(self.view, id)
            .ok_or_else(|| rejection::unsupported_layout(self.view, id, "this"))?;
        let leaf = last_leaf(self.view, id);
        if point.open && is_block_scalar(self.view, leaf) && !header_has(self.view, leaf, b'-') {
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
        Ok(point)
    }

    pub(super) fn add_to_block_list(
        &mut self,
        key: NodeId,
        list: NodeId,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let reject = || rejection::unsupported_layout(self.view, list, "the list");
        let items = self.view.items(list);
        let (Some(first), Some(end)) = (items.first(), items.last()) else {
            return Err(reject());
        };
        let dash = dash_position(self.view, *first).ok_or_else(reject)?;
        let column = lines::indent(self.view.text, dash).ok_or_else(reject)?;
        let layout = Layout {
            gap: item_gap(self.view, *first, dash),
            ..self.layout
        };
        if !new_items.first.is_empty() {
            let at = self.position_before_first_item(key, dash).ok_or_else(reject)?;
            self.insert_items(
                InsertionPoint { at, open: false },
                &new_items.first,
                column,
                &layout,
            );
        }
        if !new_items.last.is_empty() {
            let at = self.insertion_point_after(*end)?;
            self.insert_items(at, &new_items.last, column, &layout);
        }
        Ok(())
    }

    /// Returns the position below the key, before comments that belong to the first item.
    fn position_before_first_item(&self, key: NodeId, dash: usize) -> Option<usize> {
        let text = self.view.text;
        let line = lines::start(text, dash);
        let under = lines::end(text, self.view.node(key)?.span.end.offset);
        if under > line {
            return None;
        }
        Some(if lines::are_blank_or_comments(text, under, line) {
            under
        } else {
            line
        })
    }

    fn insert_items(&mut self, at: InsertionPoint, items: &[&Item], column: usize, layout: &Layout) {
        let text: String = items
            .iter()
            .map(|item| block_item(item, column, layout))
            .collect();
        // Items precede a key that is inserted at the same offset and in the same column, because the key
        // ends the list.
        self.insert_lines(at, text, 2 * column + 1);
    }

    /// Inserts whole lines. If the text ends without a line break, the new text does so as well.
    pub(super) fn insert_lines(&mut self, at: InsertionPoint, mut text: String, depth: usize) {
        if at.open {
            let eol = self.layout.eol();
            text.truncate(text.len().saturating_sub(eol.len()));
            text.insert_str(0, eol);
        }
        let splice = Splice::insert(at.at, text);
        self.splices.push(Splice { depth, ..splice });
    }

    pub(super) fn create_block_list(
        &mut self,
        map: NodeId,
        key: &'static str,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let reject = || rejection::unsupported_layout(self.view, map, "the map");
        let column = key_column(self.view, map).ok_or_else(reject)?;
        let text = block_key(key, &new_items.in_order(), column, &self.layout);
        let before = if key == "initContainers" {
            self.position_before_containers(map, column)
        } else {
            None
        };
        let at = if let Some(at) = before {
            InsertionPoint { at, open: false }
        } else {
            let (_, last) = self.view.entries(map).last().ok_or_else(reject)?;
            self.insertion_point_after(*last)?
        };
        self.insert_lines(at, text, 2 * column);
        Ok(())
    }

    /// Returns the position before `containers` and the comments that belong to it.
    fn position_before_containers(&self, map: NodeId, column: usize) -> Option<usize> {
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
            Some((_, value)) => insertion_point_after(self.view, *value)?.at,
            None => {
                return Some(lines::start(text, key)).map(|line| self.skip_comments_above(line, 0, column));
            }
        };
        Some(self.skip_comments_above(lines::start(text, key), floor, column))
    }

    fn skip_comments_above(&self, mut line: usize, floor: usize, column: usize) -> usize {
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

    /// Replaces `key: []` or `key:` by a key with items; the former lines are kept above it as comments.
    pub(super) fn fill_block_list(
        &mut self,
        entry: ListEntry,
        key: &str,
        new_items: &NewItems<'_>,
    ) -> EditResult {
        let text = self.view.text;
        let from = self.view.node(entry.key).map_or(0, |node| node.span.start.offset);
        let start = lines::start(text, from);
        let column = from - start;
        let end = self.insertion_point_after(entry.list)?;
        let mut new = comment_out(text.get(start..end.at).unwrap_or_default(), column);
        let mut lines = block_key(key, &new_items.in_order(), column, &self.layout);
        if end.open {
            new.push_str(self.layout.eol());
            lines.truncate(lines.len().saturating_sub(self.layout.eol().len()));
        }
        new.push_str(&lines);
        self.splices.push(Splice::replace(start, end.at, new));
        Ok(())
    }

    /// Turns the lines of an item into comments.
    pub(super) fn comment_out_item(&mut self, item: NodeId) -> EditResult {
        let reject = || rejection::unsupported_layout(self.view, item, "the container that must be replaced");
        let text = self.view.text;
        let dash = dash_position(self.view, item).ok_or_else(reject)?;
        let column = lines::indent(text, dash).ok_or_else(reject)?;
        let end = self.insertion_point_after(item)?;
        let start = lines::start(text, dash);
        let commented = comment_out(text.get(start..end.at).unwrap_or_default(), column);
        self.splices.push(Splice::replace(start, end.at, commented));
        Ok(())
    }
}

/// Turns `lines` into comments that contain every byte. The mark is in `column` for alignment; in lines
/// with less indentation it is at the start.
fn comment_out(lines: &[u8], column: usize) -> String {
    let text = String::from_utf8_lossy(lines);
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let reaches = line.len() >= column && line.bytes().take(column).all(|byte| byte == b' ');
        let (indent, rest) = line.split_at(if reaches { column } else { 0 });
        out.push_str(indent);
        out.push_str(REPLACED_LINE_MARK);
        if !matches!(rest, "\n" | "\r\n" | "") {
            out.push(' ');
        }
        out.push_str(rest);
    }
    out
}
