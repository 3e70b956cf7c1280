//! Decoding of UTF-8 or UTF-16 bytes to the characters that go-yaml's reader accepts.

use std::borrow::Cow;

use crate::chars;
use crate::{Budget, Error, Position, Problem};

/// A text to scan.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// Text to scan: all characters, or, if the reader fails, those before the input block of the failure.
    pub(crate) text: Cow<'a, str>,
    /// Number of bytes before the text, those of a byte order mark.
    pub(crate) skipped: usize,
    /// Error of the reader, reported when more input is requested.
    pub(crate) failure: Option<Failure>,
}

/// Reason why the reader fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    problem: &'static str,
    offset: usize,
}

/// Size in bytes of the blocks in which go-yaml reads its input. An error in a block is reported when its
/// first character is requested.
const BLOCK: usize = 512;

impl<'a> Source<'a> {
    /// Returns the text to scan. go-yaml reads an empty text as one empty line.
    pub(crate) fn scanned(&self) -> &str {
        self.scannable(&self.text)
    }

    /// Returns the text to scan instead of `text`. `text` must equal the text of this source; it may
    /// outlive the source.
    pub(crate) fn scannable<'t>(&self, text: &'t str) -> &'t str {
        if text.is_empty() && self.skipped == 0 && self.failure.is_none() {
            "\n"
        } else {
            text
        }
    }

    pub(crate) fn new(bytes: &'a [u8], budget: &Budget) -> Result<Self, Error> {
        if bytes.len() > budget.bytes.min(u32::MAX as usize >> 1) {
            let (quantity, limit) = ("bytes of text", budget.bytes);
            return Err(Problem::Budget { quantity, limit }.at(Position::start()));
        }
        match bytes {
            [0xFF, 0xFE, rest @ ..] => Ok(Self::utf16(rest, u16::from_le_bytes)),
            [0xFE, 0xFF, rest @ ..] => Ok(Self::utf16(rest, u16::from_be_bytes)),
            [0xEF, 0xBB, 0xBF, rest @ ..] => Ok(Self::utf8(rest, 3)),
            _ => Ok(Self::utf8(bytes, 0)),
        }
    }

    fn utf8(bytes: &'a [u8], skipped: usize) -> Self {
        let (valid, problem) = check(bytes);
        let Some((problem, incomplete)) = problem else {
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            return Self {
                text: Cow::Borrowed(text),
                skipped,
                failure: None,
            };
        };
        let end = if incomplete {
            valid
        } else {
            block_start(bytes, skipped, valid)
        };
        let text = bytes.get(..end).and_then(|bytes| std::str::from_utf8(bytes).ok());
        Self {
            text: Cow::Borrowed(text.unwrap_or_default()),
            skipped,
            failure: Some(Failure {
                problem,
                offset: skipped + valid,
            }),
        }
    }

    /// Decodes UTF-16. An error is reported immediately, regardless of its block, since UTF-16 is rare.
    fn utf16(bytes: &'a [u8], unit: fn([u8; 2]) -> u16) -> Self {
        let units = bytes.chunks_exact(2).map(|pair| match pair {
            [a, b] => unit([*a, *b]),
            _ => 0,
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        let whole = bytes.len().is_multiple_of(2);
        let problem = match &text {
            Err(error) if (0xDC00..0xE000).contains(&error.unpaired_surrogate()) => {
                Some("unexpected low surrogate area")
            }
            Err(_) => Some("expected low surrogate area"),
            Ok(_) if !whole => Some("incomplete UTF-16 character"),
            Ok(text) if check(text.as_bytes()).1.is_some() => Some(CONTROL),
            Ok(_) => None,
        };
        let failure = problem.map(|problem| Failure { problem, offset: 2 });
        let text = if failure.is_none() {
            text.unwrap_or_default()
        } else {
            String::new()
        };
        Self {
            text: Cow::Owned(text),
            skipped: 0,
            failure,
        }
    }
}

impl Failure {
    pub(crate) fn error(self) -> Error {
        let problem = Problem::Syntax {
            problem: self.problem.into(),
            line: 0,
        };
        problem.at(Position {
            offset: self.offset,
            ..Position::start()
        })
    }
}

const CONTROL: &str = "control characters are not allowed";

/// Returns the number of bytes that go-yaml accepts, the error of the next character, and whether that
/// character is only incomplete.
fn check(bytes: &[u8]) -> (usize, Option<(&'static str, bool)>) {
    let mut at = 0;
    loop {
        at += chars::readable_blocks(bytes.get(at..).unwrap_or_default());
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(easy) = rest.iter().position(|byte| !chars::is_readable(*byte)) else {
            return (bytes.len(), None);
        };
        at += easy;
        match character(bytes, at) {
            Ok(width) => at += width,
            Err(problem) => return (at, Some((problem, problem == INCOMPLETE))),
        }
    }
}

const INCOMPLETE: &str = "incomplete UTF-8 octet sequence";

/// Returns the width of the character at `at` in bytes, or its error.
fn character(bytes: &[u8], at: usize) -> Result<usize, &'static str> {
    let lead = bytes.get(at).copied().unwrap_or(0);
    let (width, bits, least) = match lead {
        0..=0x7F => (1, u32::from(lead), 0),
        0xC0..=0xDF => (2, u32::from(lead & 0x1F), 0x80),
        0xE0..=0xEF => (3, u32::from(lead & 0x0F), 0x800),
        0xF0..=0xF7 => (4, u32::from(lead & 0x07), 0x1_0000),
        _ => return Err("invalid leading UTF-8 octet"),
    };
    let rest = bytes.get(at + 1..at + width).ok_or(INCOMPLETE)?;
    let mut code = bits;
    for byte in rest {
        if byte & 0xC0 != 0x80 {
            return Err("invalid trailing UTF-8 octet");
        }
        code = code << 6 | u32::from(byte & 0x3F);
    }
    if code < least {
        return Err("invalid length of a UTF-8 sequence");
    }
    match code {
        0xD800..=0xDFFF | 0x11_0000.. => Err("invalid Unicode character"),
        0x09 | 0x0A | 0x0D | 0x20..=0x7E | 0x85 | 0xA0..=0xD7FF | 0xE000..=0xFFFD | 0x1_0000..=0x10_FFFF => {
            Ok(width)
        }
        _ => Err(CONTROL),
    }
}

/// Returns the start of the block in which the byte at `failing` is read. Blocks contain only whole
/// characters.
fn block_start(bytes: &[u8], skipped: usize, failing: usize) -> usize {
    let mut start = 0;
    let mut end = BLOCK - skipped;
    while end < bytes.len() {
        let mut whole = end;
        while whole > start && bytes.get(whole).is_some_and(|byte| byte & 0xC0 == 0x80) {
            whole -= 1;
        }
        if failing < whole {
            return start;
        }
        start = whole;
        end = start + BLOCK;
    }
    start
}
