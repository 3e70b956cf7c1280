//! Scan of a document line by line, with a stack of the open maps and lists.

use std::ops::Range;

use super::lines::{Line, Lines, has_no_other_break, is_one_line, spaces};
use super::scalar::{self, Form};

/// Maximum number of open maps and lists.
pub(super) const MAX_DEPTH: usize = 100;

/// The result of a scan.
pub(super) struct Found {
    /// The ranges of the wanted entries, in whole lines.
    pub(super) ranges: Vec<Range<usize>>,
    /// Upper bound of the number of nodes in the whole text.
    pub(super) most_nodes: usize,
}

/// Returns the wanted entries of the root map; `None` if the text has another root or a layout that the scan
/// does not know.
pub(super) fn entries(text: &str, wanted: &dyn Fn(&str) -> bool) -> Option<Found> {
    let mut scan = Scan {
        lines: Lines::new(text),
        open: Vec::new(),
        state: State::Expected,
        wanted,
        current: None,
        ranges: Vec::new(),
        // The document counts as one.
        most_nodes: 1,
    };
    while let Some(line) = scan.lines.peek() {
        scan.lines.consume(line);
        scan.line(line)?;
    }
    scan.end_entry(scan.lines.offset());
    (!scan.open.is_empty()).then_some(Found {
        ranges: scan.ranges,
        most_nodes: scan.most_nodes,
    })
}

/// What may follow the last token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value: after a key, after a dash, or at the start.
    Expected,
    /// More lines of a plain scalar.
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
    most_nodes: usize,
}

impl<'a> Scan<'a, '_> {
    fn line(&mut self, line: Line<'a>) -> Option<()> {
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
            self.state = continued(content)?;
            return Some(());
        }
        self.close(indent);
        if indent == 0 {
            self.start_entry(line)?;
        }
        self.node(indent, content)
    }

    /// Closes the levels that are indented further than `indent`.
    fn close(&mut self, indent: usize) {
        while self.open.last().is_some_and(|level| level.indent > indent) {
            self.open.pop();
            self.state = State::Complete;
        }
    }

    /// Ends the root's current entry before `line` and starts the next one, unless the line continues a list.
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

    /// Scans a node that starts at `column` with `content`.
    fn node(&mut self, mut column: usize, mut content: &'a [u8]) -> Option<()> {
        while is_dash(content) {
            self.dash(column)?;
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
            self.key(column)?;
            let value = after.get(spaces(after)..).unwrap_or_default();
            return self.value(value);
        }
        let parent = self.open.last()?;
        (self.state == State::Expected && column > parent.indent).then_some(())?;
        self.value(content)
    }

    /// Scans the dash of a list's item.
    fn dash(&mut self, column: usize) -> Option<()> {
        let expected = self.state == State::Expected;
        // The list and a null item.
        self.most_nodes += 2;
        match self.open.last_mut() {
            Some(level) if level.indent == column => match level.kind {
                Kind::Sequence | Kind::MappingWithList => {}
                Kind::Mapping if expected => level.kind = Kind::MappingWithList,
                Kind::Mapping => return None,
            },
            // The root must be a map.
            Some(level) if expected && level.indent < column => self.open(column, Kind::Sequence)?,
            _ => return None,
        }
        Some(())
    }

    /// Scans a key of a map.
    fn key(&mut self, column: usize) -> Option<()> {
        let expected = self.state == State::Expected;
        // The map, the key and a null value.
        self.most_nodes += 3;
        match self.open.last_mut() {
            Some(level) if level.indent == column => {
                (level.kind != Kind::Sequence).then_some(())?;
                level.kind = Kind::Mapping;
            }
            Some(level) if expected && level.indent < column => self.open(column, Kind::Mapping)?,
            // Entries of the root start at the start of a line.
            None if column == 0 => self.open(column, Kind::Mapping)?,
            _ => return None,
        }
        Some(())
    }

    fn open(&mut self, indent: usize, kind: Kind) -> Option<()> {
        (self.open.len() < MAX_DEPTH).then(|| self.open.push(Level { indent, kind }))
    }

    fn value(&mut self, value: &'a [u8]) -> Option<()> {
        let form = scalar::form(value)?;
        // A list has less items than bytes.
        self.most_nodes += if form == Form::Complete { value.len() } else { 1 };
        self.state = match form {
            Form::Empty => State::Expected,
            Form::Plain => State::Plain,
            Form::Complete => State::Complete,
            Form::Block => self.block()?,
            Form::Quoted => self.quoted(value)?,
        };
        Some(())
    }

    /// Scans the lines of a block scalar.
    fn block(&mut self) -> Option<State> {
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
                // A tab may be an error here, and deeper empty lines change the indentation.
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
    fn quoted(&mut self, value: &'a [u8]) -> Option<State> {
        let text = self.lines.from(value);
        let length = scalar::quoted_length(text)?;
        let after = text.get(length..).unwrap_or_default();
        let end = memchr::memchr(b'\n', after).unwrap_or(after.len());
        let rest = after.get(..end).unwrap_or_default();
        let ends = scalar::trimmed(rest).is_empty() || scalar::is_comment(rest);
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

/// Returns the state after a further line of a plain scalar.
fn continued(content: &[u8]) -> Option<State> {
    Some(match scalar::plain(content)? {
        Form::Complete => State::Complete,
        _ => State::Plain,
    })
}
