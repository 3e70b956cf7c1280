//! Parsing of the first JSON value of a text, as in Go's streaming decoder.

use mainstay_yaml::{Error, Numbers, Value, parse_json};

use crate::budget::budget;

/// Parses the first value of `text`. Returns it with its length in bytes, including leading blanks.
pub(super) fn first_value(text: &str) -> Result<(Value, usize), Error> {
    let body = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let blanks = text.len() - body.len();
    let length = value_length(body.as_bytes());
    let first = body.get(..length).unwrap_or(body);
    let value = parse_json(first, Numbers::Float, &budget())?;
    Ok((value, blanks + length))
}

/// Returns the length of the first value, provided that it is well-formed. The parser checks that.
fn value_length(body: &[u8]) -> usize {
    match body.first() {
        Some(b'{' | b'[') => bracketed_length(body),
        Some(b'"') => string_length(body),
        Some(b'-' | b'0'..=b'9') => number_length(body),
        Some(b't' | b'n') => 4.min(body.len()),
        Some(b'f') => 5.min(body.len()),
        _ => body.len(),
    }
}

fn bracketed_length(body: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => {
                at += string_length(body.get(at..).unwrap_or_default());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(body: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = body.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    body.len()
}

/// Returns the length of the longest prefix that is a number. For example, `01` is `0` followed by another
/// token.
fn number_length(body: &[u8]) -> usize {
    let sign = usize::from(body.first() == Some(&b'-'));
    let whole = match body.get(sign) {
        Some(b'0') => 1,
        _ => skip_digits(body, sign),
    };
    let mut at = sign + whole;
    if body.get(at) == Some(&b'.') {
        at += 1 + skip_digits(body, at + 1);
    }
    if matches!(body.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(body.get(at + 1), Some(b'+' | b'-')));
        at += 1 + sign + skip_digits(body, at + 1 + sign);
    }
    at.min(body.len())
}

fn skip_digits(body: &[u8], from: usize) -> usize {
    body.iter()
        .skip(from)
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}
