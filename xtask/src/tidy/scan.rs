//! Splits Rust source into comments, string literals and names, with line numbers.

use std::fmt;

/// Part of one line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// Line number, counted from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// Kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line or block comment, doc comments included.
    Comment,
    /// A string literal.
    Text,
    /// An identifier.
    Name,
    /// A line of a document.
    Document,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comment => "comment",
            Self::Text => "text",
            Self::Name => "name",
            Self::Document => "document",
        })
    }
}

/// Returns all comments, string literals and identifiers of `source`. A literal or comment of several lines
/// yields one segment per line.
pub(super) fn scan_rust(source: &str) -> Vec<Segment<'_>> {
    let mut scanner = Scanner {
        source,
        position: 0,
        line: 1,
        segments: Vec::new(),
    };
    while scanner.step() {}
    scanner.segments
}

struct Scanner<'a> {
    source: &'a str,
    position: usize,
    line: usize,
    segments: Vec<Segment<'a>>,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.position..).unwrap_or_default()
    }

    /// Consumes one token; returns `false` at the end of the source.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return false;
        };
        if rest.starts_with("//") {
            self.take(Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.take(Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2));
        } else if let Some(length) = raw_string(rest).or_else(|| string(rest)) {
            self.take(Kind::Text, length);
        } else if let Some(length) = character(rest) {
            self.skip(length);
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            self.take(Kind::Name, length.unwrap_or(rest.len()));
        } else {
            self.skip(first.len_utf8());
        }
        true
    }

    fn take(&mut self, kind: Kind, length: usize) {
        let text = self.rest().get(..length).unwrap_or_default();
        for (offset, text) in text.split('\n').enumerate() {
            self.segments.push(Segment {
                line: self.line + offset,
                kind,
                text,
            });
        }
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let text = self.rest().get(..length).unwrap_or_default();
        self.line += text.matches('\n').count();
        self.position += length;
    }
}

/// Returns the length of the string literal that `text` starts with.
fn string(text: &str) -> Option<usize> {
    let prefix = ["\"", "b\"", "c\""]
        .iter()
        .find(|prefix| text.starts_with(**prefix))?;
    let mut escaped = false;
    for (offset, character) in text.char_indices().skip(prefix.len()) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(offset + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns the length of the raw string literal that `text` starts with.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].iter().find(|prefix| {
        text.strip_prefix(**prefix)
            .is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let hashes = text
        .get(prefix.len()..)?
        .chars()
        .take_while(|c| *c == '#')
        .count();
    let open = prefix.len() + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = text.get(open..)?.find(&close);
    Some(length.map_or(text.len(), |length| open + length + close.len()))
}

/// Returns the length of the character literal that `text` starts with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\'').or_else(|| text.strip_prefix("b'"))?;
    let start = text.len() - rest.len();
    let mut characters = rest.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        let end = rest.get(2..)?.find('\'')?;
        return Some(start + end + 3);
    }
    let (end, quote) = characters.next()?;
    (quote == '\'').then_some(start + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[(usize, Kind, &str)]) {
        let segments: Vec<_> = scan_rust(source)
            .into_iter()
            .map(|segment| (segment.line, segment.kind, segment.text))
            .collect();
        assert_eq!(segments, expected);
    }

    #[test]
    fn comments_texts_and_names() {
        check(
            "// one\nlet a = \"x \\\" y\"; // two",
            &[
                (1, Kind::Comment, "// one"),
                (2, Kind::Name, "let"),
                (2, Kind::Name, "a"),
                (2, Kind::Text, "\"x \\\" y\""),
                (2, Kind::Comment, "// two"),
            ],
        );
    }

    #[test]
    fn raw_strings_may_contain_quotes_and_lines() {
        check(
            "r#\"a \"b\"\nc\"# d",
            &[
                (1, Kind::Text, "r#\"a \"b\""),
                (2, Kind::Text, "c\"#"),
                (2, Kind::Name, "d"),
            ],
        );
    }

    #[test]
    fn quotes_in_character_literals_open_no_string() {
        check(
            "'\"' &'a str '\\'' x",
            &[(1, Kind::Name, "a"), (1, Kind::Name, "str"), (1, Kind::Name, "x")],
        );
    }
}
