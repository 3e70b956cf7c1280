//! Positions in texts that are processed in pieces.

use crate::Place;

/// A position in a text; offset, line and column start at 0.
#[derive(Clone, Copy, Default)]
pub(super) struct TextPosition {
    pub(super) offset: usize,
    line: usize,
    column: usize,
}

impl TextPosition {
    /// Returns the position after `text`, which starts at this position.
    pub(super) fn after(self, text: &[u8]) -> Self {
        let characters = |line: &[u8]| line.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let column = match memchr::memrchr(b'\n', text) {
            Some(at) => characters(text.get(at + 1..).unwrap_or_default()),
            None => self.column + characters(text),
        };
        Self {
            offset: self.offset + text.len(),
            line: self.line + memchr::memchr_iter(b'\n', text).count(),
            column,
        }
    }

    /// Moves a place from a text in which it follows position `base` to a text in which it follows this
    /// position; `None` if it precedes `base`.
    pub(super) fn move_place(self, base: Self, place: Place) -> Option<Place> {
        let offset = place.offset.checked_sub(base.offset)? + self.offset;
        let line = place.line.checked_sub(base.line)? + self.line;
        let first_line = place.line == base.line + 1;
        let column = if first_line {
            place.column.checked_sub(base.column)? + self.column
        } else {
            place.column
        };
        Some(Place {
            line,
            column,
            offset,
            ..place
        })
    }
}
