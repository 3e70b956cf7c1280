//! How Go writes strings in messages: takes text, gives what `%q` prints.

use std::fmt::Write;

/// `%q`: double quotes, Go's escapes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        escape(c, &mut out);
    }
    out.push('"');
    out
}

fn escape(c: char, out: &mut String) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        _ if is_print(c) => return out.push(c),
        _ => "",
    };
    out.push_str(short);
    if short.is_empty() {
        // Writing to a string cannot fail.
        let _ = match u32::from(c) {
            code @ ..=0x7f => write!(out, "\\x{code:02x}"),
            code @ ..=0xffff => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    }
}

/// Go's `unicode.IsPrint`: everything but controls, formats, separators other than the space, and unassigned codes.
/// The standard library knows that set only through its own escaping, which spares a character that is not first.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let mut text = String::with_capacity(8);
    text.push('a');
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        let check = |text: &str, expected: &str| assert_eq!(quote(text), expected);
        check("a\"b\\", r#""a\"b\\""#);
        check("\n\t\x01\x7f", r#""\n\t\x01\x7f""#);
        check(
            "é\u{301}日\u{200b}\u{a0}\u{10ffff}",
            "\"é\u{301}日\\u200b\\u00a0\\U0010ffff\"",
        );
    }
}
