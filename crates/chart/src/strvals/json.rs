//! Parses the first JSON value of a text, as Go's streaming decoder does.

use mainstay_yaml::{Error, Numbers, Value, parse_json};

use crate::budget::budget;

/// Returns the first value of `text` and its length in bytes, including leading blanks.
pub(super) fn first_value(text: &str) -> Result<(Value, usize), Error> {
    let body = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let blanks = text.len() - body.len();
    let length = extent(body.as_bytes());
    let first = body.get(..length).unwrap_or(body);
    let value = parse_json(first, Numbers::Float, &budget())?;
    Ok((value, blanks + length))
}

/// Returns the length of the value if it is well-formed, which the parser checks.
fn extent(body: &[u8]) -> usize {
    match body.first() {
        Some(b'{' | b'[') => bracketed(body),
        Some(b'"') => string(body),
        Some(b'-' | b'0'..=b'9') => number(body),
        Some(b't' | b'n') => 4.min(body.len()),
        Some(b'f') => 5.min(body.len()),
        _ => body.len(),
    }
}

fn bracketed(body: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => {
                at += string(body.get(at..).unwrap_or_default());
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

fn string(body: &[u8]) -> usize {
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

/// Returns the length of the longest prefix that is a number: `01` is `0` followed by another token.
fn number(body: &[u8]) -> usize {
    let sign = usize::from(body.first() == Some(&b'-'));
    let whole = match body.get(sign) {
        Some(b'0') => 1,
        _ => digits(body, sign),
    };
    let mut at = sign + whole;
    if body.get(at) == Some(&b'.') {
        at += 1 + digits(body, at + 1);
    }
    if matches!(body.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(body.get(at + 1), Some(b'+' | b'-')));
        at += 1 + sign + digits(body, at + 1 + sign);
    }
    at.min(body.len())
}

fn digits(body: &[u8], from: usize) -> usize {
    body.iter()
        .skip(from)
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}
