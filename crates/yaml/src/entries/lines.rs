//! Lines of a text with their indentation.

use crate::chars;

/// A line of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Offset of the line in the text.
    pub(super) start: usize,
    /// Number of spaces at the start of the line.
    pub(super) indent: usize,
    /// Text after these spaces, without the line break.
    pub(super) content: &'a [u8],
}

/// Lines of a text, with a lookahead of one line.
pub(super) struct Lines<'a> {
    text: &'a [u8],
    /// Offset of the next line.
    at: usize,
    /// Whether the text contains tabs, carriage returns or characters beyond ASCII.
    pub(super) has_special: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        Self {
            text: bytes,
            at: 0,
            has_special: !text.is_ascii() || memchr::memchr2(b'\t', b'\r', bytes).is_some(),
        }
    }

    /// Returns the next line without consuming it.
    #[inline]
    pub(super) fn peek(&self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let indent = spaces(rest);
        let after = rest.get(indent..).unwrap_or_default();
        let end = memchr::memchr(b'\n', after).unwrap_or(after.len());
        Some(Line {
            start: self.at,
            indent,
            content: after.get(..end).unwrap_or_default(),
        })
    }

    /// Consumes `line`, the result of [`Lines::peek`].
    #[inline]
    pub(super) fn consume(&mut self, line: Line<'a>) {
        self.at = line.start + line.indent + line.content.len() + 1;
    }

    /// Returns the offset of the next line.
    pub(super) fn offset(&self) -> usize {
        self.at.min(self.text.len())
    }

    /// Returns the text from the start of `content` to the end of the whole text. `content` must be the end
    /// of the last consumed line.
    pub(super) fn text_from(&self, content: &[u8]) -> &'a [u8] {
        self.text.get(self.at - 1 - content.len()..).unwrap_or_default()
    }

    /// Consumes all lines up to the one that contains the end of the `length` bytes after the start of
    /// `content`, which must be the end of the last consumed line.
    pub(super) fn advance(&mut self, content: &[u8], length: usize) {
        self.at = self.at - 1 - content.len() + length + 1;
    }
}

/// Returns the number of spaces at the start of `text`.
#[inline]
pub(super) fn spaces(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<8>();
    let whole = 8 * blocks.iter().take_while(|block| **block == [b' '; 8]).count();
    let rest = text.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| **byte == b' ').count()
}

/// Whether `text` contains neither tabs nor line breaks other than line feeds.
pub(super) fn is_one_line(text: &[u8]) -> bool {
    !text.contains(&b'\t') && has_no_other_break(text)
}

/// Whether `text` contains no line breaks other than line feeds.
pub(super) fn has_no_other_break(text: &[u8]) -> bool {
    let may_break = |at: &usize| matches!(text.get(*at), Some(b'\r' | 0xC2 | 0xE2));
    !(0..text.len())
        .filter(may_break)
        .any(|at| chars::break_len(text, at) > 0)
}
