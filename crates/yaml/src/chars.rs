//! Character classes of libyaml, on UTF-8 bytes.

/// Ends a run of plain characters, or needs a closer check.
const PLAIN: u8 = 1;
/// Ends such a run inside brackets.
const FLOW: u8 = 2;
/// Ends a run between double quotes, or needs a closer check.
const QUOTED: u8 = 4;
/// Never prevents plain style, except as the first character.
const PLAIN_SAFE: u8 = 8;
/// A single-byte character that go-yaml's reader accepts.
const READABLE: u8 = 16;

/// Needs a closer check between quotes; blanks do not.
const QUOTED_SPECIAL: u8 = 32;

static CLASSES: [u8; 256] = classes();

#[allow(clippy::indexing_slicing)] // Evaluated at compile time.
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let class = byte as u8;
        let mut bits = 0;
        if matches!(class, b' ' | b'\t' | b'\n' | b'\r' | b':' | 0xC2 | 0xE2) {
            bits |= PLAIN;
        }
        if matches!(class, b',' | b'?' | b'[' | b']' | b'{' | b'}') {
            bits |= FLOW;
        }
        if class <= b' ' || matches!(class, b'"' | b'\'' | b'\\' | 0xC2 | 0xE2) {
            bits |= QUOTED;
        }
        if matches!(class, b'\n' | b'\r' | 0 | b'\\' | 0xC2 | 0xE2) {
            bits |= QUOTED_SPECIAL;
        }
        if class > b' ' && class < 0x7F && class != b':' && class != b'#' {
            bits |= PLAIN_SAFE;
        }
        if matches!(class, 0x20..=0x7E | b'\n' | b'\t' | b'\r') {
            bits |= READABLE;
        }
        table[byte] = bits;
        byte += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Whether `byte` is a character by itself that a text may contain.
#[inline]
pub(crate) fn is_readable(byte: u8) -> bool {
    class(byte) & READABLE != 0
}

/// Returns the number of readable bytes at the start of `text`, in whole blocks. Without an early exit a
/// block is a few instructions.
pub(crate) fn readable_blocks(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<64>();
    let good = |byte: u8| (0x20..=0x7E).contains(&byte) | matches!(byte, b'\n' | b'\t' | b'\r');
    let all_good = |block: &&[u8; 64]| block.iter().fold(true, |all, byte| all & good(*byte));
    64 * blocks.iter().take_while(all_good).count()
}

/// Whether a plain scalar may end at `byte`.
#[inline]
pub(crate) fn may_end_plain(byte: u8, flow: bool) -> bool {
    class(byte) & if flow { PLAIN | FLOW } else { PLAIN } != 0
}

/// Whether `byte` may have a meaning between quotes.
#[inline]
pub(crate) fn may_end_quoted(byte: u8) -> bool {
    class(byte) & QUOTED != 0
}

/// Whether `byte` needs a closer check between quotes, other than the quote itself.
#[inline]
pub(crate) fn is_special_in_quotes(byte: u8) -> bool {
    class(byte) & QUOTED_SPECIAL != 0
}

/// Whether `byte` may occur anywhere in a plain scalar except at its start.
#[inline]
pub(crate) fn is_plain_safe(byte: u8) -> bool {
    class(byte) & PLAIN_SAFE != 0
}

/// Returns the length of the character that starts with `byte`.
pub(crate) fn width(byte: u8) -> usize {
    match byte {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    }
}

/// Whether a line break starts at `at`: CR, LF, NEL, LS or PS.
pub(crate) fn is_break(text: &[u8], at: usize) -> bool {
    break_len(text, at) > 0
}

/// Returns the length of the line break at `at`, CR LF counting as one; 0 for none.
#[inline]
pub(crate) fn break_len(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'\n') => 1,
        Some(b'\r') => 1 + usize::from(text.get(at + 1) == Some(&b'\n')),
        Some(0xC2) if text.get(at + 1) == Some(&0x85) => 2,
        Some(0xE2) if is_separator(text, at) => 3,
        _ => 0,
    }
}

fn is_separator(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&0x80) && matches!(text.get(at + 2), Some(0xA8 | 0xA9))
}

/// Whether go-yaml writes the character at `at` unescaped. Its definition excludes everything beyond U+FFFF.
pub(crate) fn is_printable(text: &[u8], at: usize) -> bool {
    let next = |n: usize| text.get(at + n).copied().unwrap_or(0);
    match text.get(at) {
        Some(b'\n' | 0x20..=0x7E | 0xC3..=0xEC | 0xEE) => true,
        Some(0xC2) => next(1) >= 0xA0,
        Some(0xED) => next(1) < 0xA0,
        Some(0xEF) => {
            let byte_order_mark = next(1) == 0xBB && next(2) == 0xBF;
            let no_character = next(1) == 0xBF && next(2) >= 0xBE;
            !byte_order_mark && !no_character
        }
        _ => false,
    }
}
