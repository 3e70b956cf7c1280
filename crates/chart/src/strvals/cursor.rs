//! A place in an argument: takes text, gives runs of it up to a stop, with or without backslash escapes.

/// Reads an argument from front to back.
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    escapes: bool,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The end of the argument.
    End,
    /// This character, which is used up.
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

    /// Bytes read so far.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// What is left.
    pub(super) fn remaining(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    /// What is left, used up.
    pub(super) fn rest(&mut self) -> &'a str {
        let rest = self.remaining();
        self.offset = self.text.len();
        rest
    }

    /// Uses up `bytes`.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.offset += c.len_utf8();
        Some(c)
    }

    /// Everything before one of `stops`, escapes resolved.
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

    /// Skips blanks; true if then came a comma, which is skipped too, or the end.
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
