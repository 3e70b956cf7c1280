//! Maps an offset in a scalar's text to its position in the source.
//!
//! The result is exact for plain, quoted and literal scalars with any number of lines and escapes. In
//! folded scalars with further indented lines the column may be wrong. If the offset cannot be mapped, the
//! result is the start of the scalar; it is always a position inside the scalar.

use mainstay_yaml::{Node, NodeKind, Position, ScalarStyle};

/// Returns the position of byte `offset` of the scalar's text in `source`, from which the node was parsed.
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
    let skipped = properties_len(raw);
    let body = raw.get(skipped..).unwrap_or_default();
    let inside = match style {
        ScalarStyle::Plain => source_len(body, wanted, Escapes::None),
        ScalarStyle::Single => quoted_len(body, wanted, Escapes::Single),
        ScalarStyle::Double => quoted_len(body, wanted, Escapes::Double),
        ScalarStyle::Literal | ScalarStyle::Folded => block_len(body, wanted),
    };
    let reached = raw.get(..skipped + inside).unwrap_or_default();
    position_after(start, reached)
}

/// Returns the position after `text`, which starts at `from`.
fn position_after(from: Position, text: &str) -> Position {
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

/// Returns the length of an anchor and a tag before the scalar.
fn properties_len(raw: &str) -> usize {
    let mut rest = raw;
    while rest.starts_with(['&', '!']) {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (_, after) = rest.split_at(word);
        rest = after.trim_start();
    }
    raw.len() - rest.len()
}

/// Escape sequences of a scalar style.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    Single,
    Double,
}

fn quoted_len(body: &str, wanted: &str, escapes: Escapes) -> usize {
    let inner = body.get(1..).unwrap_or_default();
    1 + source_len(inner, wanted, escapes)
}

/// Returns the length of the part of `body` that produces `wanted`. Both are traversed in parallel; a line
/// break and the blanks around it are one step.
fn source_len(body: &str, wanted: &str, escapes: Escapes) -> usize {
    let (mut rest, mut remaining) = (body, wanted);
    while !remaining.is_empty() {
        let step = if is_at_line_break(rest) {
            let white = rest.len() - rest.trim_start().len();
            (
                white,
                remaining.len() - remaining.trim_start_matches([' ', '\n']).len(),
            )
        } else {
            char_lens(rest, remaining, escapes)
        };
        if step == (0, 0) {
            return body.len() - rest.len();
        }
        rest = rest.get(step.0..).unwrap_or_default();
        remaining = remaining.get(step.1..).unwrap_or_default();
    }
    (body.len() - rest.len() + folded_break_len(rest, wanted, escapes)).min(body.len())
}

/// Returns the length of a line break before the next character if the break produces no text.
fn folded_break_len(rest: &str, wanted: &str, escapes: Escapes) -> usize {
    let continued = escapes == Escapes::Double && rest.starts_with(['\\']);
    let broken = rest.get(usize::from(continued)..).unwrap_or_default();
    if wanted.is_empty() || !is_at_line_break(broken) || (continued && !broken.starts_with(['\n', '\r'])) {
        return 0;
    }
    usize::from(continued) + broken.len() - broken.trim_start().len()
}

/// Whether a line ends here, ignoring trailing blanks.
fn is_at_line_break(rest: &str) -> bool {
    rest.trim_start_matches([' ', '\t']).starts_with(['\n', '\r'])
        && rest.starts_with([' ', '\t', '\n', '\r'])
}

/// Returns the lengths of the next character in the source and in the text.
fn char_lens(rest: &str, remaining: &str, escapes: Escapes) -> (usize, usize) {
    let text_len = remaining.chars().next().map_or(0, char::len_utf8);
    let mut written = rest.chars();
    match (written.next(), escapes) {
        (Some('\''), Escapes::Single) => (2.min(rest.len()), text_len),
        (Some('\\'), Escapes::Double) => escape_lens(rest, written.next(), text_len),
        (Some(other), _) => (other.len_utf8(), text_len),
        (None, _) => (0, 0),
    }
}

