//! Character classes of libyaml, evaluated on UTF-8 bytes.

/// Class of bytes that end a run of plain characters or need a closer check.
const PLAIN: u8 = 1;
/// Class of bytes that end a run of plain characters inside brackets.
const FLOW: u8 = 2;
/// Class of bytes that end a run between double quotes or need a closer check.
const QUOTED: u8 = 4;
/// Class of bytes that never prevent plain style, except as the first character.
const PLAIN_SAFE: u8 = 8;
/// Class of single-byte characters that go-yaml's reader accepts.
const READABLE: u8 = 16;

/// Class of bytes that need a closer check between quotes. Blanks are not included.
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

/// Whether `byte` is a complete character that a text may contain.
#[inline]
pub(crate) fn is_readable(byte: u8) -> bool {
    class(byte) & READABLE != 0
}

/// Returns the number of readable bytes at the start of `text`, in whole blocks. A block is checked without
/// an early exit, so that it compiles to a few instructions.
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

/// Whether `byte` may have a special meaning between quotes.
#[inline]
pub(crate) fn may_end_quoted(byte: u8) -> bool {
    class(byte) & QUOTED != 0
}

/// Whether `byte` needs a closer check between quotes. Does not include the quote itself.
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

/// Whether a line break starts at offset `at`: CR, LF, NEL, LS or PS.
pub(crate) fn is_break(text: &[u8], at: usize) -> bool {
    break_len(text, at) > 0
}

/// Returns the length of the line break at offset `at`, or 0 if there is none. CR LF is one line break.
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

/// Whether go-yaml writes the character at `at` unescaped. Its definition excludes all characters beyond
/// U+FFFF.
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
