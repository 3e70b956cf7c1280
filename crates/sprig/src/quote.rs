//! Go's quoted strings, for error texts: takes bytes, gives what `%q` prints. Knows nothing of flags or widths.

use std::fmt::Write as _;

/// What `strconv.Quote` gives.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_char(&mut out, c));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// What a Go string literal between backquotes looks like, or a quoted string where that is impossible.
pub(crate) fn backquote(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(fits_backquotes) => format!("`{text}`"),
        _ => quote(bytes),
    }
}

/// The text, with one U+FFFD for each byte that is not UTF-8, as Go counts them.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    let chunks = bytes.utf8_chunks();
    chunks
        .flat_map(|chunk| {
            chunk
                .valid()
                .chars()
                .chain(chunk.invalid().iter().map(|_| '\u{fffd}'))
        })
        .collect()
}

fn fits_backquotes(c: char) -> bool {
    c != '\u{feff}' && c != '`' && c != '\u{7f}' && (c >= ' ' || c == '\t')
}

fn push_char(out: &mut String, c: char) {
    match c {
        '"' | '\\' => {
            out.push('\\');
            out.push(c);
        }
        ' '..='~' => out.push(c),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if is_printable(c) => out.push(c),
        '\0'..='\x7f' => {
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        }
        '\u{80}'..='\u{ffff}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        _ => {
            let _ = write!(out, "\\U{:08x}", u32::from(c));
        }
    }
}

/// Rust escapes a leading combining mark that Go prints, so the question is asked of the second of two characters.
fn is_printable(c: char) -> bool {
    c > '\x7f' && !c.is_whitespace() && ['a', c].iter().collect::<String>().escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go() {
        assert_eq!(quote(b"a\"\\\n\x01\x7f\xff"), r#""a\"\\\n\x01\x7f\xff""#);
        assert_eq!(
            quote("é\u{301}\u{a0}\u{e000}".as_bytes()),
            "\"é\u{301}\\u00a0\\ue000\""
        );
        assert_eq!(backquote(b"a("), "`a(`");
        assert_eq!(backquote(b"a`"), "\"a`\"");
    }
}
