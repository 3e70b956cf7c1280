//! The functions `html`, `js` and `urlquery`.

use mainstay_gostd::unicode::is_print;
use mainstay_gostd::url::{Component, escape};
use mainstay_gostd::utf8;

use crate::string::Str;

/// Escapes text for HTML.
pub(super) fn html(text: &[u8]) -> Str {
    let mut out = Vec::with_capacity(text.len() + 16);
    for &byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(byte),
        }
    }
    Str::from(out)
}

/// Escapes text for JavaScript.
pub(super) fn js(text: &[u8]) -> Str {
    let mut out = Vec::with_capacity(text.len() + 16);
    for (rune, own) in utf8::runes(text) {
        match u8::try_from(rune) {
            Ok(byte @ (b'\\' | b'\'' | b'"')) => out.extend_from_slice(&[b'\\', byte]),
            Ok(byte @ (b'<' | b'>' | b'&' | b'=' | 0..0x20)) => {
                out.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
            }
            Ok(byte) if byte < 0x80 => out.push(byte),
            _ if is_print(rune) => out.extend_from_slice(own),
            _ => out.extend_from_slice(format!("\\u{:04X}", u32::from(rune)).as_bytes()),
        }
    }
    Str::from(out)
}

/// Escapes text for the query of a URL.
pub(super) fn url_query(text: &[u8]) -> Str {
    Str::from(escape(text, Component::Query))
}
