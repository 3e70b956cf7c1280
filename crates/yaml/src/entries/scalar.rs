//! Keys, and the first lines of values, in the forms that the line scan supports.

use super::lines::spaces;

/// Form of a value after a key or a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Empty: the value is null or on the following lines.
    Empty,
    /// A plain scalar, which may continue on the following lines.
    Plain,
    /// A complete value.
    Complete,
    /// Header of a block scalar.
    Block,
    /// A quoted scalar that does not end on this line.
    Quoted,
}

/// Maximum length of a key in bytes, below the scanner's limit.
const MAX_KEY: usize = 1_000;

/// Splits `content` into a key and the text after its colon. Returns `None` if it does not start with a key
/// of a supported form.
#[inline]
pub(super) fn split_key(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = content.first()?;
    let (key, after) = if let quote @ (b'"' | b'\'') = first {
        let end = 1 + memchr::memchr(*quote, content.get(1..)?)?;
        let key = content.get(1..end)?;
        let after = content.get(end + 1..)?;
        (!key.contains(&b'\\')).then_some((key, after))?
    } else {
        let end = content.iter().position(|byte| !is_key_byte(*byte))?;
        let key = content.get(..end)?;
        let plain = first.is_ascii_alphanumeric() || *first == b'_';
        (plain && !is_null(key)).then_some((key, content.get(end..)?))?
    };
    let after = after.strip_prefix(b":")?;
    let separated = after.first().is_none_or(|byte| *byte == b' ');
    (separated && key.len() < MAX_KEY).then_some((key, after))
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'$')
}

fn is_null(key: &[u8]) -> bool {
    matches!(key, b"null" | b"Null" | b"NULL")
}

/// Returns the form of a value without leading spaces, or `None` if it is not supported.
#[inline]
pub(super) fn value_form(value: &[u8]) -> Option<Form> {
    let Some(first) = value.first() else {
        return Some(Form::Empty);
    };
    match first {
        b'#' => Some(Form::Empty),
        b'|' | b'>' => is_block_header(value).then_some(Form::Block),
        b'\'' | b'"' => Some(Form::Quoted),
        b'[' => is_simple_list(value).then_some(Form::Complete),
        b'{' => (trim_end_spaces(value) == b"{}").then_some(Form::Complete),
        b'-' | b'+' | b'.' if is_ambiguous(value) => None,
        b'?' | b':' | b',' | b']' | b'}' | b'&' | b'*' | b'!' | b'%' | b'@' | b'`' | b'=' => None,
        _ => plain_form(value),
    }
}

/// Returns [`Form::Plain`] for the text of a plain scalar, [`Form::Complete`] if a comment ends it, and
/// `None` if a key may follow.
#[inline]
pub(super) fn plain_form(text: &[u8]) -> Option<Form> {
    for at in memchr::memchr2_iter(b':', b'#', text) {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        match text.get(at) {
            Some(b'#') if before.is_none_or(|byte| *byte == b' ') => return Some(Form::Complete),
            Some(b':') if text.get(at + 1).is_none_or(|byte| *byte == b' ') => return None,
            _ => {}
        }
    }
    Some(Form::Plain)
}

/// Whether a value that starts with a sign or a dot could be a list item, an infinity or NaN.
fn is_ambiguous(value: &[u8]) -> bool {
    let unsigned = match value {
        [b'-'] | [b'-', b' ', ..] => return true,
        [b'-' | b'+', rest @ ..] => rest,
        all => all,
    };
    matches!(unsigned, [b'.', b'i' | b'I' | b'n' | b'N', ..])
}

/// Whether `value` is `|` or `>`, optionally followed by a chomping indicator.
fn is_block_header(value: &[u8]) -> bool {
    matches!(trim_end_spaces(value), [_] | [_, b'-' | b'+'])
}

/// Returns the length of the quoted scalar at the start of `text`, including both quotes. Returns `None` if
/// it does not end or contains an unsupported escape.
pub(super) fn quoted_length(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'\'' => single_length(text),
        _ => double_length(text),
    }
}

fn single_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + memchr::memchr(b'\'', text.get(at..)?)?;
        if text.get(end + 1) != Some(&b'\'') {
            return Some(end + 1);
        }
        at = end + 2;
    }
}

fn double_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(end) == Some(&b'"') {
            return Some(end + 1);
        }
        matches!(text.get(end + 1)?, b'"' | b'\\' | b'n' | b't' | b'/').then_some(())?;
        at = end + 2;
    }
}

/// Whether no line of a quoted scalar, except the first, could be a document marker.
pub(super) fn has_no_marker(scalar: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', scalar).all(|at| {
        let line = scalar.get(at + 1..).unwrap_or_default();
        !line.starts_with(b"---") && !line.starts_with(b"...")
    })
}

/// Whether `value` is a list in brackets that contains only words and quoted texts without escapes.
fn is_simple_list(value: &[u8]) -> bool {
    let inside = trim_end_spaces(value)
        .strip_prefix(b"[")
        .and_then(|rest| rest.strip_suffix(b"]"));
    let Some(inside) = inside else { return false };
    let mut rest = trim_start_spaces(inside);
    while !rest.is_empty() {
        let Some(after) = strip_list_item(rest) else {
            return false;
        };
        rest = match after.strip_prefix(b",") {
            Some(next) if !trim_start_spaces(next).is_empty() => trim_start_spaces(next),
            None if after.is_empty() => after,
            _ => return false,
        };
    }
    true
}

/// Strips the first item of a list and the spaces after it. Returns the rest.
fn strip_list_item(text: &[u8]) -> Option<&[u8]> {
    let after = match text.first()? {
        quote @ (b'"' | b'\'') => {
            let end = 1 + memchr::memchr(*quote, text.get(1..)?)?;
            let item = text.get(1..end)?;
            (!item.contains(&b'\\')).then_some(text.get(end + 1..)?)?
        }
        first if first.is_ascii_alphanumeric() => {
            let end = text
                .iter()
                .position(|byte| !is_key_byte(*byte))
                .unwrap_or(text.len());
            text.get(end..)?
        }
        _ => return None,
    };
    Some(trim_start_spaces(after))
}

fn trim_start_spaces(text: &[u8]) -> &[u8] {
    text.get(spaces(text)..).unwrap_or_default()
}

/// Whether `text` consists of spaces and a comment.
pub(super) fn is_comment(text: &[u8]) -> bool {
    let blanks = spaces(text);
    blanks > 0 && text.get(blanks) == Some(&b'#')
}

/// Returns `text` without trailing spaces.
pub(super) fn trim_end_spaces(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|byte| **byte == b' ').count();
    text.get(..text.len() - blanks).unwrap_or_default()
}
