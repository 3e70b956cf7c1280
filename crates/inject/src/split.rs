//! Splits a stream into documents by lines, without parsing; the slices joined are the stream.

use std::ops::Range;

use memchr::{memchr, memmem};

/// The documents of `text` as ranges; they touch each other and cover everything.
pub(crate) fn documents(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        let mut end = next_border(text, start);
        while end < text.len() && only_directives(text.get(start..end).unwrap_or_default()) {
            end = next_border(text, end);
        }
        let range = start..end;
        start = end;
        Some(range)
    })
}

/// The next place behind `from` where a document begins: before a line `---`, or behind a line `...`.
fn next_border(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let line = text.get(at..).unwrap_or_default();
        if is_mark(line, b"...") {
            return line_end(text, at);
        }
        if at > from && is_mark(line, b"---") {
            return at;
        }
        at = match next_mark(text, at) {
            Some(next) => next,
            None => return text.len(),
        };
    }
}

/// The start of the next line behind `from` that looks like a mark.
fn next_mark(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let dashes = memmem::find(rest, b"\n---");
    let within = rest.get(..dashes.map_or(rest.len(), |at| at + 1))?;
    let dots = memmem::find(within, b"\n...");
    dots.or(dashes).map(|at| from + at + 1)
}

fn is_mark(line: &[u8], mark: &[u8]) -> bool {
    let rest = line.strip_prefix(mark);
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'\t' | b'\r' | b'\n')))
}

fn line_end(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |at| from + at + 1)
}

/// Whether this may precede `---` and belongs to the next document: directives, perhaps comments.
fn only_directives(text: &[u8]) -> bool {
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

/// Whether a line says nothing.
pub(crate) fn is_blank_or_comment(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Whether a document contains a reserved name as written; only an escape in double quotes could hide it.
pub(crate) fn has_reserved_name(text: &[u8]) -> bool {
    memmem::find(text, b"contrast-").is_some()
}

/// Whether a backslash stands before something that could stand for a letter, or joins two lines.
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
    fn documents_begin_at_marks() {
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
    fn directives_belong_to_what_follows() {
        check("%YAML 1.1\n---\na\n", &["%YAML 1.1\n---\na\n"]);
        check(
            "a\n...\n# c\n%YAML 1.1\n---\nb\n",
            &["a\n...\n", "# c\n%YAML 1.1\n---\nb\n"],
        );
        check("\u{feff}%YAML 1.1\n---\na\n", &["\u{feff}%YAML 1.1\n---\na\n"]);
        check("# only a comment\n---\na\n", &["# only a comment\n", "---\na\n"]);
    }

    #[test]
    fn what_cannot_be_ours_is_passed_over() {
        let may_matter = |text: &[u8]| has_reserved_name(text) || has_hiding_escape(text);
        assert!(!may_matter(b"kind: Pod\nimage: contrast\nre: \"\\n\\t\\\\\"\n"));
        assert!(may_matter(b"runtimeClassName: contrast-cc\n"));
        assert!(may_matter(b"runtimeClassName: \"contr\\u0061st-cc\"\n"));
    }
}
