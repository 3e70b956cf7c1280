//! The classes of characters libyaml knows: takes UTF-8 bytes and a place, gives yes or no.

/// The length of the character that starts with `byte`.
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

/// The length of the line break at `at`, CR LF counting as one; 0 for none.
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

/// Whether go-yaml writes the character at `at` as it is. Its idea of this leaves out everything beyond U+FFFF.
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
