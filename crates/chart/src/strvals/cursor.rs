//! Reader of an argument that stops at given characters, with or without backslash escapes.

/// Current position in an argument.
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    escapes: bool,
}

/// End of a run of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The end of the argument.
    End,
    /// A stop character, which has been consumed.
    At(char),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, escapes: bool) -> Self {
        Self {
            text,
            offset: 0,
            escapes,
        }
    }

    /// Returns the number of bytes that have been consumed.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the remaining text.
    pub(super) fn remaining(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    /// Consumes and returns the remaining text.
    pub(super) fn take_rest(&mut self) -> &'a str {
        let rest = self.remaining();
        self.offset = self.text.len();
        rest
    }

    /// Consumes `bytes` bytes.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
    }

    /// Returns the next character without consuming it.
    pub(super) fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.offset += c.len_utf8();
        Some(c)
    }

    /// Consumes the text up to one of `stops`. Returns it with escapes resolved.
    pub(super) fn until(&mut self, stops: &[char]) -> (String, Stop) {
        let mut run = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (run, Stop::At(c));
            }
            if c != '\\' || !self.escapes {
                run.push(c);
            } else if let Some(escaped) = self.next() {
                run.push(escaped);
            }
        }
        (run, Stop::End)
    }

    /// Skips blanks and an optional comma. Returns whether the comma or the end of the argument was
    /// reached.
    pub(super) fn skip_blanks_and_comma(&mut self) -> bool {
        while let Some(c) = self.peek() {
            if c != ',' && !c.is_whitespace() {
                return false;
            }
            self.advance(c.len_utf8());
            if c == ',' {
                return true;
            }
        }
        true
    }
}
