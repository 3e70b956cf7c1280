//! Scan of a document line by line, with a stack of the open maps and lists.

use std::ops::Range;

use super::lines::{Line, Lines, has_no_other_break, is_one_line, spaces};
use super::scalar::{self, Form};

/// Maximum number of open maps and lists.
pub(super) const MAX_DEPTH: usize = 100;

pub(super) struct ScanResult {
    /// Ranges of the wanted entries, in whole lines.
    pub(super) ranges: Vec<Range<usize>>,
    /// Upper bound of the number of nodes in the whole text.
    pub(super) max_nodes: usize,
}

/// Returns the wanted entries of the root map. Returns `None` if the root is not a map, or if the scan does
/// not support the layout.
pub(super) fn find_entries(text: &str, wanted: &dyn Fn(&str) -> bool) -> Option<ScanResult> {
    let mut scan = Scan {
        lines: Lines::new(text),
        open: Vec::new(),
        state: State::Expected,
        wanted,
        current: None,
        ranges: Vec::new(),
        // The document itself is one node.
        max_nodes: 1,
    };
    while let Some(line) = scan.lines.peek() {
        scan.lines.consume(line);
        scan.scan_line(line)?;
    }
    scan.end_entry(scan.lines.offset());
    (!scan.open.is_empty()).then_some(ScanResult {
        ranges: scan.ranges,
        max_nodes: scan.max_nodes,
    })
}

/// Tokens that may follow the last token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value. The last token was a key or a dash, or there is none.
    Expected,
    /// Another line of a plain scalar.
    Plain,
    /// The next key or dash.
    Complete,
}

/// An open map or list.
#[derive(Clone, Copy, Debug)]
struct Level {
    indent: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mapping,
    /// A map whose last value is a list with the map's own indentation.
    MappingWithList,
    Sequence,
}

struct Scan<'a, 'w> {
    lines: Lines<'a>,
    open: Vec<Level>,
    state: State,
    wanted: &'w dyn Fn(&str) -> bool,
    /// Start of the root's current entry, if it is wanted.
    current: Option<usize>,
    ranges: Vec<Range<usize>>,
    max_nodes: usize,
}

