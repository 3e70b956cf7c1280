//! Reading an expression from the left: takes bytes, gives characters and the text between two points.

use super::error::{Reason, RegexError};

/// What is still to be read. Cheap to copy, so a place to come back to is a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn peek(self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The byte `index` places ahead.
    pub(super) fn byte(self, index: usize) -> Option<u8> {
        self.0.get(index).copied()
    }

    pub(super) fn starts_with(self, prefix: &[u8]) -> bool {
        self.0.starts_with(prefix)
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    /// Skips `prefix` if it comes next.
    pub(super) fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.skip(prefix.len());
        }
        found
    }

    /// The text from here to `later`, a copy of this cursor that has read on.
    pub(super) fn until(self, later: Self) -> &'a [u8] {
        self.0
            .get(..self.0.len().saturating_sub(later.0.len()))
            .unwrap_or_default()
    }

    /// The first `bytes` bytes.
    pub(super) fn first(self, bytes: usize) -> &'a [u8] {
        self.0.get(..bytes).unwrap_or(self.0)
    }

    /// Where `needle` begins.
    pub(super) fn find(self, needle: &[u8]) -> Option<usize> {
        self.0.windows(needle.len()).position(|window| window == needle)
    }

    /// The next character; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<char>, RegexError> {
        let chunk = self.first(4);
        // A character may end before the fourth byte: what is valid in front counts.
        let valid = chunk.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        match valid.chars().next() {
            Some(c) => {
                self.skip(c.len_utf8());
                Ok(Some(c))
            }
            None if self.is_empty() => Ok(None),
            None => Err(Reason::Utf8.at(self.0)),
        }
    }
}

/// Fails where `text` is not UTF-8, quoting from the first bad byte.
pub(super) fn check_utf8(text: &[u8]) -> Result<&str, RegexError> {
    std::str::from_utf8(text)
        .map_err(|error| Reason::Utf8.at(text.get(error.valid_up_to()..).unwrap_or_default()))
}
