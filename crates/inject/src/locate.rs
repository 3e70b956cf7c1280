//! Maps an offset in a scalar's text to its position in the source.
//!
//! Exact for plain, quoted and literal scalars on any number of lines, with escapes. In folded blocks with
//! further indented lines the position can be off within the line. Otherwise the result is the scalar's
//! start: always a position inside the scalar.

use mainstay_yaml::{Node, NodeKind, Position, ScalarStyle};

/// Where byte `offset` of the scalar's text stands in `source`, the text the node was read from.
#[must_use]
pub(crate) fn locate(source: &str, node: &Node, offset: usize) -> Position {
    let start = node.span.start;
    let NodeKind::Scalar { text, style } = &node.kind else {
        return start;
    };
    let (Some(raw), Some(wanted)) = (source.get(start.offset..node.span.end.offset), text.get(..offset))
    else {
        return start;
    };
    let skipped = properties(raw);
    let body = raw.get(skipped..).unwrap_or_default();
    let inside = match style {
        ScalarStyle::Plain => walk(body, wanted, Escapes::None),
        ScalarStyle::Single => quoted(body, wanted, Escapes::Single),
        ScalarStyle::Double => quoted(body, wanted, Escapes::Double),
        ScalarStyle::Literal | ScalarStyle::Folded => block(body, wanted),
    };
    let reached = raw.get(..skipped + inside).unwrap_or_default();
    advance(start, reached)
}

/// The mark behind `text`, which begins at `from`.
fn advance(from: Position, text: &str) -> Position {
    let (breaks, last) = match text.rfind('\n') {
        None => {
            return Position {
                offset: from.offset + text.len(),
                line: from.line,
                column: from.column + text.chars().count(),
            };
        }
        Some(at) => (
            text.bytes().filter(|byte| *byte == b'\n').count(),
            text.get(at + 1..).unwrap_or_default(),
        ),
    };
    Position {
        offset: from.offset + text.len(),
        line: from.line + breaks,
        column: last.chars().count() + 1,
    }
}

/// How long an anchor and a tag before the scalar are.
fn properties(raw: &str) -> usize {
    let mut rest = raw;
    while rest.starts_with(['&', '!']) {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (_, behind) = rest.split_at(word);
        rest = behind.trim_start();
    }
    raw.len() - rest.len()
}

/// What a character pair means inside quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    Single,
    Double,
}

fn quoted(body: &str, wanted: &str, escapes: Escapes) -> usize {
    let inner = body.get(1..).unwrap_or_default();
    1 + walk(inner, wanted, escapes)
}

/// How much of `body` makes `wanted`: both are walked side by side, line breaks and the blanks around them as
/// one.
fn walk(body: &str, wanted: &str, escapes: Escapes) -> usize {
    let (mut rest, mut left) = (body, wanted);
    while !left.is_empty() {
        let step = if at_break(rest) {
            let white = rest.len() - rest.trim_start().len();
            (white, left.len() - left.trim_start_matches([' ', '\n']).len())
        } else {
            pair(rest, left, escapes)
        };
        if step == (0, 0) {
            return body.len() - rest.len();
        }
        rest = rest.get(step.0..).unwrap_or_default();
        left = left.get(step.1..).unwrap_or_default();
    }
    (body.len() - rest.len() + folded(rest, wanted, escapes)).min(body.len())
}

/// How long a break is that makes nothing and stands before the character wanted.
fn folded(rest: &str, wanted: &str, escapes: Escapes) -> usize {
    let continued = escapes == Escapes::Double && rest.starts_with(['\\']);
    let broken = rest.get(usize::from(continued)..).unwrap_or_default();
    if wanted.is_empty() || !at_break(broken) || (continued && !broken.starts_with(['\n', '\r'])) {
        return 0;
    }
    usize::from(continued) + broken.len() - broken.trim_start().len()
}

/// Whether a line ends here, trailing blanks aside.
fn at_break(rest: &str) -> bool {
    rest.trim_start_matches([' ', '\t']).starts_with(['\n', '\r'])
        && rest.starts_with([' ', '\t', '\n', '\r'])
}

/// The next character as it is written and as it is meant: the bytes of both.
fn pair(rest: &str, left: &str, escapes: Escapes) -> (usize, usize) {
    let meant = left.chars().next().map_or(0, char::len_utf8);
    let mut written = rest.chars();
    match (written.next(), escapes) {
        (Some('\''), Escapes::Single) => (2.min(rest.len()), meant),
        (Some('\\'), Escapes::Double) => escape(rest, written.next(), meant),
        (Some(other), _) => (other.len_utf8(), meant),
        (None, _) => (0, 0),
    }
}

