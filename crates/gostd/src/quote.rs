//! Go string and character literals: the quoting and unquoting functions of `strconv`.

use std::borrow::Cow;

use crate::unicode::is_print;
use crate::utf8::{self, RUNE_ERROR};

/// A literal that `strconv` rejects as "invalid syntax".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid syntax")]
pub struct SyntaxError;

/// Characters that a quoted literal may contain unescaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Printable,
    Ascii,
}

/// Quotes `text` in double quotes (`strconv.Quote`, `%q`).
#[must_use]
pub fn quote(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    append_quote(&mut out, text);
    out
}

/// Appends `text` in double quotes (`strconv.AppendQuote`).
pub fn append_quote(out: &mut String, text: impl AsRef<[u8]>) {
    append_quoted(out, text.as_ref(), Charset::Printable);
}

/// Quotes `text` with escapes for everything that is not ASCII (`strconv.QuoteToASCII`, `%+q`).
#[must_use]
pub fn quote_to_ascii(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    append_quoted(&mut out, text.as_ref(), Charset::Ascii);
    out
}

/// Formats `rune` as a character literal (`strconv.QuoteRune`). An invalid code point is formatted as
/// U+FFFD.
#[must_use]
pub fn quote_rune(rune: impl Into<u32>) -> String {
    format_rune_literal(rune.into(), Charset::Printable)
}

/// Formats `rune` as a character literal in ASCII (`strconv.QuoteRuneToASCII`).
#[must_use]
pub fn quote_rune_to_ascii(rune: impl Into<u32>) -> String {
    format_rune_literal(rune.into(), Charset::Ascii)
}

fn format_rune_literal(rune: u32, charset: Charset) -> String {
    let mut out = String::from("'");
    push_escaped(
        &mut out,
        char::from_u32(rune).unwrap_or(RUNE_ERROR),
        '\'',
        charset,
    );
    out.push('\'');
    out
}

fn append_quoted(out: &mut String, text: &[u8], charset: Charset) {
    out.reserve(text.len() + 2);
    out.push('"');
    if let Ok(text) = std::str::from_utf8(text)
        && text.bytes().all(is_plain)
    {
        out.push_str(text);
    } else {
        for (rune, own) in utf8::runes(text) {
            match own {
                [byte] if *byte >= 0x80 => push_code(out, 'x', u32::from(*byte), 2),
                _ => push_escaped(out, rune, '"', charset),
            }
        }
    }
    out.push('"');
}

/// Whether `byte` needs no escape between double quotes.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn push_escaped(out: &mut String, rune: char, quote: char, charset: Charset) {
    if rune == quote || rune == '\\' {
        out.push('\\');
        return out.push(rune);
    }
    if is_print(rune) && (charset == Charset::Printable || rune.is_ascii()) {
        return out.push(rune);
    }
    match rune {
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        '\0'..' ' | '\x7f' => push_code(out, 'x', u32::from(rune), 2),
        '\u{1_0000}'.. => push_code(out, 'U', u32::from(rune), 8),
        _ => push_code(out, 'u', u32::from(rune), 4),
    }
}

fn push_code(out: &mut String, letter: char, value: u32, digits: u32) {
    out.push('\\');
    out.push(letter);
    let digit = |place: u32| char::from_digit(value >> (4 * place) & 15, 16).unwrap_or('0');
    out.extend((0..digits).rev().map(digit));
}

/// Whether `text` can be written between backquotes unchanged (`strconv.CanBackquote`).
#[must_use]
pub fn can_backquote(text: &[u8]) -> bool {
    utf8::runes(text).all(|(rune, own)| match rune {
        '\u{feff}' | '`' | '\x7f' => false,
        RUNE_ERROR => own.len() > 1,
        '\t' => true,
        _ => rune >= ' ',
    })
}

/// Quotes `text` in backquotes, or in double quotes where backquotes are impossible, as errors of
/// `regexp` do.
#[must_use]
pub fn backquote(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(raw) if can_backquote(text) => format!("`{raw}`"),
        _ => quote(text),
    }
}

/// Decodes a double-quoted or backquoted literal (`strconv.Unquote`).
pub fn unquote(literal: &[u8]) -> Result<Cow<'_, [u8]>, SyntaxError> {
    let [quote, inner @ .., last] = literal else {
        return Err(SyntaxError);
    };
    if quote != last {
        return Err(SyntaxError);
    }
    match quote {
        b'`' if inner.contains(&b'`') => Err(SyntaxError),
        b'`' if !inner.contains(&b'\r') => Ok(Cow::Borrowed(inner)),
        b'`' => Ok(inner.iter().copied().filter(|&byte| byte != b'\r').collect()),
        b'"' => unescape(inner),
        _ => Err(SyntaxError),
    }
}

fn unescape(mut inner: &[u8]) -> Result<Cow<'_, [u8]>, SyntaxError> {
    if inner.iter().copied().all(is_plain) {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    while let Some(&first) = inner.first() {
        if first == b'\n' {
            return Err(SyntaxError);
        }
        let char = unquote_char(inner, b'"')?;
        match u8::try_from(char.value) {
            Ok(byte) if byte < 0x80 || !char.multibyte => out.push(byte),
            _ => utf8::push(&mut out, char::from_u32(char.value).unwrap_or(RUNE_ERROR)),
        }
        inner = char.tail;
    }
    Ok(Cow::Owned(out))
}

/// First character of a literal's content, as returned by `strconv.UnquoteChar`.
#[derive(Debug)]
pub struct UnquotedChar<'a> {
    /// The code point or byte.
    pub value: u32,
    /// Whether the value is a code point that is encoded as UTF-8.
    pub multibyte: bool,
    /// The text after the character.
    pub tail: &'a [u8],
}

