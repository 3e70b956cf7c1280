//! Runes as Go decodes them: takes bytes, gives code points, with U+FFFD of width one for what is not UTF-8.

/// What stands for a byte that is not UTF-8.
pub(crate) const RUNE_ERROR: u32 = 0xfffd;

/// The largest code point.
pub(crate) const MAX_RUNE: u32 = 0x0010_ffff;

/// The first rune and its width; `(RUNE_ERROR, 0)` at the end.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> (u32, usize) {
    match bytes.first() {
        None => (RUNE_ERROR, 0),
        Some(&first) if first < 0x80 => (u32::from(first), 1),
        Some(_) => decode_multibyte(bytes),
    }
}

fn decode_multibyte(bytes: &[u8]) -> (u32, usize) {
    let head = bytes.get(..bytes.len().min(4)).unwrap_or(bytes);
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => head
            .get(..error.valid_up_to())
            .and_then(|head| std::str::from_utf8(head).ok())
            .unwrap_or(""),
    };
    valid
        .chars()
        .next()
        .map_or((RUNE_ERROR, 1), |c| (c as u32, c.len_utf8()))
}

/// The runes with their positions and widths.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, u32, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (rune, width) = decode(bytes.get(at..)?);
        let start = at;
        at += width;
        (width > 0).then_some((start, rune, width))
    })
}

/// How many runes there are.
pub(crate) fn count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        bytes.len()
    } else {
        runes(bytes).count()
    }
}

/// Appends `rune`, or U+FFFD where it is none.
pub(crate) fn push(out: &mut Vec<u8>, rune: u32) {
    let c = char::from_u32(rune).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
