//! Boundaries and indentation of lines, by byte offset.

use memchr::{memchr, memrchr};

use crate::split::is_blank_or_comment;

/// Returns the start of the line that contains offset `at`.
pub(crate) fn start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    memrchr(b'\n', before).map_or(0, |found| found + 1)
}

/// Returns the end of the line that contains offset `at`, after its line break.
pub(crate) fn end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |found| at + found + 1)
}

/// Returns the line that contains offset `at`, including its line break.
pub(crate) fn line(text: &[u8], at: usize) -> &[u8] {
    text.get(start(text, at)..end(text, at)).unwrap_or_default()
}

/// Returns the number of spaces before offset `at` on its line; `None` if other characters precede it.
pub(crate) fn indent(text: &[u8], at: usize) -> Option<usize> {
    // Searches backwards, so that the length of the line does not matter.
    let before = text.get(..at)?;
    let spaces = before.iter().rev().take_while(|byte| **byte == b' ').count();
    matches!(before.get(..at - spaces)?.last(), None | Some(b'\n')).then_some(spaces)
}

/// Returns `text` without leading blanks.
pub(crate) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| b" \t".contains(byte)).count();
    text.get(blanks..).unwrap_or_default()
}

/// Returns the start of the line that contains offset `at`; `None` if other characters than blanks precede
/// `at` on the line.
pub(crate) fn start_of_own_line(text: &[u8], at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let blanks = before
        .iter()
        .rev()
        .take_while(|byte| b" \t".contains(byte))
        .count();
    let start = at - blanks;
    matches!(before.get(..start)?.last(), None | Some(b'\n')).then_some(start)
}

/// Whether only blanks or a comment follow offset `at` on its line. A `#` at `at` itself does not start a
/// comment.
pub(crate) fn no_content_follows(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..end(text, at)).unwrap_or_default();
    match rest.first() {
        Some(b'#') => false,
        _ => is_blank_or_comment(rest),
    }
}

/// Whether the lines from `from` to `to` are blank or comments.
pub(crate) fn are_blank_or_comments(text: &[u8], from: usize, to: usize) -> bool {
    let lines = text.get(from..to).unwrap_or_default();
    lines.split(|byte| *byte == b'\n').all(is_blank_or_comment)
}

/// Returns the start of the line break that precedes the line at `start`; `start` itself for the first
/// line.
pub(crate) fn preceding_break(text: &[u8], start: usize) -> usize {
    let before = text.get(..start).unwrap_or_default();
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    before.strip_suffix(b"\r").unwrap_or(before).len()
}

/// Whether the first line of `text` ends with CRLF.
pub(crate) fn is_crlf(text: &[u8]) -> bool {
    text.get(..end(text, 0))
        .is_some_and(|line| line.ends_with(b"\r\n"))
}
