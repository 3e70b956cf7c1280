//! Start, end and indentation of the line around a byte.

use memchr::{memchr, memrchr};

use crate::split::is_blank_or_comment;

/// Where the line of the byte at `at` starts.
pub(crate) fn start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    memrchr(b'\n', before).map_or(0, |found| found + 1)
}

/// Just behind the line break of the line of the byte at `at`.
pub(crate) fn end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |found| at + found + 1)
}

/// The line of the byte at `at`, its break included.
pub(crate) fn line(text: &[u8], at: usize) -> &[u8] {
    text.get(start(text, at)..end(text, at)).unwrap_or_default()
}

/// How many spaces stand before the byte at `at`, if nothing else does.
pub(crate) fn indent(text: &[u8], at: usize) -> Option<usize> {
    // From the back, so that a line without end costs nothing.
    let before = text.get(..at)?;
    let spaces = before.iter().rev().take_while(|byte| **byte == b' ').count();
    matches!(before.get(..at - spaces)?.last(), None | Some(b'\n')).then_some(spaces)
}

/// `text` behind its leading blanks.
pub(crate) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| b" \t".contains(byte)).count();
    text.get(blanks..).unwrap_or_default()
}

/// Where the line of the byte at `at` starts, if nothing but blanks stands before it.
pub(crate) fn own_start(text: &[u8], at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let blanks = before
        .iter()
        .rev()
        .take_while(|byte| b" \t".contains(byte))
        .count();
    let start = at - blanks;
    matches!(before.get(..start)?.last(), None | Some(b'\n')).then_some(start)
}

/// Whether nothing or a comment follows the byte at `at` on its line.
pub(crate) fn nothing_follows(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..end(text, at)).unwrap_or_default();
    match rest.first() {
        Some(b'#') => false,
        _ => is_blank_or_comment(rest),
    }
}

/// Whether the lines from `from` to `to` say nothing.
pub(crate) fn silent(text: &[u8], from: usize, to: usize) -> bool {
    let lines = text.get(from..to).unwrap_or_default();
    lines.split(|byte| *byte == b'\n').all(is_blank_or_comment)
}

/// The line break before the line that starts at `start`, as its first byte; `start` itself for the first
/// line.
pub(crate) fn before_break(text: &[u8], start: usize) -> usize {
    let before = text.get(..start).unwrap_or_default();
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    before.strip_suffix(b"\r").unwrap_or(before).len()
}

/// Whether the first line of `text` that ends, ends in CRLF.
pub(crate) fn is_crlf(text: &[u8]) -> bool {
    text.get(..end(text, 0))
        .is_some_and(|line| line.ends_with(b"\r\n"))
}
