//! Parser for Java properties, compatible with the library that the Sail Operator uses. Iterates over keys
//! and values with their offsets.
//!
//! Out of scope: `${…}` references.

use super::ParseError;

/// A key and its value, both unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) value: String,
    /// Byte offset of the key.
    pub(super) offset: usize,
}

/// Iterator over the properties of a text. It ends after the first error.
pub(super) struct Properties<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Properties<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.offset += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.offset += rest.len() - rest.trim_start_matches(is_skipped).len();
    }

    /// Skips white space, empty lines and comments.
    fn skip_to_key(&mut self) {
        loop {
            self.skip(|c| is_blank(c) || is_end(c));
            if !matches!(self.peek(), Some('#' | '!')) {
                return;
            }
            self.skip(|c| !is_end(c));
        }
    }

    fn parse_key(&mut self) -> Result<String, ParseError> {
        let mut key = String::new();
        while let Some(c) = self.peek() {
            if is_blank(c) || is_end(c) || matches!(c, ':' | '=') {
                break;
            }
            self.next_char();
            key.push(if c == '\\' { self.unescape()? } else { c });
        }
        Ok(key)
    }

    fn skip_separator(&mut self) {
        self.skip(is_blank);
        if matches!(self.peek(), Some(':' | '=')) {
            self.next_char();
        }
        self.skip(is_blank);
    }

    fn parse_value(&mut self) -> Result<String, ParseError> {
        let mut value = String::new();
        while let Some(c) = self.next_char() {
            match c {
                c if is_end(c) => break,
                '\\' if self.peek().is_some_and(is_end) => {
                    self.next_char();
                    self.skip(is_blank);
                }
                '\\' => value.push(self.unescape()?),
                c => value.push(c),
            }
        }
        Ok(value)
    }

    /// Returns the character of an escape sequence, starting after the backslash.
    fn unescape(&mut self) -> Result<char, ParseError> {
        let offset = self.offset.saturating_sub(1);
        let error = |problem: &str| ParseError {
            problem: problem.to_owned(),
            offset,
        };
        match self.next_char() {
            None => Err(error("premature EOF")),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self
                .parse_unicode()
                .ok_or_else(|| error("invalid unicode literal")),
            Some(other) => Ok(other),
        }
    }

    fn parse_unicode(&mut self) -> Option<char> {
        let digits = self.rest().get(..4)?;
        let known = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| known)?;
        self.offset += 4;
        // A lone surrogate becomes the replacement character, as in Go.
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn parse_pair(&mut self) -> Result<Pair, ParseError> {
        let offset = self.offset;
        let key = self.parse_key()?;
        if key.is_empty() {
            let problem = "a value without a key".to_owned();
            return Err(ParseError { problem, offset });
        }
        self.skip_separator();
        let value = self.parse_value()?;
        Ok(Pair { key, value, offset })
    }
}

impl Iterator for Properties<'_> {
    type Item = Result<Pair, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_to_key();
        self.peek()?;
        let pair = self.parse_pair();
        if pair.is_err() {
            self.offset = self.text.len();
        }
        Some(pair)
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\u{c}' | '\t')
}

fn is_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}
