//! Splits a stream into documents by lines, without parsing. The concatenation of all documents is the
//! stream.

use std::ops::Range;

use memchr::{memchr, memmem};

/// Returns the ranges of the documents of `text`. Adjacent ranges touch, and together they cover the text.
pub(crate) fn documents(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        let mut end = next_boundary(text, start);
        while end < text.len() && is_only_directives(text.get(start..end).unwrap_or_default()) {
            end = next_boundary(text, end);
        }
        let range = start..end;
        start = end;
        Some(range)
    })
}

/// Returns the next document boundary after `from`: before a `---` line, after a `...` line, or the end of
/// the text.
fn next_boundary(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let line = text.get(at..).unwrap_or_default();
        if is_marker(line, b"...") {
            return line_end(text, at);
        }
        if at > from && is_marker(line, b"---") {
            return at;
        }
        at = match next_marker(text, at) {
            Some(next) => next,
            None => return text.len(),
        };
    }
}

/// Returns the start of the next line after `from` that starts with `---` or `...`.
fn next_marker(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let dashes = memmem::find(rest, b"\n---");
    let within = rest.get(..dashes.map_or(rest.len(), |at| at + 1))?;
    let dots = memmem::find(within, b"\n...");
    dots.or(dashes).map(|at| from + at + 1)
}

fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    let rest = line.strip_prefix(marker);
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'\t' | b'\r' | b'\n')))
}

fn line_end(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |at| from + at + 1)
}

/// Whether the text consists of directives, and possibly comments, that belong to the document after the
/// next `---`.
fn is_only_directives(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut found = false;
    for line in text.split(|byte| *byte == b'\n') {
        match line.first() {
            Some(b'%') => found = true,
            Some(_) if !is_blank_or_comment(line) => return false,
            _ => {}
        }
    }
    found
}

/// Whether a line is blank or a comment.
pub(crate) fn is_blank_or_comment(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Whether a document contains a reserved name literally. Otherwise a name can only be hidden by an escape
/// in double quotes.
pub(crate) fn has_reserved_name(text: &[u8]) -> bool {
    memmem::find(text, b"contrast-").is_some()
}

/// Whether a backslash precedes a character code or a line break: in double quotes such an escape can hide
/// a reserved name.
pub(crate) fn has_hiding_escape(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text)
        .any(|at| matches!(text.get(at + 1), Some(b'x' | b'u' | b'U' | b'\n' | b'\r')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = documents(text.as_bytes()).map(|range| &text[range]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn documents_start_at_markers() {
        check("", &[]);
        check("a: 1\n", &["a: 1\n"]);
        check("a: 1\n---\nb: 2", &["a: 1\n", "---\nb: 2"]);
        check("---\na: 1\n--- # c\nb: 2\n", &["---\na: 1\n", "--- # c\nb: 2\n"]);
        check("---\n---\n", &["---\n", "---\n"]);
        check("a\r\n---\r\nb\r\n", &["a\r\n", "---\r\nb\r\n"]);
        check("a\n---x\n ---\nb\n", &["a\n---x\n ---\nb\n"]);
    }

    #[test]
    fn dots_end_a_document() {
        check("a\n...\nb\n", &["a\n...\n", "b\n"]);
        check("a\n...\n---\nb\n...\n", &["a\n...\n", "---\nb\n...\n"]);
        check("...\n", &["...\n"]);
    }

    #[test]
    fn directives_belong_to_the_next_document() {
        check("%YAML 1.1\n---\na\n", &["%YAML 1.1\n---\na\n"]);
        check(
            "a\n...\n# c\n%YAML 1.1\n---\nb\n",
            &["a\n...\n", "# c\n%YAML 1.1\n---\nb\n"],
        );
        check("\u{feff}%YAML 1.1\n---\na\n", &["\u{feff}%YAML 1.1\n---\na\n"]);
        check("# only a comment\n---\na\n", &["# only a comment\n", "---\na\n"]);
    }

    #[test]
    fn documents_without_reserved_names_are_recognized() {
        let may_have_reserved_name = |text: &[u8]| has_reserved_name(text) || has_hiding_escape(text);
        assert!(!may_have_reserved_name(
            b"kind: Pod\nimage: contrast\nre: \"\\n\\t\\\\\"\n"
        ));
        assert!(may_have_reserved_name(b"runtimeClassName: contrast-cc\n"));
        assert!(may_have_reserved_name(
            b"runtimeClassName: \"contr\\u0061st-cc\"\n"
        ));
    }
}
