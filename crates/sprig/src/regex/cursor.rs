//! Cursor in the text of an expression.

use super::error::{Reason, RegexError};

/// The text that has not been read. Cheap to copy; a copy serves as a saved position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn peek(self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns the byte at offset `index` after the current position.
    pub(super) fn byte(self, index: usize) -> Option<u8> {
        self.0.get(index).copied()
    }

    pub(super) fn starts_with(self, prefix: &[u8]) -> bool {
        self.0.starts_with(prefix)
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    /// Skips `prefix` if the text starts with it. Returns whether it does.
    pub(super) fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.skip(prefix.len());
        }
        found
    }

    /// Returns the text from the current position to `later`, an advanced copy of this cursor.
    pub(super) fn until(self, later: Self) -> &'a [u8] {
        self.0
            .get(..self.0.len().saturating_sub(later.0.len()))
            .unwrap_or_default()
    }

    /// Returns the first `bytes` bytes of the text.
    pub(super) fn first(self, bytes: usize) -> &'a [u8] {
        self.0.get(..bytes).unwrap_or(self.0)
    }

    /// Returns the offset of `needle`.
    pub(super) fn find(self, needle: &[u8]) -> Option<usize> {
        self.0.windows(needle.len()).position(|window| window == needle)
    }

    /// Reads the next character. Returns `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<char>, RegexError> {
        let chunk = self.first(4);
        // A character may have fewer than four bytes, so only the valid prefix is used.
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

/// Checks that `text` is UTF-8. The error quotes the text from the first invalid byte to the end.
pub(super) fn check_utf8(text: &[u8]) -> Result<&str, RegexError> {
    std::str::from_utf8(text)
        .map_err(|error| Reason::Utf8.at(text.get(error.valid_up_to()..).unwrap_or_default()))
}
