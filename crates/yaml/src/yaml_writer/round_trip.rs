//! Round trip of `sigs.k8s.io/yaml`: it converts a value to JSON and parses that as YAML before go-yaml v2
//! writes it.

use std::borrow::Cow;

use mainstay_gostd::float::format_float;
use mainstay_gostd::utf8::to_string_lossy;

use crate::float::float_to_json;
use crate::{Error, Position, Problem, json_writer};

/// Maximum length in characters of a key's JSON form that go-yaml parses as a key.
const MAX_KEY_LEN: usize = 1024;

/// Returns the string after the round trip, or the error of go-yaml's parser.
pub(super) fn read_back(bytes: &[u8], key: bool) -> Result<Cow<'_, str>, Error> {
    // In JSON, a character takes at most six characters.
    let short = bytes.len() * 6 + 2 <= MAX_KEY_LEN;
    if (short || !key) && is_plain_ascii(bytes) {
        return Ok(std::str::from_utf8(bytes).map_or(Cow::Borrowed(""), Cow::Borrowed));
    }
    let text = to_string_lossy(bytes);
    if text.chars().any(is_unreadable) {
        return Err(syntax_error("control characters are not allowed"));
    }
    if key && (text.contains(NEXT_LINE) || (!short && json_len(&text) > MAX_KEY_LEN)) {
        return Err(syntax_error("did not find expected ',' or '}'"));
    }
    if text.contains(NEXT_LINE) {
        fold_lines(&text).map(Cow::Owned)
    } else {
        Ok(text)
    }
}

/// The only line break that JSON does not escape.
const NEXT_LINE: char = '\u{85}';

fn json_len(text: &str) -> usize {
    let mut quoted = String::new();
    json_writer::push_quoted(&mut quoted, text.as_bytes(), true);
    quoted.chars().count()
}

/// Folds line breaks as in double quotes: one becomes a space, n become n - 1, and spaces around them are
/// removed.
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
            return Err(syntax_error("found unexpected document indicator"));
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

fn is_plain_ascii(text: &[u8]) -> bool {
    text.is_ascii() && !text.contains(&0x7F)
}

/// Whether JSON does not escape `character` although YAML rejects it.
fn is_unreadable(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

fn syntax_error(problem: &'static str) -> Error {
    Problem::Syntax {
        problem: problem.into(),
        line: 0,
    }
    .at(Position::default())
}

/// Formats a finite float after the round trip. JSON digits that form an integer are parsed as an integer.
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

/// Encodes `bytes` as base64 in lines of 70 characters, as go-yaml writes bytes that are not UTF-8.
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