/// An escape sequence: how long it is, and how much it makes.
fn escape(rest: &str, code: Option<char>, meant: usize) -> (usize, usize) {
    match code {
        Some('x') => (4.min(rest.len()), meant),
        Some('u') => (6.min(rest.len()), meant),
        Some('U') => (10.min(rest.len()), meant),
        // A line break that is escaped makes nothing, and the blanks behind it neither.
        Some('\n' | '\r') => {
            let behind = rest.get(1..).unwrap_or_default();
            (1 + behind.len() - behind.trim_start().len(), 0)
        }
        Some(other) => (1 + other.len_utf8(), meant),
        None => (0, 0),
    }
}

/// A block behind `|` or `>`: its lines begin behind their indentation.
fn block(body: &str, wanted: &str) -> usize {
    let Some(header) = body.find('\n') else { return 0 };
    let lines = body.get(header + 1..).unwrap_or_default();
    let indent = indentation(body.get(..header).unwrap_or_default(), lines);
    let (mut at, mut left) = (header + 1, wanted);
    for line in lines.split_inclusive('\n') {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let skipped = indent.unwrap_or(blanks).min(blanks);
        let content = line
            .get(skipped..)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r']);
        if left.len() < content.len() || (left.len() == content.len() && content.starts_with(left)) {
            return at + skipped + left.len();
        }
        left = left.get(content.len()..).unwrap_or_default();
        // A break is one character of the text, or a blank it was folded to; in folded blocks some make
        // nothing.
        left = left.strip_prefix(['\n', ' ']).unwrap_or(left);
        at += line.len();
        if left.is_empty() {
            let next = body.get(at..).unwrap_or_default();
            return at + (next.len() - next.trim_start_matches(' ').len()).min(indent.unwrap_or(usize::MAX));
        }
    }
    at.min(body.len())
}

/// The indentation in a block's header is relative to its parent, which is not known here: the first line
/// determines it.
fn indentation(header: &str, lines: &str) -> Option<usize> {
    if header.chars().skip(1).take(2).any(|c| c.is_ascii_digit()) {
        return None;
    }
    let first = lines.lines().find(|line| !line.trim().is_empty())?;
    Some(first.len() - first.trim_start_matches(' ').len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_yaml::{Budget, parse_spanned};

    /// `yaml` is a map with one value; `needle` is looked for in the value's text, and must be found at
    /// `expected` (line:column).
    fn check(yaml: &str, needle: &str, expected: &str) {
        let documents = parse_spanned(yaml, &Budget::default()).unwrap();
        let node = documents[0].nodes.last().unwrap();
        let NodeKind::Scalar { text, .. } = &node.kind else {
            panic!("{node:?}")
        };
        let mark = locate(yaml, node, text.find(needle).unwrap());
        assert_eq!(
            format!("{}:{}", mark.line, mark.column),
            expected,
            "{yaml:?} {text:?}"
        );
        let line = yaml[mark.offset..].lines().next().unwrap_or_default();
        assert!(
            mark.offset <= yaml.len() && yaml.is_char_boundary(mark.offset),
            "{line}"
        );
    }

    #[test]
    fn plain_text_is_where_it_stands() {
        check("a: web#8080#false\n", "8080", "1:8");
        check("a: &x !!str web#8080#false\n", "8080", "1:17");
        check("é: é#8080#false\n", "8080", "1:6");
        check("a: x y\n  z#1\n", "1", "2:5");
        check("a: x\n\n\n  z#1\n", "z", "4:3");
    }

    #[test]
    fn quotes_and_escapes_are_counted() {
        check("a: 'it''s#8080'\n", "8080", "1:11");
        check("a: \"w\\u0065b#8080\"\n", "8080", "1:14");
        check("a: \"w\\x65b#8080\"\n", "8080", "1:12");
        check("a: \"w\\tb#8080\"\n", "8080", "1:10");
        check("a: \"w#\\\n   8080\"\n", "8080", "2:4");
        check("a: \"w\n  b#8080\"\n", "8080", "2:5");
        check("a: 'w\n  b#8080'\n", "8080", "2:5");
        check("a: ''\n", "", "1:5");
        check("{\"a\": \"w#8080\"}", "8080", "1:10");
    }

    #[test]
    fn blocks_begin_behind_their_indentation() {
        check("a: |\n  web#8080#false\n", "8080", "2:7");
        check("a: |-\n    web#1#false##\n    b#70000#true\n", "70000", "3:7");
        check("a: >-\n  web#1#false##\n  b#70000#true\n", "70000", "3:5");
        check("a: |2-\n  web#8080\n", "8080", "2:7");
        check("a: >\n  one\n\n  two#8080\n", "8080", "4:7");
        check("a: |\r\n  web#8080#false\r\n", "8080", "2:7");
    }
}
