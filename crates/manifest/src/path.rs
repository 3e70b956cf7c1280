//! Paths of `--set` and of overlays, which have the same grammar.
//!
//! ```text
//! path     = segment { "." segment }
//! segment  = key | selector | key selector { selector }
//! selector = "[" index "]" | "[" key ":" value "]" | "[" [ ":" ] pattern "]"
//! ```
//!
//! `\.` is a dot in a key, `\:` a colon in a selector, and `\[`, `\]` are brackets in a selector. Dots
//! inside brackets do not separate segments.

use std::fmt;

use mainstay_yaml::{Value, float_to_json};

/// Maximum number of segments. Kubernetes objects are much less deep.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Maximum length of a path in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// A parsed path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Segment>);

/// A step from a node to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// An entry of a map.
    Key(String),
    /// An item of a list.
    Item(Selector),
}

/// The text in brackets. Whether it is used as an index, a pair or a pattern depends on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Text without brackets and escapes.
    pub text: String,
    /// Index; `-1` appends an item.
    pub index: Option<i64>,
    /// Parsed `key:value`.
    pub pair: Option<Pair>,
}

/// Selector of the first map in which `key` has the value `value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Key in the map.
    pub key: String,
    /// Text of the value.
    pub value: String,
}

/// Error of parsing a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path has no segments.
    #[error("the path is empty")]
    Empty,
    /// There is no key between two dots.
    #[error("two dots without a key between them")]
    EmptyKey {
        /// Byte offset in the path.
        offset: usize,
    },
    /// A bracket is not closed.
    #[error("'[' without ']'")]
    Unclosed {
        /// Byte offset in the path.
        offset: usize,
    },
    /// A bracket is followed by text.
    #[error("expected '.' or '[' after ']'")]
    AfterBracket {
        /// Byte offset in the path.
        offset: usize,
    },
    /// The brackets are empty.
    #[error("the selector is empty")]
    EmptySelector {
        /// Byte offset in the path.
        offset: usize,
    },
    /// The path exceeds a limit.
    #[error("the path exceeds {limit} {unit}")]
    TooLong {
        /// Maximum size in `unit`.
        limit: usize,
        /// Unit of the limit.
        unit: &'static str,
    },
}

impl PathError {
    /// Returns the byte offset of the error in the path.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::EmptyKey { offset }
            | Self::Unclosed { offset }
            | Self::AfterBracket { offset }
            | Self::EmptySelector { offset } => *offset,
            Self::Empty | Self::TooLong { .. } => 0,
        }
    }
}

impl Path {
    /// Parses a path. A leading and a trailing dot are ignored.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(too_long(MAX_PATH_BYTES, "bytes"));
        }
        let mut parser = Parser { text, at: 0 };
        let mut segments = Vec::new();
        parser.eat('.');
        while parser.at < text.len() {
            parser.parse_segment(&mut segments)?;
            if segments.len() > MAX_SEGMENTS {
                return Err(too_long(MAX_SEGMENTS, "segments"));
            }
        }
        if segments.is_empty() {
            return Err(PathError::Empty);
        }
        Ok(Self(segments))
    }

    /// Creates a path of keys.
    #[must_use]
    pub fn from_keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Segment::Key((*key).to_owned())).collect())
    }

    /// Returns this path with a key appended.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    /// Returns this path with an index appended.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Item(Selector::from_index(index)))
    }

    /// Returns this path with the selector `key:value` appended.
    #[must_use]
    pub fn named(&self, key: &str, value: &str) -> Self {
        self.with(Segment::Item(Selector {
            text: format!("{key}:{value}"),
            index: None,
            pair: Some(Pair {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
        }))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl Selector {
    fn from_index(index: usize) -> Self {
        Self {
            text: index.to_string(),
            index: i64::try_from(index).ok(),
            pair: None,
        }
    }

    fn parse(raw: &str) -> Self {
        let text = unescape(raw, &['.', ':', '[', ']']);
        let index = raw.parse::<i64>().ok().filter(|index| *index >= -1);
        let pair = find_colon(raw).and_then(|at| {
            let (key, value) = (raw.get(..at)?, raw.get(at + 1..)?);
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let is_pair = !key.is_empty() && !value.is_empty() && key.chars().all(is_name);
            is_pair.then(|| Pair {
                key: key.to_owned(),
                value: unescape(value, &['.', ':', '[', ']']),
            })
        });
        Self { text, index, pair }
    }

    /// Returns the pattern for a list of scalars: the text without a leading colon.
    #[must_use]
    pub fn pattern(&self) -> &str {
        match self.text.strip_prefix(':') {
            Some(rest) if !rest.is_empty() => rest,
            _ => &self.text,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) => {
                    let dot = if position > 0 { "." } else { "" };
                    write!(f, "{dot}{}", key.replace('.', "\\."))?;
                }
                Segment::Item(selector) => write!(f, "[{}]", selector.text)?,
            }
        }
        Ok(())
    }
}

/// Returns the text of a scalar that selectors compare. Returns `None` for lists and maps.
#[must_use]
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("<nil>".into()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Uint(value) => Some(value.to_string()),
        Value::Float(value) => Some(float_to_json(*value)),
        Value::String(text) => Some(text.clone()),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns the kind of a value with its article, for error messages.
#[must_use]
pub(crate) fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

fn too_long(limit: usize, unit: &'static str) -> PathError {
    PathError::TooLong { limit, unit }
}

/// Returns the offset of the first unescaped colon.
fn find_colon(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let found = c == ':' && !escaped;
        escaped = c == '\\' && !escaped;
        found.then_some(at)
    })
}