/// Decodes the first character of a literal's content delimited by `quote` (`strconv.UnquoteChar`).
pub fn unquote_char(text: &[u8], quote: u8) -> Result<UnquotedChar<'_>, SyntaxError> {
    match text {
        [] | [b'\\'] => Err(SyntaxError),
        [first, ..] if *first == quote => Err(SyntaxError),
        [first, ..] if *first >= 0x80 => {
            let (rune, width) = utf8::decode(text).ok_or(SyntaxError)?;
            Ok(UnquotedChar {
                value: u32::from(rune),
                multibyte: true,
                tail: text.get(width..).unwrap_or_default(),
            })
        }
        [b'\\', letter, tail @ ..] => unquote_escape(*letter, tail, quote),
        [first, tail @ ..] => Ok(UnquotedChar {
            value: u32::from(*first),
            multibyte: false,
            tail,
        }),
    }
}

fn unquote_escape(letter: u8, tail: &[u8], quote: u8) -> Result<UnquotedChar<'_>, SyntaxError> {
    let value = match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'\\' => u32::from(b'\\'),
        b'\'' | b'"' if letter == quote => u32::from(letter),
        b'x' => return parse_byte_escape(0, 16, tail),
        b'0'..=b'7' => return parse_byte_escape(u32::from(letter - b'0'), 8, tail),
        b'u' => return parse_code_point_escape(4, tail),
        b'U' => return parse_code_point_escape(8, tail),
        _ => return Err(SyntaxError),
    };
    Ok(UnquotedChar {
        value,
        multibyte: false,
        tail,
    })
}

/// Parses the two remaining digits of a byte escape. `value` is the value of the digits before them.
fn parse_byte_escape(value: u32, radix: u32, tail: &[u8]) -> Result<UnquotedChar<'_>, SyntaxError> {
    let (value, tail) = parse_digits(value, 2, radix, tail)?;
    if value > 255 {
        return Err(SyntaxError);
    }
    Ok(UnquotedChar {
        value,
        multibyte: false,
        tail,
    })
}

fn parse_code_point_escape(count: usize, tail: &[u8]) -> Result<UnquotedChar<'_>, SyntaxError> {
    let (value, tail) = parse_digits(0, count, 16, tail)?;
    char::from_u32(value).ok_or(SyntaxError)?;
    Ok(UnquotedChar {
        value,
        multibyte: true,
        tail,
    })
}

fn parse_digits(first: u32, count: usize, radix: u32, tail: &[u8]) -> Result<(u32, &[u8]), SyntaxError> {
    let (code, tail) = tail.split_at_checked(count).ok_or(SyntaxError)?;
    let value = code.iter().try_fold(first, |value, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        Some(value.wrapping_mul(radix).wrapping_add(digit))
    });
    Ok((value.ok_or(SyntaxError)?, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(quote(text), expected);
    }

    #[test]
    fn text_is_quoted_as_strconv_does() {
        check("plain ~", r#""plain ~""#);
        check("a\"b\\'", r#""a\"b\\'""#);
        check("\x07\x08\x0c\n\r\t\x0b", r#""\a\b\f\n\r\t\v""#);
        check("\0\x01\x7f", r#""\x00\x01\x7f""#);
        check(b"a\xffb\xe2\x82", r#""a\xffb\xe2\x82""#);
        check("\u{fffd}", "\"\u{fffd}\"");
        check(
            "é\u{301}日\u{200b}\u{a0}\u{ad}\u{feff}\u{10ffff}",
            "\"é\u{301}日\\u200b\\u00a0\\u00ad\\ufeff\\U0010ffff\"",
        );
    }

    #[test]
    fn characters_newer_than_gos_tables_are_escaped() {
        check("\u{2ffc}\u{1c89}", r#""\u2ffc\u1c89""#);
    }

    #[test]
    fn ascii_quoting_escapes_other_characters() {
        assert_eq!(quote_to_ascii("é\u{1f600}a"), r#""\u00e9\U0001f600a""#);
        assert_eq!(quote_rune('é'), "'é'");
        assert_eq!(quote_rune_to_ascii('é'), r"'\u00e9'");
        assert_eq!(quote_rune('\''), r"'\''");
        assert_eq!(quote_rune('"'), "'\"'");
        assert_eq!(quote_rune(0xD800_u32), "'\u{fffd}'");
    }

    #[test]
    fn backquotes_are_used_where_possible() {
        assert_eq!(backquote(b"a\\b\t"), "`a\\b\t`");
        assert_eq!(backquote(b"a`b"), "\"a`b\"");
        assert_eq!(backquote(b"a\nb"), r#""a\nb""#);
        assert_eq!(backquote(b"\xff"), r#""\xff""#);
        assert!(can_backquote("\u{fffd}".as_bytes()));
        assert!(!can_backquote("\u{feff}".as_bytes()));
    }

    #[test]
    fn literals_are_unquoted() {
        let check =
            |literal: &str, expected: &[u8]| assert_eq!(*unquote(literal.as_bytes()).unwrap(), *expected);
        check(r#""a\n\x41\101\u00e9\xff""#, b"a\nAA\xc3\xa9\xff");
        check("`a\\n\r`", b"a\\n");
        for literal in [
            "",
            "\"",
            "\"a",
            "'a'",
            "\"\n\"",
            r#""\z""#,
            r#""\400""#,
            r#""\ud800""#,
            r#""\'""#,
        ] {
            assert_eq!(unquote(literal.as_bytes()), Err(SyntaxError), "{literal}");
        }
    }
}
