//! Recognition of block collections, line by line.

#![allow(
    clippy::option_option,
    reason = "the outer `None` is a text that is not simple"
)]

use memchr::memchr;

use super::{Frame, Kind, MAX_DEPTH, Recognizer, Value};

/// A key or a dash whose value may start on a later line.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Column of the key or the dash; `None` for the start of the document.
    indent: Option<usize>,
    is_key: bool,
    value: Value,
}

/// A line without its line break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Offset of the first character that is not a space.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) indent: usize,
    /// Offset of the next line.
    pub(super) next: usize,
}

impl<'a, const ELIDES: bool> Recognizer<'a, ELIDES> {
    /// Recognizes the whole text.
    pub(super) fn recognize_document(&mut self) -> Option<()> {
        let mut pending = Some(Pending {
            indent: None,
            is_key: false,
            value: Value::default(),
        });
        let mut is_marked = false;
        while let Some(line) = self.line(self.at) {
            self.at = line.next;
            if self.is_blank_or_comment(line.start, line.end) {
                continue;
            }
            if line.indent == 0 && self.is_marker(line.start) {
                let first = !is_marked && self.frames.is_empty();
                if !first
                    || self.byte(line.start) != b'-'
                    || !self.is_blank_or_comment(line.start + 3, line.end)
                {
                    return None;
                }
                is_marked = true;
                continue;
            }
            if self.frames.is_empty() && matches!(self.byte(line.start), b'{' | b'[') {
                return self.flow_document(line.start);
            }
            pending = self.recognize_line(&line, pending)?;
        }
        while let Some(frame) = self.frames.pop() {
            self.close_collection(&frame);
        }
        Some(())
    }

    /// Returns the line that starts at `at`.
    pub(super) fn line(&self, at: usize) -> Option<Line> {
        let rest = self.text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr(b'\n', rest).unwrap_or(rest.len());
        let content = rest.get(..len)?;
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        let indent = content
            .iter()
            .position(|byte| *byte != b' ')
            .unwrap_or(content.len());
        Some(Line {
            start: at + indent,
            end: at + content.len(),
            indent,
            next: (at + len + 1).min(self.text.len()),
        })
    }

    /// Whether a range is blank, or contains only a comment after optional spaces.
    pub(super) fn is_blank_or_comment(&self, start: usize, end: usize) -> bool {
        let rest = self.text.get(start..end).unwrap_or_default();
        match rest.iter().position(|byte| *byte != b' ') {
            None => true,
            Some(at) => rest.get(at) == Some(&b'#') && (at > 0 || self.starts_line(start)),
        }
    }

    fn starts_line(&self, at: usize) -> bool {
        at.checked_sub(1)
            .is_none_or(|before| matches!(self.byte(before), b'\n' | b' '))
    }

    /// Whether `---` or `...`, which may be a document marker, is at offset `at`.
    fn is_marker(&self, at: usize) -> bool {
        let mark = self.text.get(at..at + 3);
        mark == Some(b"---") || mark == Some(b"...")
    }

    /// Recognizes a line with content. Returns its last key or dash if this has no value on the line.
    fn recognize_line(&mut self, line: &Line, pending: Option<Pending>) -> Option<Option<Pending>> {
        let is_dash = self.byte(line.start) == b'-' && self.is_blank(line.start + 1, line.end);
        let kind = if is_dash { Kind::List } else { Kind::Map };
        match pending {
            Some(parent) if parent.is_value_at(line.indent, is_dash) => {
                self.open_collection(line.indent, kind, parent.value)?;
            }
            _ => self.close_to(line.indent, kind)?,
        }
        Some(if is_dash {
            self.recognize_item(line)?
        } else {
            self.recognize_entry(line, line.start, line.indent)?
        })
    }

    fn open_collection(&mut self, indent: usize, kind: Kind, value: Value) -> Option<()> {
        if self.frames.len() >= MAX_DEPTH {
            return None;
        }
        self.frames.push(Frame {
            indent,
            kind,
            keys: self.keys.len(),
            key_set: None,
            value,
        });
        Some(())
    }

    /// Closes the collections that end before an entry of `kind` at `indent`. Returns `None` if the entry
    /// does not continue an open collection.
    fn close_to(&mut self, indent: usize, kind: Kind) -> Option<()> {
        loop {
            let top = self.frames.last()?;
            if top.indent == indent && top.kind == kind {
                return Some(());
            }
            // A list may be in the same column as its key.
            let ends = top.indent > indent || (top.indent == indent && top.kind == Kind::List);
            let frame = self.frames.pop().filter(|_| ends)?;
            self.close_collection(&frame);
        }
    }

    fn close_collection(&mut self, frame: &Frame<'a>) {
        self.keys.truncate(frame.keys);
        self.end_value(&frame.value, self.content_end, false);
    }

    /// Recognizes a list item.
    fn recognize_item(&mut self, line: &Line) -> Option<Option<Pending>> {
        self.add_nodes(1)?;
        let opaque = self.frames.last()?.value.opaque;
        let rest = self.skip_spaces(line.start + 1, line.end);
        if self.is_blank_or_comment(line.start + 1, line.end) {
            self.content_end = line.start + 1;
            return Some(Some(Pending {
                indent: Some(line.indent),
                is_key: false,
                value: Value {
                    opaque,
                    ..Value::default()
                },
            }));
        }
        let indent = line.indent + (rest - line.start);
        if self.key_end(rest, line.end).is_some() {
            let value = Value {
                opaque,
                ..Value::default()
            };
            self.open_collection(indent, Kind::Map, value)?;
            return self.recognize_entry(line, rest, indent);
        }
        self.recognize_scalar(line, rest, line.indent)?;
        Some(None)
    }

    /// Recognizes a key at `start`, and its value.
    fn recognize_entry(&mut self, line: &Line, start: usize, indent: usize) -> Option<Option<Pending>> {
        self.add_nodes(2)?;
        let colon = self.key_end(start, line.end)?;
        let key = self.key_text(start, colon);
        let mut map = self.frames.pop()?;
        self.record_key(key, &mut map);
        let value = self.start_value(key, colon + 1, map.value.opaque);
        self.frames.push(map);
        if self.is_blank_or_comment(colon + 1, line.end) {
            self.content_end = colon + 1;
            // A comment after the key must be kept, so such a value is not elided.
            let bare = self.skip_spaces(colon + 1, line.end) == line.end;
            let value = Value {
                start: value.start.filter(|_| bare),
                ..value
            };
            return Some(Some(Pending {
                indent: Some(indent),
                is_key: true,
                value,
            }));
        }
        let rest = self.skip_spaces(colon + 1, line.end);
        let is_block_scalar = matches!(self.byte(rest), b'|' | b'>');
        self.recognize_scalar(line, rest, indent)?;
        if is_block_scalar {
            self.end_value(&value, self.content_end, false);
        }
        Some(None)
    }

    pub(super) fn skip_spaces(&self, at: usize, end: usize) -> usize {
        let rest = self.text.get(at..end).unwrap_or_default();
        at + rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len())
    }

    /// Whether a space or the end of the line is at offset `at`.
    pub(super) fn is_blank(&self, at: usize, end: usize) -> bool {
        at >= end || self.byte(at) == b' '
    }
}

impl Pending {
    /// Whether the next line with content is the value.
    fn is_value_at(&self, indent: usize, is_dash: bool) -> bool {
        match self.indent {
            None => true,
            Some(own) => indent > own || (self.is_key && is_dash && indent == own),
        }
    }
}
