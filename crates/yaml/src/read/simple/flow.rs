//! Recognition of flow collections: on one line of a block, or a whole document in the style of JSON.

use super::{Frame, Kind, MAX_DEPTH, MAX_KEY, Recognizer, Value};

/// Tokens that may follow in a flow collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// An entry or the end.
    First,
    Entry,
    /// A comma or the end.
    Separator,
}

impl<const ELIDES: bool> Recognizer<'_, ELIDES> {
    /// Recognizes a document that consists of a flow collection, optionally followed by comments.
    pub(super) fn flow_document(&mut self, start: usize) -> Option<()> {
        let end = self.recognize_flow(start, self.text.len(), true)?;
        let line = self.line(end).map_or(end, |line| line.end.max(end));
        if end < line && !(self.byte(end) == b' ' && self.is_blank_or_comment(end, line)) {
            return None;
        }
        let mut at = self.line(end).map_or(end, |line| line.next);
        while let Some(line) = self.line(at) {
            if !self.is_blank_or_comment(line.start, line.end) {
                return None;
            }
            at = line.next;
        }
        Some(())
    }

    /// Returns the end of a flow collection on a single line.
    pub(super) fn flow_on_line(&mut self, start: usize, end: usize) -> Option<usize> {
        let depth = self.frames.len();
        let end = self.recognize_flow(start, end, false)?;
        debug_assert_eq!(self.frames.len(), depth, "flow collections are closed");
        Some(end)
    }

    /// Returns the end of the flow collection at `start`, which must end before `end`.
    fn recognize_flow(&mut self, start: usize, end: usize, is_document: bool) -> Option<usize> {
        let outside = self.frames.len();
        let mut at = self.flow_open(start, Value::default())?;
        let mut next = Expected::First;
        while self.frames.len() > outside {
            at = self.skip_white(at, end, is_document);
            if at >= end {
                return None;
            }
            let kind = self.frames.last()?.kind;
            let closer = if kind == Kind::Map { b'}' } else { b']' };
            let byte = self.byte(at);
            (at, next) = match next {
                Expected::First | Expected::Separator if byte == closer => {
                    self.flow_close(at + 1, is_document);
                    (at + 1, Expected::Separator)
                }
                Expected::Separator if byte == b',' => (at + 1, Expected::Entry),
                Expected::Separator => return None,
                Expected::First | Expected::Entry => self.flow_entry(at, end, is_document)?,
            };
        }
        Some(at)
    }

    /// Recognizes an entry: an item, or a key with its value. Returns the position after the entry and the
    /// tokens that may follow.
    fn flow_entry(&mut self, at: usize, end: usize, is_document: bool) -> Option<(usize, Expected)> {
        self.add_nodes(2)?;
        let mut map = self.frames.pop()?;
        let opaque = map.value.opaque;
        let (start, value) = if map.kind == Kind::Map {
            let (start, colon) = self.flow_key(at, end, is_document)?;
            let key = self.key_text(at, colon);
            self.record_key(key, &mut map);
            (start, self.start_value(key, start, opaque))
        } else {
            let opaque = Value {
                opaque,
                ..Value::default()
            };
            (at, opaque)
        };
        self.frames.push(map);
        match self.byte(start) {
            b'{' | b'[' => Some((self.flow_open(start, value)?, Expected::First)),
            _ => {
                let after = self.flow_scalar(start, end)?;
                if is_document {
                    self.end_value(&value, after, true);
                }
                Some((after, Expected::Separator))
            }
        }
    }

    fn flow_open(&mut self, at: usize, value: Value) -> Option<usize> {
        if self.frames.len() >= MAX_DEPTH {
            return None;
        }
        let kind = if self.byte(at) == b'{' {
            Kind::Map
        } else {
            Kind::List
        };
        self.frames.push(Frame {
            indent: usize::MAX,
            kind,
            keys: self.keys.len(),
            key_set: None,
            value,
        });
        Some(at + 1)
    }

    fn flow_close(&mut self, end: usize, is_document: bool) {
        if let Some(frame) = self.frames.pop() {
            self.keys.truncate(frame.keys);
            if is_document {
                self.end_value(&frame.value, end, true);
            }
        }
    }

    /// Returns the start of the value after the key at `at`, and the position of the key's colon.
    fn flow_key(&self, at: usize, end: usize, is_document: bool) -> Option<(usize, usize)> {
        let quoted = matches!(self.byte(at), b'"' | b'\'');
        let colon = if quoted {
            self.flow_scalar(at, end)?
        } else {
            self.flow_plain(at, end)?
        };
        let text = self.text.get(at..colon)?;
        let simple = text.len() <= MAX_KEY && !text.contains(&b'\\') && (quoted || !is_special_key(text));
        let after = self.skip_white(colon + 1, end, is_document);
        let separate = quoted || after > colon + 1;
        (simple && self.byte(colon) == b':' && separate && after < end).then_some((after, colon))
    }

    /// Returns the end of a scalar.
    fn flow_scalar(&self, at: usize, end: usize) -> Option<usize> {
        match self.byte(at) {
            b'"' => self.double_quoted(at, end),
            b'\'' => self.single_quoted(at, end),
            _ => self.flow_plain(at, end),
        }
    }

    /// Returns the end of a plain scalar without spaces.
    fn flow_plain(&self, at: usize, end: usize) -> Option<usize> {
        let rest = self.text.get(at..end)?;
        let len = rest
            .iter()
            .position(|byte| !is_flow_plain(*byte))
            .unwrap_or(rest.len());
        let text = rest.get(..len)?;
        let digit_follows = text.get(1).is_some_and(u8::is_ascii_digit);
        let starts = match text.first()? {
            b'-' => digit_follows,
            first => first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/'),
        };
        let special = ELIDES && super::scalar::may_be_special(text);
        (starts && !special).then_some(at + len)
    }

    fn skip_white(&self, at: usize, end: usize, breaks: bool) -> usize {
        let rest = self.text.get(at..end).unwrap_or_default();
        let is_white = |byte: u8| byte == b' ' || (breaks && matches!(byte, b'\n' | b'\r'));
        at + rest
            .iter()
            .position(|byte| !is_white(*byte))
            .unwrap_or(rest.len())
    }
}

fn is_flow_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'+' | b'=')
}

/// Whether an unquoted key may be a number or null.
fn is_special_key(key: &[u8]) -> bool {
    !key.first().is_some_and(u8::is_ascii_alphabetic) || key.eq_ignore_ascii_case(b"null")
}
