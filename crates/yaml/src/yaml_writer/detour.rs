//! What `sigs.k8s.io/yaml` does to a value before go-yaml v2 writes it: it goes through JSON, read back as YAML.

use std::borrow::Cow;

use mainstay_gostd::float::format_float;
use mainstay_gostd::utf8::to_string_lossy;

use crate::float::float_to_json;
use crate::{Error, Position, Problem, json_writer};

/// The longest JSON form of a key that go-yaml still takes for one, in characters.
const LONGEST_KEY: usize = 1024;

/// The string that is left after the detour, or why go-yaml cannot read it back.
pub(super) fn read_back(bytes: &[u8], key: bool) -> Result<Cow<'_, str>, Error> {
    // No character takes more than six in JSON.
    let short = bytes.len() * 6 + 2 <= LONGEST_KEY;
    if (short || !key) && plain_ascii(bytes) {
        return Ok(std::str::from_utf8(bytes).map_or(Cow::Borrowed(""), Cow::Borrowed));
    }
    let text = to_string_lossy(bytes);
    if text.chars().any(is_unreadable) {
        return Err(syntax("control characters are not allowed"));
    }
    if key && (text.contains(NEXT_LINE) || (!short && json_len(&text) > LONGEST_KEY)) {
        return Err(syntax("did not find expected ',' or '}'"));
    }
    if text.contains(NEXT_LINE) {
        fold_lines(&text).map(Cow::Owned)
    } else {
        Ok(text)
    }
}

/// The one line break that JSON does not escape.
const NEXT_LINE: char = '\u{85}';

fn json_len(text: &str) -> usize {
    let mut quoted = String::new();
    json_writer::push_quoted(&mut quoted, text.as_bytes(), true);
    quoted.chars().count()
}

/// What double quotes do to line breaks: one becomes a space, n become n - 1, and the spaces around them go.
fn fold_lines(text: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((line, after)) = rest.split_once(NEXT_LINE) {
        out.push_str(line.trim_end_matches(' '));
        let next = after.trim_start_matches([' ', NEXT_LINE]);
        let skipped = after.strip_suffix(next).unwrap_or_default();
        let breaks = skipped.matches(NEXT_LINE).count();
        if breaks == 0 {
            out.push(' ');
        }
        out.extend(std::iter::repeat_n('\n', breaks));
        if !skipped.ends_with(' ') && starts_document(next) {
            return Err(syntax("found unexpected document indicator"));
        }
        rest = next;
    }
    out.push_str(rest);
    Ok(out)
}

fn starts_document(line: &str) -> bool {
    let after = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    after.is_some_and(|after| after.starts_with([' ', NEXT_LINE]))
}

fn plain_ascii(text: &[u8]) -> bool {
    text.is_ascii() && !text.contains(&0x7F)
}

/// Characters that JSON keeps and YAML refuses.
fn is_unreadable(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

fn syntax(problem: &'static str) -> Error {
    Problem::Syntax {
        problem: problem.into(),
        line: 0,
    }
    .at(Position::default())
}

/// A finite float: JSON's digits read as a whole number where they are one.
pub(super) fn float_read_back(value: f64) -> String {
    let text = float_to_json(value);
    if let Ok(whole) = text.parse::<i64>() {
        return whole.to_string();
    }
    if text.parse::<u64>().is_ok() {
        return text;
    }
    format_float(value, 'g', None)
}

/// Base64 in lines of 70, as go-yaml writes bytes that are no UTF-8.
pub(super) fn base64_lines(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const LINE: usize = 70;
    let digit = |bits: u32| char::from(ALPHABET.get((bits & 63) as usize).copied().unwrap_or(b'A'));
    let mut encoded = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        encoded.push(digit(bits >> 18));
        encoded.push(digit(bits >> 12));
        encoded.push(if chunk.len() > 1 { digit(bits >> 6) } else { '=' });
        encoded.push(if chunk.len() > 2 { digit(bits) } else { '=' });
    }
    if encoded.len() < LINE {
        return encoded;
    }
    let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    for (at, character) in encoded.char_indices() {
        out.push(character);
        if (at + 1) % LINE == 0 {
            out.push('\n');
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}