/// Removes backslashes in front of `special` characters.
fn unescape(text: &str, special: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_escape = c == '\\' && rest.peek().is_some_and(|next| special.contains(next));
        out.push(if is_escape { rest.next().unwrap_or(c) } else { c });
    }
    out
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len_utf8() } else { 0 };
        found
    }

    /// Parses a key or a selector, and the dot after it.
    fn parse_segment(&mut self, segments: &mut Vec<Segment>) -> Result<(), PathError> {
        if self.rest().starts_with('[') {
            segments.push(Segment::Item(self.parse_selector()?));
            let offset = self.at;
            let follows = self.eat('.') || self.rest().is_empty() || self.rest().starts_with('[');
            return if follows {
                Ok(())
            } else {
                Err(PathError::AfterBracket { offset })
            };
        }
        let length = key_length(self.rest());
        if length == 0 {
            return Err(PathError::EmptyKey { offset: self.at });
        }
        let raw = self.rest().get(..length).unwrap_or_default();
        segments.push(Segment::Key(unescape(raw, &['.', '[', ']'])));
        self.at += length;
        self.eat('.');
        Ok(())
    }

    fn parse_selector(&mut self) -> Result<Selector, PathError> {
        let offset = self.at;
        let length = bracket_length(self.rest()).ok_or(PathError::Unclosed { offset })?;
        let inner = self.rest().get(1..length - 1).unwrap_or_default();
        if inner.is_empty() || inner == ":" {
            return Err(PathError::EmptySelector { offset });
        }
        let selector = Selector::parse(inner);
        self.at += length;
        Ok(selector)
    }
}

/// Returns the length of the key at the start of `text` in bytes.
fn key_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let ends = !escaped && matches!(c, '.' | '[');
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the length of the brackets at the start of `text` in bytes, including nested brackets.
fn bracket_length(text: &str) -> Option<usize> {
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {}
            '[' => depth += 1,
            ']' if depth == 1 => return Some(at + 1),
            ']' => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match Path::parse(text) {
            Ok(path) => path
                .0
                .iter()
                .map(|segment| match segment {
                    Segment::Key(key) => key.clone(),
                    Segment::Item(Selector {
                        index: Some(index), ..
                    }) => format!("#{index}"),
                    Segment::Item(Selector { pair: Some(pair), .. }) => {
                        format!("{}={}", pair.key, pair.value)
                    }
                    Segment::Item(selector) => format!("/{}/", selector.pattern()),
                })
                .collect::<Vec<_>>()
                .join(" | "),
            Err(error) => format!("{}: {error}", error.offset()),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn keys_and_selectors_are_separated() {
        check("a.b.c", "a | b | c");
        check(".a.b.", "a | b");
        check("a[0].b", "a | #0 | b");
        check("a.[0].b", "a | #0 | b");
        check("a[-1]", "a | #-1");
        check("a[-2]", "a | /-2/");
        check(
            "spec.containers.[name:discovery].args.[30m]",
            "spec | containers | name=discovery | args | /30m/",
        );
        check("a[:x.*]", "a | /x.*/");
        check("a[:x[0-9][1]]", "a | /x[0-9][1]/");
        check("a[0][1]", "a | #0 | #1");
    }

    #[test]
    fn escapes_are_removed() {
        check(r"a\.b.c", "a.b | c");
        check(r"a.[name:x\.y]", "a | name=x.y");
        check(r"a.[name:x.y].b", "a | name=x.y | b");
        check(r"a.[name:x\:y]", "a | name=x:y");
        check(r"a.[image:host:5000/x]", "a | image=host:5000/x");
        check(r"a\[0\].b", "a[0] | b");
        check(r"a\b.c", r"a\b | c");
    }

    #[test]
    fn malformed_paths_are_errors() {
        check("", "0: the path is empty");
        check(".", "0: the path is empty");
        check("a..b", "2: two dots without a key between them");
        check("a[0", "1: '[' without ']'");
        check("a[]", "1: the selector is empty");
        check("a[:]", "1: the selector is empty");
        check("a[0]b", "4: expected '.' or '[' after ']'");
        check(&"a.".repeat(65), "0: the path exceeds 64 segments");
        check(&"a".repeat(4097), "0: the path exceeds 4096 bytes");
    }

    #[test]
    fn a_path_prints_as_it_is_written() {
        for text in [r"a\.b[0].c", "a.b[name:x]", "a[:x]"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
    }
}
