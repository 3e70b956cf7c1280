//! Scalars in single and double quotes.

use std::borrow::Cow;

use super::{Scan, Scanner};
use crate::chars;
use crate::read::token::{Style, TokenKind};

impl Scanner<'_> {
    pub(super) fn fetch_quoted(&mut self, single: bool) -> Scan<()> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.here;
        self.skip();
        let value = self.quoted(single)?;
        self.skip();
        let style = if single { Style::Single } else { Style::Double };
        // The value borrows from the text, which outlives the scanner.
        self.push(TokenKind::Scalar { value, style }, start);
        Ok(())
    }
}

impl<'a> Scanner<'a> {
    fn quoted(&mut self, single: bool) -> Scan<Cow<'a, str>> {
        let quote = if single { b'\'' } else { b'"' };
        if let Some(end) = self.find_simple_end(quote) {
            let value = self.slice(self.here.at as usize, end);
            self.advance_to(end);
            return Ok(Cow::Borrowed(value));
        }
        let mut out = String::new();
        // Start of the text that was read but not yet copied.
        let mut start = self.here.at as usize;
        let mut copied = false;
        loop {
            self.require(4)?;
            if self.here.column == 0 && self.is_document_marker() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.byte(0) == 0 {
                return Err(self.error("found unexpected end of stream"));
            }
            let mut folding = false;
            while !self.is_blank_or_end(0) && self.byte(0) != quote || self.is_doubled_quote(single) {
                let at = self.here.at as usize;
                if self.byte(0) == quote {
                    out.push_str(self.slice(start, at + 1));
                    self.advance_to(at + 2);
                    (start, copied) = (at + 2, true);
                } else if !single && self.byte(0) == b'\\' {
                    out.push_str(self.slice(start, at));
                    copied = true;
                    if self.break_len_at(1) > 0 {
                        self.require(3)?;
                        self.skip();
                        self.skip_break();
                        folding = true;
                        start = self.here.at as usize;
                        break;
                    }
                    self.escape(&mut out)?;
                    start = self.here.at as usize;
                } else {
                    let end = self.quoted_run(at, quote);
                    self.advance_to(end);
                }
                self.require(2)?;
            }
            self.require(1)?;
            let at = self.here.at as usize;
            if self.byte(0) == quote {
                if !copied {
                    return Ok(Cow::Borrowed(self.slice(start, at)));
                }
                out.push_str(self.slice(start, at));
                return Ok(Cow::Owned(out));
            }
            if self.fold_quoted(&mut out, start, folding)? {
                (start, copied) = (self.here.at as usize, true);
            }
        }
    }

    /// Returns the position of the closing quote if the scalar has no escapes and line breaks, which is the
    /// common case.
    fn find_simple_end(&self, quote: u8) -> Option<usize> {
        let start = self.here.at as usize;
        let rest = self.source.get(start..).filter(|_| self.failure.is_none())?;
        let end = rest
            .iter()
            .position(|byte| *byte == quote || chars::is_special_in_quotes(*byte))?;
        let easy = rest.get(end) == Some(&quote) && (quote == b'"' || rest.get(end + 1) != Some(&quote));
        easy.then_some(start + end)
    }

    /// Whether two single quotes, which represent one, are at the current position of a single-quoted
    /// scalar.
    fn is_doubled_quote(&self, single: bool) -> bool {
        single && self.byte(0) == b'\'' && self.byte(1) == b'\''
    }

    /// Returns the end of the characters that need no special handling, starting at `from`.
    fn quoted_run(&self, from: usize, quote: u8) -> usize {
        let mut at = from;
        loop {
            let rest = self.source.get(at..).unwrap_or_default();
            at += rest
                .iter()
                .position(|byte| chars::may_end_quoted(*byte))
                .unwrap_or(rest.len());
            let ends = match self.source.get(at) {
                Some(0xC2 | 0xE2) => chars::is_break(self.source, at),
                Some(b'\\') => quote == b'"',
                Some(byte @ (b'"' | b'\'')) => *byte == quote,
                _ => true,
            };
            if ends {
                return at;
            }
            at += 1;
        }
    }

    /// Scans blanks and line breaks inside quotes. Returns `false` if there is no line break; the blanks
    /// are then kept.
    fn fold_quoted(&mut self, out: &mut String, start: usize, escaped: bool) -> Scan<bool> {
        let blanks = self.here.at as usize;
        let (mut folding, mut breaks) = (escaped, String::new());
        loop {
            if self.is_blank() {
                self.skip();
                self.skip_spaces(usize::MAX);
            } else if self.break_len_at(0) > 0 {
                self.require(2)?;
                self.read_break(&mut breaks);
                folding = true;
            } else {
                break;
            }
            self.require(1)?;
        }
        if !folding {
            return Ok(false);
        }
        out.push_str(self.slice(start, blanks));
        push_folded(out, &breaks, escaped);
        Ok(true)
    }

    fn escape(&mut self, out: &mut String) -> Scan<()> {
        let (character, digits) = match self.byte(1) {
            b'0' => ('\0', 0),
            b'a' => ('\u{7}', 0),
            b'b' => ('\u{8}', 0),
            b't' | b'\t' => ('\t', 0),
            b'n' => ('\n', 0),
            b'v' => ('\u{b}', 0),
            b'f' => ('\u{c}', 0),
            b'r' => ('\r', 0),
            b'e' => ('\u{1b}', 0),
            b' ' => (' ', 0),
            b'"' => ('"', 0),
            b'\'' => ('\'', 0),
            b'\\' => ('\\', 0),
            b'N' => ('\u{85}', 0),
            b'_' => ('\u{a0}', 0),
            b'L' => ('\u{2028}', 0),
            b'P' => ('\u{2029}', 0),
            b'x' => ('x', 2),
            b'u' => ('u', 4),
            b'U' => ('U', 8),
            _ => return Err(self.error("found unknown escape character")),
        };
        self.advance_to(self.here.at as usize + 2);
        if digits == 0 {
            out.push(character);
            return Ok(());
        }
        self.require(digits)?;
        let at = self.here.at as usize;
        let code = self
            .text
            .get(at..at + digits)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = code.and_then(|text| u32::from_str_radix(text, 16).ok()) else {
            return Err(self.error("did not find expected hexdecimal number"));
        };
        let Some(character) = char::from_u32(code) else {
            return Err(self.error("found invalid Unicode character escape code"));
        };
        out.push(character);
        self.advance_to(at + digits);
        Ok(())
    }
}

/// Appends folded line breaks: one becomes a space, further ones are kept. After an escaped line break all
/// are kept; separators are always kept.
pub(super) fn push_folded(out: &mut String, breaks: &str, escaped: bool) {
    if escaped {
        out.push_str(breaks);
        return;
    }
    match breaks.strip_prefix('\n') {
        Some("") => out.push(' '),
        Some(more) => out.push_str(more),
        None => out.push_str(breaks),
    }
}
