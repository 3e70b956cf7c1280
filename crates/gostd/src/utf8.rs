//! Decoding of runes as in Go's `unicode/utf8`: each byte that is not part of valid UTF-8 is one U+FFFD.

use std::borrow::Cow;

/// The rune that replaces an invalid byte (`utf8.RuneError`).
pub const RUNE_ERROR: char = char::REPLACEMENT_CHARACTER;

/// Decodes the first rune. Returns it with its length in bytes; an invalid byte is [`RUNE_ERROR`] with
/// length one.
#[inline]
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let &first = bytes.first()?;
    if first < 0x80 {
        return Some((char::from(first), 1));
    }
    Some(decode_multibyte(bytes, first))
}

fn decode_multibyte(bytes: &[u8], first: u8) -> (char, usize) {
    let len = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return (RUNE_ERROR, 1),
    };
    let text = bytes.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| text.chars().next())
        .map_or((RUNE_ERROR, 1), |rune| (rune, len))
}

/// Decodes the last rune. Returns it with its length in bytes.
#[must_use]
pub fn decode_last(bytes: &[u8]) -> Option<(char, usize)> {
    let last = *bytes.last()?;
    if last < 0x80 {
        return Some((char::from(last), 1));
    }
    let tails = (2..=4).filter_map(|len| bytes.len().checked_sub(len).map(|start| (start, len)));
    let mut found = tails.filter_map(|(start, len)| {
        let (rune, size) = decode(bytes.get(start..)?)?;
        (size == len).then_some((rune, len))
    });
    Some(found.next().unwrap_or((RUNE_ERROR, 1)))
}

/// Iterates over the runes of `bytes`, each with the bytes that encode it.
pub fn runes(bytes: &[u8]) -> impl Iterator<Item = (char, &[u8])> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let (rune, len) = decode(left)?;
        let (own, rest) = left.split_at_checked(len)?;
        left = rest;
        Some((rune, own))
    })
}

/// Returns the number of runes in `bytes`.
#[must_use]
pub fn count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        bytes.len()
    } else {
        runes(bytes).count()
    }
}

/// Returns the longest prefix of `bytes` that has at most `limit` runes.
#[must_use]
pub fn prefix(bytes: &[u8], limit: usize) -> &[u8] {
    let len = runes(bytes).take(limit).map(|(_, own)| own.len()).sum();
    bytes.get(..len).unwrap_or(bytes)
}

/// Appends the encoding of `rune`, or of U+FFFD if it is not a valid code point.
pub fn push(out: &mut Vec<u8>, rune: impl Into<u32>) {
    let rune = char::from_u32(rune.into()).unwrap_or(RUNE_ERROR);
    out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Maps each rune of `bytes` through `change`. Invalid bytes become U+FFFD, as with Go's `strings.Map`.
#[must_use]
pub fn map(bytes: &[u8], mut change: impl FnMut(char) -> char) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (rune, _) in runes(bytes) {
        push(&mut out, change(rune));
    }
    out
}

/// Converts `bytes` to a string with one U+FFFD per invalid byte.
///
/// [`String::from_utf8_lossy`] differs: it replaces a truncated sequence with a single U+FFFD.
#[must_use]
pub fn to_string_lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => runes(bytes).map(|(rune, _)| rune).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_count_one_by_one() {
        assert_eq!(to_string_lossy(b"a\xE2\x82b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(to_string_lossy(b"\xED\xA0\x80"), "\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(count("日本\u{10ffff}".as_bytes()), 3);
    }

    #[test]
    fn the_last_rune_is_decoded_backwards() {
        assert_eq!(decode_last("a日".as_bytes()), Some(('日', 3)));
        assert_eq!(decode_last(b"a\x80"), Some((RUNE_ERROR, 1)));
        assert_eq!(decode_last(b""), None);
    }

    #[test]
    fn prefixes_end_at_rune_boundaries() {
        assert_eq!(prefix("日本語".as_bytes(), 2), "日本".as_bytes());
        assert_eq!(prefix(b"a\xFFb", 2), b"a\xFF");
        assert_eq!(prefix(b"ab", 5), b"ab");
    }
}
