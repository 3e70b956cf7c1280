//! Functions of Go's `strings` package on bytes, including invalid UTF-8: trimming, searching, replacing
//! and splitting.

use mainstay_gostd::unicode;
use mainstay_gostd::utf8;
use mainstay_template::{LimitExceeded, Meter};
use memchr::memmem;

/// Removes leading and trailing white space (`strings.TrimSpace`).
pub(crate) fn trim_space(text: &[u8]) -> &[u8] {
    trim_by(text, unicode::is_space)
}

/// Removes leading and trailing characters of `cutset` (`strings.Trim`).
pub(crate) fn trim<'a>(text: &'a [u8], cutset: &[u8]) -> &'a [u8] {
    // Go compares bytes if the whole set is ASCII. An invalid byte is then not in the set; the result is
    // the same here.
    let set: Vec<char> = utf8::runes(cutset).map(|(rune, _)| rune).collect();
    trim_by(text, |rune| set.contains(&rune))
}

fn trim_by(mut text: &[u8], inside: impl Fn(char) -> bool) -> &[u8] {
    while let Some((rune, len)) = utf8::decode(text) {
        if !inside(rune) {
            break;
        }
        text = text.get(len..).unwrap_or_default();
    }
    while let Some((rune, len)) = utf8::decode_last(text) {
        if !inside(rune) {
            break;
        }
        text = text.get(..text.len() - len).unwrap_or_default();
    }
    text
}

/// Replaces all occurrences of `old` with `new` (`strings.ReplaceAll`). An empty `old` matches before each
/// character and at the end.
pub(crate) fn replace_all(
    meter: &mut Meter,
    text: &[u8],
    old: &[u8],
    new: &[u8],
) -> Result<Vec<u8>, LimitExceeded> {
    if old.is_empty() {
        return interleave(meter, text, new);
    }
    let finder = memmem::Finder::new(old);
    let count = finder.find_iter(text).count();
    meter.consume_fuel(text.len() as u64 / 64)?;
    meter.reserve_string((text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len())))?;
    let mut out = Vec::with_capacity(text.len() - count * old.len() + count * new.len());
    let mut from = 0;
    for at in finder.find_iter(text) {
        out.extend_from_slice(text.get(from..at).unwrap_or_default());
        out.extend_from_slice(new);
        from = at + old.len();
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Ok(out)
}

fn interleave(meter: &mut Meter, text: &[u8], new: &[u8]) -> Result<Vec<u8>, LimitExceeded> {
    let count = utf8::runes(text).count() + 1;
    meter.reserve_string(text.len().saturating_add(count.saturating_mul(new.len())))?;
    let mut out = Vec::with_capacity(text.len() + count * new.len());
    for (_, own) in utf8::runes(text) {
        out.extend_from_slice(new);
        out.extend_from_slice(own);
    }
    out.extend_from_slice(new);
    Ok(out)
}

/// Splits `text` into at most `limit` parts (`strings.SplitN`). An empty separator splits between
/// characters.
pub(crate) fn split<'a>(text: &'a [u8], separator: &[u8], limit: Option<usize>) -> Vec<&'a [u8]> {
    let limit = limit.unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut left = text;
    let finder = memmem::Finder::new(separator);
    while parts.len() + 1 < limit {
        let cut = if separator.is_empty() {
            next_rune(left)
        } else {
            finder.find(left)
        };
        let Some((part, rest)) = cut.and_then(|at| left.split_at_checked(at)) else {
            break;
        };
        parts.push(part);
        left = rest.get(separator.len()..).unwrap_or_default();
    }
    if !(separator.is_empty() && left.is_empty()) {
        parts.push(left);
    }
    parts
}

/// Returns the number of parts that [`split`] returns without a limit.
pub(crate) fn count(text: &[u8], separator: &[u8]) -> usize {
    match separator {
        [] => utf8::runes(text).count(),
        [byte] => memchr::memchr_iter(*byte, text).count() + 1,
        longer => memmem::find_iter(text, longer).count() + 1,
    }
}

/// Returns the byte offset of the second character, or `None` if there is only one.
fn next_rune(text: &[u8]) -> Option<usize> {
    utf8::decode(text)
        .map(|(_, len)| len)
        .filter(|&len| len < text.len())
}

/// Whether `text` contains `needle`.
pub(crate) fn contains(text: &[u8], needle: &[u8]) -> bool {
    memmem::find(text, needle).is_some()
}