/// Returns the lengths of an escape sequence in the source and in the text.
fn escape_lens(rest: &str, code: Option<char>, text_len: usize) -> (usize, usize) {
    match code {
        Some('x') => (4.min(rest.len()), text_len),
        Some('u') => (6.min(rest.len()), text_len),
        Some('U') => (10.min(rest.len()), text_len),
        // An escaped line break and the blanks after it produce no text.
        Some('\n' | '\r') => {
            let after = rest.get(1..).unwrap_or_default();
            (1 + after.len() - after.trim_start().len(), 0)
        }
        Some(other) => (1 + other.len_utf8(), text_len),
        None => (0, 0),
    }
}

/// Returns the length of the part of a block scalar that produces `wanted`. The text of each line starts
/// after its indentation.
fn block_len(body: &str, wanted: &str) -> usize {
    let Some(header) = body.find('\n') else { return 0 };
    let lines = body.get(header + 1..).unwrap_or_default();
    let indent = indentation(body.get(..header).unwrap_or_default(), lines);
    let (mut at, mut remaining) = (header + 1, wanted);
    for line in lines.split_inclusive('\n') {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let skipped = indent.unwrap_or(blanks).min(blanks);
        let content = line
            .get(skipped..)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r']);
        if remaining.len() < content.len()
            || (remaining.len() == content.len() && content.starts_with(remaining))
        {
            return at + skipped + remaining.len();
        }
        remaining = remaining.get(content.len()..).unwrap_or_default();
        // A line break is one character of the text, which is a blank if it was folded. Some line breaks of
        // folded scalars produce no text.
        remaining = remaining.strip_prefix(['\n', ' ']).unwrap_or(remaining);
        at += line.len();
        if remaining.is_empty() {
            let next = body.get(at..).unwrap_or_default();
            return at + (next.len() - next.trim_start_matches(' ').len()).min(indent.unwrap_or(usize::MAX));
        }
    }
    at.min(body.len())
}

/// Returns the indentation of the lines of a block scalar, which the first line determines. `None` if the
/// header states it relative to the parent, because the parent is not known here.
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

    /// Checks that `needle` in the value of a map with one entry is located at `expected`, as LINE:COLUMN.
    fn check(yaml: &str, needle: &str, expected: &str) {
        let documents = parse_spanned(yaml, &Budget::default()).unwrap();
        let node = documents[0].nodes.last().unwrap();
        let NodeKind::Scalar { text, .. } = &node.kind else {
            panic!("{node:?}")
        };
        let position = locate(yaml, node, text.find(needle).unwrap());
        assert_eq!(
            format!("{}:{}", position.line, position.column),
            expected,
            "{yaml:?} {text:?}"
        );
        let line = yaml[position.offset..].lines().next().unwrap_or_default();
        assert!(
            position.offset <= yaml.len() && yaml.is_char_boundary(position.offset),
            "{line}"
        );
    }

    #[test]
    fn plain_text_is_located() {
        check("a: web#8080#false\n", "8080", "1:8");
        check("a: &x !!str web#8080#false\n", "8080", "1:17");
        check("é: é#8080#false\n", "8080", "1:6");
        check("a: x y\n  z#1\n", "1", "2:5");
        check("a: x\n\n\n  z#1\n", "z", "4:3");
    }

    #[test]
    fn quoted_text_and_escapes_are_located() {
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
    fn text_of_block_scalars_starts_after_the_indentation() {
        check("a: |\n  web#8080#false\n", "8080", "2:7");
        check("a: |-\n    web#1#false##\n    b#70000#true\n", "70000", "3:7");
        check("a: >-\n  web#1#false##\n  b#70000#true\n", "70000", "3:5");
        check("a: |2-\n  web#8080\n", "8080", "2:7");
        check("a: >\n  one\n\n  two#8080\n", "8080", "4:7");
        check("a: |\r\n  web#8080#false\r\n", "8080", "2:7");
    }
}
