//! Characters as Go sees them: takes bytes, gives runes, with U+FFFD for each byte that is no UTF-8; simple case mappings
//! and categories of the Unicode version Go was built with, which is not the one of Rust's standard library.

// Ranges are written as Go's own tables print them.
#[rustfmt::skip]
#[allow(clippy::unreadable_literal)]
mod tables;

use tables::{ALTERNATE, CASES};

/// What decoding gives for a byte that is no UTF-8.
pub(crate) const ERROR: char = char::REPLACEMENT_CHARACTER;

/// The first rune and its length in bytes; an invalid byte is [`ERROR`], one byte long.
pub(crate) fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let &first = bytes.first()?;
    let len = match first {
        0..=0x7F => return Some((char::from(first), 1)),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Some((ERROR, 1)),
    };
    let text = bytes.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    Some(
        text.and_then(|text| text.chars().next())
            .map_or((ERROR, 1), |rune| (rune, len)),
    )
}

/// The last rune and its length in bytes.
pub(crate) fn decode_last(bytes: &[u8]) -> Option<(char, usize)> {
    let last = *bytes.last()?;
    if last < 0x80 {
        return Some((char::from(last), 1));
    }
    let tails = (2..=4).filter_map(|len| bytes.len().checked_sub(len).map(|start| (start, len)));
    let mut found = tails.filter_map(|(start, len)| {
        let (rune, size) = decode(bytes.get(start..)?)?;
        (size == len).then_some((rune, len))
    });
    Some(found.next().unwrap_or((ERROR, 1)))
}

/// The runes of `bytes`, each with its own bytes.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = (char, &[u8])> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let (rune, len) = decode(left)?;
        let (own, rest) = left.split_at_checked(len)?;
        left = rest;
        Some((rune, own))
    })
}

/// Adds `rune` to `out`.
pub(crate) fn push(out: &mut Vec<u8>, rune: char) {
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Each rune of `bytes` through `change`; what was no UTF-8 comes out as U+FFFD.
pub(crate) fn map(bytes: &[u8], mut change: impl FnMut(char) -> char) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (rune, _) in runes(bytes) {
        push(&mut out, change(rune));
    }
    out
}

pub(crate) fn to_upper(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_uppercase()
    } else {
        to_case(rune, 0)
    }
}

pub(crate) fn to_lower(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_lowercase()
    } else {
        to_case(rune, 1)
    }
}

pub(crate) fn to_title(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_uppercase()
    } else {
        to_case(rune, 2)
    }
}

fn to_case(rune: char, case: u32) -> char {
    let code = rune as u32;
    let row = CASES.binary_search_by(|&(first, last, _)| place(first, last, code));
    let Some(&(first, _, deltas)) = row.ok().and_then(|row| CASES.get(row)) else {
        return rune;
    };
    let Some(&delta) = deltas.get(case as usize) else {
        return rune;
    };
    let changed = if delta == ALTERNATE {
        first + ((code - first) & !1 | case & 1)
    } else {
        code.wrapping_add_signed(delta)
    };
    char::from_u32(changed).unwrap_or(rune)
}

fn place(first: u32, last: u32, code: u32) -> std::cmp::Ordering {
    if last < code {
        std::cmp::Ordering::Less
    } else if first > code {
        std::cmp::Ordering::Greater
    } else {
        std::cmp::Ordering::Equal
    }
}

fn is_in(table: &[(u32, u32, u32)], rune: char) -> bool {
    let code = rune as u32;
    let row = table
        .binary_search_by(|&(first, last, _)| place(first, last, code))
        .ok();
    row.and_then(|row| table.get(row))
        .is_some_and(|&(first, _, step)| (code - first).is_multiple_of(step))
}

pub(crate) fn is_upper(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_uppercase()
    } else {
        is_in(tables::UPPER, rune)
    }
}

pub(crate) fn is_lower(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_lowercase()
    } else {
        is_in(tables::LOWER, rune)
    }
}

pub(crate) fn is_title(rune: char) -> bool {
    is_in(tables::TITLE, rune)
}

pub(crate) fn is_letter(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_alphabetic()
    } else {
        is_in(tables::LETTER, rune)
    }
}

pub(crate) fn is_digit(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_digit()
    } else {
        is_in(tables::DIGIT, rune)
    }
}

pub(crate) fn is_number(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_digit()
    } else {
        is_in(tables::NUMBER, rune)
    }
}

pub(crate) fn is_punct(rune: char) -> bool {
    is_in(tables::PUNCT, rune)
}

pub(crate) fn is_space(rune: char) -> bool {
    match rune {
        '\t'..='\r' | ' ' => true,
        _ if rune.is_ascii() => false,
        _ => is_in(tables::SPACE, rune),
    }
}
