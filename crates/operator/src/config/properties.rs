//! Java's properties as upstream's library reads them: takes text, gives keys and values with their place.
//!
//! *Absent on purpose:* `${…}`; nothing is looked up in the environment.

use super::Fault;

/// One key with its value, both unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) value: String,
    /// Where the key begins, in bytes.
    pub(super) offset: usize,
}

/// Walks through a text.
pub(super) struct Properties<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Properties<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, of: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(of).len();
    }

    /// White space, empty lines and comments.
    fn skip_to_key(&mut self) {
        loop {
            self.skip(|c| is_blank(c) || is_end(c));
            if !matches!(self.peek(), Some('#' | '!')) {
                return;
            }
            self.skip(|c| !is_end(c));
        }
    }

    fn key(&mut self) -> Result<String, Fault> {
        let mut key = String::new();
        while let Some(c) = self.peek() {
            if is_blank(c) || is_end(c) || matches!(c, ':' | '=') {
                break;
            }
            self.next_char();
            key.push(if c == '\\' { self.escaped()? } else { c });
        }
        Ok(key)
    }

    fn separator(&mut self) {
        self.skip(is_blank);
        if matches!(self.peek(), Some(':' | '=')) {
            self.next_char();
        }
        self.skip(is_blank);
    }

    fn value(&mut self) -> Result<String, Fault> {
        let mut value = String::new();
        while let Some(c) = self.next_char() {
            match c {
                c if is_end(c) => break,
                '\\' if self.peek().is_some_and(is_end) => {
                    self.next_char();
                    self.skip(is_blank);
                }
                '\\' => value.push(self.escaped()?),
                c => value.push(c),
            }
        }
        Ok(value)
    }

    /// What a backslash, already read, makes of what follows.
    fn escaped(&mut self) -> Result<char, Fault> {
        let offset = self.at.saturating_sub(1);
        let fault = |what: &str| Fault {
            what: what.to_owned(),
            offset,
        };
        match self.next_char() {
            None => Err(fault("premature EOF")),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.unicode().ok_or_else(|| fault("invalid unicode literal")),
            Some(other) => Ok(other),
        }
    }

    fn unicode(&mut self) -> Option<char> {
        let digits = self.rest().get(..4)?;
        let known = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| known)?;
        self.at += 4;
        // Halves of a pair stand for nothing; Go writes this too.
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn pair(&mut self) -> Result<Pair, Fault> {
        let offset = self.at;
        let key = self.key()?;
        if key.is_empty() {
            let what = "a value without a key".to_owned();
            return Err(Fault { what, offset });
        }
        self.separator();
        let value = self.value()?;
        Ok(Pair { key, value, offset })
    }
}

impl Iterator for Properties<'_> {
    type Item = Result<Pair, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_to_key();
        self.peek()?;
        let pair = self.pair();
        if pair.is_err() {
            self.at = self.text.len();
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
