//! Go string and character literals, both ways: takes bytes, gives them quoted; takes a literal, gives its bytes.

use std::borrow::Cow;

use crate::unicode::is_print;
use crate::utf8::{self, RUNE_ERROR};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A literal that Go's `strconv` would call "invalid syntax".
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLiteral;

/// How a literal is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Whatever prints.
    Printable,
    /// ASCII only.
    Ascii,
}

/// `text` as a double-quoted Go string.
pub(crate) fn quote(text: &[u8], alphabet: Alphabet) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    if text
        .iter()
        .all(|&byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
    {
        out.extend_from_slice(text);
        out.push(b'"');
        return out;
    }
    for (start, rune, width) in utf8::runes(text) {
        if rune == RUNE_ERROR && width == 1 {
            out.extend_from_slice(b"\\x");
            push_hex(&mut out, u32::from(text.get(start).copied().unwrap_or(0)), 2);
        } else {
            push_escaped(&mut out, rune, b'"', alphabet);
        }
    }
    out.push(b'"');
    out
}

/// `text` as a double-quoted Go string, for messages.
pub(crate) fn quoted(text: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(&quote(text.as_ref(), Alphabet::Printable)).into_owned()
}

/// `rune` as a Go character literal.
pub(crate) fn quote_rune(rune: u32, alphabet: Alphabet) -> Vec<u8> {
    let rune = char::from_u32(rune).map_or(RUNE_ERROR, |c| c as u32);
    let mut out = vec![b'\''];
    push_escaped(&mut out, rune, b'\'', alphabet);
    out.push(b'\'');
    out
}

fn push_escaped(out: &mut Vec<u8>, rune: u32, quote: u8, alphabet: Alphabet) {
    if rune == u32::from(quote) || rune == u32::from(b'\\') {
        out.push(b'\\');
        return utf8::push(out, rune);
    }
    if is_print(rune) && (alphabet == Alphabet::Printable || rune < 0x80) {
        return utf8::push(out, rune);
    }
    let short = match rune {
        7 => b'a',
        8 => b'b',
        9 => b't',
        10 => b'n',
        11 => b'v',
        12 => b'f',
        13 => b'r',
        _ => 0,
    };
    out.push(b'\\');
    match rune {
        _ if short != 0 => out.push(short),
        0..0x20 | 0x7f => push_code(out, b'x', rune, 2),
        0x1_0000.. => push_code(out, b'U', rune, 8),
        _ => push_code(out, b'u', rune, 4),
    }
}

fn push_code(out: &mut Vec<u8>, letter: u8, rune: u32, digits: u32) {
    out.push(letter);
    push_hex(out, rune, digits);
}

fn push_hex(out: &mut Vec<u8>, value: u32, digits: u32) {
    for place in (0..digits).rev() {
        out.push(
            HEX.get((value >> (4 * place)) as usize & 15)
                .copied()
                .unwrap_or(b'0'),
        );
    }
}

/// Whether `text` can stand between backquotes unchanged.
pub(crate) fn can_backquote(text: &[u8]) -> bool {
    utf8::runes(text).all(|(_, rune, width)| match rune {
        0xfeff => false,
        RUNE_ERROR if width == 1 => false,
        _ if width > 1 => true,
        0x09 => true,
        0x00..0x20 | 0x60 | 0x7f => false,
        _ => true,
    })
}

/// What a double-quoted or backquoted literal stands for.
pub(crate) fn unquote(literal: &[u8]) -> Result<Cow<'_, [u8]>, BadLiteral> {
    let [quote, inner @ .., last] = literal else {
        return Err(BadLiteral);
    };
    if quote != last {
        return Err(BadLiteral);
    }
    match quote {
        b'`' if inner.contains(&b'`') => Err(BadLiteral),
        b'`' if !inner.contains(&b'\r') => Ok(Cow::Borrowed(inner)),
        b'`' => Ok(inner.iter().copied().filter(|&byte| byte != b'\r').collect()),
        b'"' => unescape(inner),
        _ => Err(BadLiteral),
    }
}

fn unescape(mut inner: &[u8]) -> Result<Cow<'_, [u8]>, BadLiteral> {
    let is_plain = |&byte: &u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if inner.iter().all(is_plain) {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    while let Some(&first) = inner.first() {
        if first == b'\n' {
            return Err(BadLiteral);
        }
        let char = unquote_char(inner, b'"')?;
        match u8::try_from(char.value) {
            Ok(byte) if byte < 0x80 || !char.multibyte => out.push(byte),
            _ => utf8::push(&mut out, char.value),
        }
        inner = char.tail;
    }
    Ok(Cow::Owned(out))
}

/// One character of a literal.
pub(crate) struct Unquoted<'a> {
    /// The code point or byte.
    pub(crate) value: u32,
    /// Whether it is a code point that is written as UTF-8.
    pub(crate) multibyte: bool,
    /// What follows it.
    pub(crate) tail: &'a [u8],
}

/// The first character of what stands inside a literal delimited by `quote`.
pub(crate) fn unquote_char(text: &[u8], quote: u8) -> Result<Unquoted<'_>, BadLiteral> {
    match text {
        [] | [b'\\'] => Err(BadLiteral),
        [first, ..] if *first == quote => Err(BadLiteral),
        [first, ..] if *first >= 0x80 => {
            let (value, width) = utf8::decode(text);
            Ok(Unquoted {
                value,
                multibyte: true,
                tail: text.get(width..).unwrap_or_default(),
            })
        }
        [b'\\', letter, tail @ ..] => escape(*letter, tail, quote),
        [first, tail @ ..] => Ok(Unquoted {
            value: u32::from(*first),
            multibyte: false,
            tail,
        }),
    }
}

fn escape(letter: u8, tail: &[u8], quote: u8) -> Result<Unquoted<'_>, BadLiteral> {
    let value = match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'\\' => u32::from(b'\\'),
        b'\'' | b'"' if letter == quote => u32::from(letter),
        b'x' => return coded(tail, 2, 16, 0, false),
        b'u' => return coded(tail, 4, 16, 0, true),
        b'U' => return coded(tail, 8, 16, 0, true),
        b'0'..=b'7' => return coded(tail, 2, 8, u32::from(letter - b'0'), false),
        _ => return Err(BadLiteral),
    };
    Ok(Unquoted {
        value,
        multibyte: false,
        tail,
    })
}

fn coded(
    tail: &[u8],
    digits: usize,
    radix: u32,
    first: u32,
    multibyte: bool,
) -> Result<Unquoted<'_>, BadLiteral> {
    let (code, tail) = tail.split_at_checked(digits).ok_or(BadLiteral)?;
    let mut value = first;
    for &byte in code {
        let digit = char::from(byte).to_digit(radix).ok_or(BadLiteral)?;
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    let valid = if multibyte {
        char::from_u32(value).is_some()
    } else {
        value <= 255
    };
    if valid {
        Ok(Unquoted {
            value,
            multibyte,
            tail,
        })
    } else {
        Err(BadLiteral)
    }
}