impl<'a> Scan<'a, '_> {
    fn scan_line(&mut self, line: Line<'a>) -> Option<()> {
        let Line { indent, content, .. } = line;
        let first = content.first();
        if first.is_none() {
            return Some(());
        }
        if self.lines.has_special && !is_one_line(content) {
            return None;
        }
        if first == Some(&b'#') {
            if self.state == State::Plain {
                self.state = State::Complete;
            }
            return Some(());
        }
        if self.state == State::Plain && self.open.last().is_some_and(|level| indent > level.indent) {
            self.state = continue_plain(content)?;
            return Some(());
        }
        self.close_levels(indent);
        if indent == 0 {
            self.start_entry(line)?;
        }
        self.scan_node(indent, content)
    }

    /// Closes the levels that are indented more than `indent`.
    fn close_levels(&mut self, indent: usize) {
        while self.open.last().is_some_and(|level| level.indent > indent) {
            self.open.pop();
            self.state = State::Complete;
        }
    }

    /// Ends the current entry of the root before `line` and starts the next one, unless the line is an item
    /// of a list.
    fn start_entry(&mut self, line: Line<'a>) -> Option<()> {
        if is_dash(line.content) {
            return Some(());
        }
        self.end_entry(line.start);
        let (key, _) = scalar::split_key(line.content)?;
        let key = std::str::from_utf8(key).ok()?;
        self.current = (self.wanted)(key).then_some(line.start);
        Some(())
    }

    fn end_entry(&mut self, end: usize) {
        if let Some(start) = self.current.take() {
            self.ranges.push(start..end);
        }
    }

    /// Scans a node that starts at `column`. `content` is the rest of the line.
    fn scan_node(&mut self, mut column: usize, mut content: &'a [u8]) -> Option<()> {
        while is_dash(content) {
            self.scan_dash(column)?;
            let after = content.get(1..).unwrap_or_default();
            let blanks = spaces(after);
            column += 1 + blanks;
            content = after.get(blanks..).unwrap_or_default();
            self.state = State::Expected;
            if content.is_empty() {
                return Some(());
            }
        }
        if let Some((_, after)) = scalar::split_key(content) {
            self.scan_key(column)?;
            let value = after.get(spaces(after)..).unwrap_or_default();
            return self.scan_value(value);
        }
        let parent = self.open.last()?;
        (self.state == State::Expected && column > parent.indent).then_some(())?;
        self.scan_value(content)
    }

    /// Scans the dash of a list item.
    fn scan_dash(&mut self, column: usize) -> Option<()> {
        let expected = self.state == State::Expected;
        // Counts the list and a null item.
        self.max_nodes += 2;
        match self.open.last_mut() {
            Some(level) if level.indent == column => match level.kind {
                Kind::Sequence | Kind::MappingWithList => {}
                Kind::Mapping if expected => level.kind = Kind::MappingWithList,
                Kind::Mapping => return None,
            },
            // The root must be a map.
            Some(level) if expected && level.indent < column => self.open_level(column, Kind::Sequence)?,
            _ => return None,
        }
        Some(())
    }

    /// Scans a key of a map.
    fn scan_key(&mut self, column: usize) -> Option<()> {
        let expected = self.state == State::Expected;
        // Counts the map, the key and a null value.
        self.max_nodes += 3;
        match self.open.last_mut() {
            Some(level) if level.indent == column => {
                (level.kind != Kind::Sequence).then_some(())?;
                level.kind = Kind::Mapping;
            }
            Some(level) if expected && level.indent < column => self.open_level(column, Kind::Mapping)?,
            // Entries of the root start in the first column.
            None if column == 0 => self.open_level(column, Kind::Mapping)?,
            _ => return None,
        }
        Some(())
    }

    fn open_level(&mut self, indent: usize, kind: Kind) -> Option<()> {
        (self.open.len() < MAX_DEPTH).then(|| self.open.push(Level { indent, kind }))
    }

    fn scan_value(&mut self, value: &'a [u8]) -> Option<()> {
        let form = scalar::value_form(value)?;
        // A list has fewer items than bytes.
        self.max_nodes += if form == Form::Complete { value.len() } else { 1 };
        self.state = match form {
            Form::Empty => State::Expected,
            Form::Plain => State::Plain,
            Form::Complete => State::Complete,
            Form::Block => self.scan_block_scalar()?,
            Form::Quoted => self.scan_quoted(value)?,
        };
        Some(())
    }

    /// Scans the lines of a block scalar.
    fn scan_block_scalar(&mut self) -> Option<State> {
        let least = self.open.last()?.indent + 1;
        let (mut indent, mut blanks) = (None, 0);
        while let Some(line) = self.lines.peek() {
            if line.content.is_empty() {
                blanks = blanks.max(line.indent);
                self.lines.consume(line);
                continue;
            }
            let is_content = line.indent >= indent.unwrap_or(least);
            if !is_content || indent.is_none() {
                // A tab may be an error here, and an empty line that is indented more changes the
                // indentation.
                (line.content.first() != Some(&b'\t')).then_some(())?;
            }
            if !is_content {
                break;
            }
            if indent.is_none() {
                (blanks <= line.indent).then_some(())?;
                indent = Some(line.indent);
            }
            (!self.lines.has_special || has_no_other_break(line.content)).then_some(())?;
            self.lines.consume(line);
        }
        Some(State::Complete)
    }

    /// Scans a quoted scalar, which may end on a later line.
    fn scan_quoted(&mut self, value: &'a [u8]) -> Option<State> {
        let text = self.lines.text_from(value);
        let length = scalar::quoted_length(text)?;
        let after = text.get(length..).unwrap_or_default();
        let end = memchr::memchr(b'\n', after).unwrap_or(after.len());
        let rest = after.get(..end).unwrap_or_default();
        let ends = scalar::trim_end_spaces(rest).is_empty() || scalar::is_comment(rest);
        ends.then_some(())?;
        if length > value.len() {
            let scalar = text.get(..length).unwrap_or_default();
            let known = scalar::has_no_marker(scalar) && (!self.lines.has_special || is_one_line(scalar));
            known.then_some(())?;
        }
        self.lines.advance(value, length + end);
        Some(State::Complete)
    }
}

fn is_dash(content: &[u8]) -> bool {
    matches!(content, [b'-'] | [b'-', b' ', ..])
}

/// Returns the state after a continuation line of a plain scalar.
fn continue_plain(content: &[u8]) -> Option<State> {
    Some(match scalar::plain_form(content)? {
        Form::Complete => State::Complete,
        _ => State::Plain,
    })
}
