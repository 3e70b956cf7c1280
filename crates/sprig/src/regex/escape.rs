//! Parsing of backslash escapes of single characters.

use super::cursor::Cursor;
use super::error::{Reason, RegexError};

/// Parses an escape. Returns its code point, which may be a surrogate: Go accepts it, but it matches
/// nothing.
pub(super) fn read_escape(at: &mut Cursor<'_>) -> Result<u32, RegexError> {
    let start = *at;
    at.skip(1);
    if at.is_empty() {
        return Err(Reason::TrailingBackslash.at(b""));
    }
    let found = match at.next()? {
        Some(c @ '0'..='7') => parse_octal(at, c),
        Some('x') => parse_hexadecimal(at)?,
        Some('a') => Some(7),
        Some('f') => Some(12),
        Some('n') => Some(10),
        Some('r') => Some(13),
        Some('t') => Some(9),
        Some('v') => Some(11),
        Some(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    found.ok_or_else(|| Reason::Escape.at(start.until(*at)))
}

/// Parses up to three octal digits. A single digit is an octal escape only if it is zero.
fn parse_octal(at: &mut Cursor<'_>, first: char) -> Option<u32> {
    let next = |at: &Cursor<'_>| at.peek().filter(|b| (b'0'..=b'7').contains(b));
    if first != '0' && next(at).is_none() {
        return None;
    }
    let mut value = u32::from(first) - u32::from('0');
    for _ in 1..3 {
        let Some(digit) = next(at) else { break };
        value = value * 8 + u32::from(digit - b'0');
        at.skip(1);
    }
    Some(value)
}

fn parse_hexadecimal(at: &mut Cursor<'_>) -> Result<Option<u32>, RegexError> {
    let Some(first) = at.next()? else { return Ok(None) };
    if first == '{' {
        return parse_braced(at);
    }
    let (high, low) = (first.to_digit(16), at.next()?.and_then(|c| c.to_digit(16)));
    Ok(high.zip(low).map(|(high, low)| high * 16 + low))
}

fn parse_braced(at: &mut Cursor<'_>) -> Result<Option<u32>, RegexError> {
    let mut value = None;
    loop {
        let Some(c) = at.next()? else { return Ok(None) };
        if c == '}' {
            return Ok(value);
        }
        let Some(digit) = c.to_digit(16) else {
            return Ok(None);
        };
        let next = value.unwrap_or(0) * 16 + digit;
        if next > u32::from(char::MAX) {
            return Ok(None);
        }
        value = Some(next);
    }
}
