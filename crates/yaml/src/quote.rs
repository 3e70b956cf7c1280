//! Go's quoted strings: takes bytes, gives what `strconv.Quote` gives.

use std::fmt::Write as _;

/// Appends `text` in double quotes.
pub(crate) fn push_quoted(out: &mut String, text: &[u8]) {
    out.push('"');
    let mut rest = text;
    loop {
        let (valid, bad) = match std::str::from_utf8(rest) {
            Ok(_) => (rest, &[][..]),
            Err(error) => rest.split_at(error.valid_up_to()),
        };
        std::str::from_utf8(valid)
            .unwrap_or_default()
            .chars()
            .for_each(|c| push(out, c));
        let Some((byte, after)) = bad.split_first() else {
            break;
        };
        let _ = write!(out, "\\x{byte:02x}");
        rest = after;
    }
    out.push('"');
}

fn push(out: &mut String, character: char) {
    let short = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => {
            push_long(out, character);
            return;
        }
    };
    out.push_str(short);
}

fn push_long(out: &mut String, character: char) {
    let code = character as u32;
    let _ = match code {
        0x20..=0x7E => write!(out, "{character}"),
        0..=0x1F | 0x7F => write!(out, "\\x{code:02x}"),
        _ if is_printed(character) => write!(out, "{character}"),
        0x80..=0xFFFF => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Go's `strconv.IsPrint`, as near as the standard library's own escapes come to it.
fn is_printed(character: char) -> bool {
    let spaces = character.is_whitespace() || matches!(character, '\u{feff}' | '\u{ad}');
    !character.is_control() && !spaces && (character.escape_debug().count() == 1 || is_mark(character))
}

/// Combining marks are printed by Go and escaped by Rust.
fn is_mark(character: char) -> bool {
    matches!(character as u32, 0x300..=0x36F | 0x483..=0x489 | 0x591..=0x5BD | 0x610..=0x61A | 0x64B..=0x65F | 0x20D0..=0x20F0 | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F)
}
