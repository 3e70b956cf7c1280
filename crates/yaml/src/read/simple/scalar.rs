//! Recognition of keys and scalars.

#![allow(
    clippy::option_option,
    reason = "the outer `None` is a text that is not simple"
)]

use memchr::{memchr, memchr2, memchr3};

use super::block::Line;
use super::{MAX_KEY, Recognizer};

impl<'a, const ELIDES: bool> Recognizer<'a, ELIDES> {
    /// Returns the position of the colon after the key at `start`, or `None` if there is no key. A space or
    /// the end of the line must follow the colon.
    pub(super) fn key_end(&self, start: usize, end: usize) -> Option<usize> {
        let rest = self.text.get(start..end)?;
        let colon = match rest.first()? {
            quote @ (b'"' | b'\'') => {
                let inner = rest.get(1..)?;
                let close = memchr2(*quote, b'\\', inner)?;
                (inner.get(close) == Some(quote)).then_some(start + close + 2)?
            }
            first if is_key_start(*first) => start + rest.iter().position(|byte| !is_key_byte(*byte))?,
            _ => return None,
        };
        let ends = self.byte(colon) == b':' && self.is_blank(colon + 1, end);
        (ends && colon - start <= MAX_KEY).then_some(colon)
    }

    /// Returns a key without its quotes.
    pub(super) fn key_text(&self, start: usize, colon: usize) -> &'a [u8] {
        let text = self.text;
        let key = text.get(start..colon).unwrap_or_default();
        match key.first() {
            Some(b'"' | b'\'') => key.get(1..key.len() - 1).unwrap_or_default(),
            _ => key,
        }
    }

    /// Recognizes the scalar at `at` in a collection with the indentation `parent`. For a block scalar,
    /// moves to the line after it.
    pub(super) fn recognize_scalar(&mut self, line: &Line, at: usize, parent: usize) -> Option<()> {
        let end = line.end;
        let next = match self.byte(at) {
            b'"' => self.double_quoted(at, end)?,
            b'\'' => self.single_quoted(at, end)?,
            b'[' | b'{' => self.flow_on_line(at, end)?,
            b'|' | b'>' => return self.recognize_block_scalar(line, at, parent),
            b'-' | b'?' | b':' if self.is_blank(at + 1, end) => return None,
            b'&' | b'*' | b'!' | b'%' | b'@' | b'`' | b'}' | b']' | b',' | b'#' | b'\t' => return None,
            _ => return self.recognize_plain(at, end),
        };
        self.content_end = next;
        self.has_no_content_after(next, end).then_some(())
    }

    /// Whether only a comment or nothing follows a scalar.
    fn has_no_content_after(&self, at: usize, end: usize) -> bool {
        at >= end || (self.byte(at) == b' ' && self.is_blank_or_comment(at, end))
    }

    fn recognize_plain(&mut self, start: usize, end: usize) -> Option<()> {
        let text = self.text.get(start..end)?;
        if ELIDES && may_be_special(text) {
            self.obstacles += 1;
        }
        let mut at = 0;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let Some(found) = memchr3(b':', b'#', b'\t', rest) else {
                self.content_end = start + text.trim_ascii_end().len();
                return Some(());
            };
            let found = at + found;
            match text.get(found) {
                Some(b':') if self.is_blank(start + found + 1, end) => return None,
                Some(b'#') if text.get(..found)?.ends_with(b" ") => {
                    self.content_end = start + text.get(..found)?.trim_ascii_end().len();
                    return Some(());
                }
                Some(b':' | b'#') => {}
                _ => return None,
            }
            at = found + 1;
        }
    }

    /// Returns the end of a double-quoted scalar, which must end on its line.
    pub(super) fn double_quoted(&self, start: usize, end: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let rest = self.text.get(at..end)?;
            let found = at + memchr3(b'"', b'\\', b'\n', rest)?;
            match self.byte(found) {
                b'"' => return Some(found + 1),
                b'\\' if is_simple_escape(self.byte(found + 1)) && found + 1 < end => at = found + 2,
                _ => return None,
            }
        }
    }

    /// Returns the end of a single-quoted scalar, which must end on its line.
    pub(super) fn single_quoted(&self, start: usize, end: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let rest = self.text.get(at..end)?;
            let found = at + memchr2(b'\'', b'\n', rest)?;
            match (self.byte(found), self.byte(found + 1)) {
                (b'\'', b'\'') if found + 1 < end => at = found + 2,
                (b'\'', _) => return Some(found + 1),
                _ => return None,
            }
        }
    }

    /// Recognizes a block scalar with its header at `at`.
    fn recognize_block_scalar(&mut self, line: &Line, at: usize, parent: usize) -> Option<()> {
        match self.text.get(at + 1..line.end)? {
            b"" | b"-" => {}
            b"+" => self.obstacles += 1,
            _ => return None,
        }
        self.content_end = line.end;
        self.scalar_end = line.end;
        let Some(first) = self.first_content(line.next)? else {
            self.at = self.text.len();
            return Some(());
        };
        self.at = first.next;
        if first.indent <= parent {
            self.at = first.start - first.indent;
            return Some(());
        }
        self.content_end = first.end;
        self.block_lines(first.indent)?;
        self.scalar_end = self.content_end;
        // If the text does not end with a line break, it is not known what follows the scalar's last line.
        self.obstacles += usize::from(self.at >= self.text.len() && !self.text.ends_with(b"\n"));
        Some(())
    }

    /// Returns the first non-empty line of a block scalar, if any.
    fn first_content(&self, mut at: usize) -> Option<Option<Line>> {
        while let Some(line) = self.line(at) {
            match (line.start == line.end, line.indent) {
                (true, 0) => at = line.next,
                (true, _) => return None,
                _ if self.byte(line.start) == b'\t' => return None,
                _ => return Some(Some(line)),
            }
        }
        Some(None)
    }

    /// Moves to the line after a block scalar with the indentation `indent`.
    fn block_lines(&mut self, indent: usize) -> Option<()> {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            let len = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..len)?;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let next = (self.at + len + 1).min(self.text.len());
            let head = line.get(..indent.min(line.len()))?;
            match head.iter().position(|byte| *byte != b' ') {
                Some(at) if head.get(at) == Some(&b'\t') => return None,
                Some(_) => return Some(()),
                // A line of spaces may be content.
                None if line.trim_ascii().is_empty() => self.obstacles += usize::from(!line.is_empty()),
                None => self.content_end = self.at + line.len(),
            }
            self.at = next;
        }
        Some(())
    }
}

fn is_key_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'.' | b'/')
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'/' | b'-')
}

/// Whether a backslash before `byte` is an escape of two characters.
fn is_simple_escape(byte: u8) -> bool {
    matches!(
        byte,
        b'0' | b'a' | b'b' | b't' | b'n' | b'v' | b'f' | b'r' | b'e' | b' ' | b'"' | b'\'' | b'\\'
    )
}

/// Whether a plain scalar may be a number without a JSON form: infinite, NaN or too large.
pub(super) fn may_be_special(text: &[u8]) -> bool {
    let numeric = matches!(text.first(), Some(b'+' | b'-' | b'.' | b'0'..=b'9'));
    numeric && (text.len() > 40 || text.iter().any(|byte| matches!(byte, b'e' | b'E' | b'n' | b'N')))
}
