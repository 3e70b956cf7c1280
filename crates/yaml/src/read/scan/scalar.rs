//! Scalars without quotes: plain scalars, and block scalars after `|` and `>`.

use std::borrow::Cow;

use super::quoted::push_folded;
use super::{Scan, Scanner};
use crate::chars;
use crate::read::token::{ScanPosition, Style, Token, TokenKind};

/// Handling of line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(super) fn fetch_plain(&mut self) -> Scan<()> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.here;
        let mut end = start;
        let mut out = String::new();
        let mut from = start.at as usize;
        let mut folding = false;
        let mut breaks = String::new();
        let indent = self.indent + 1;
        loop {
            self.require(4)?;
            if (self.here.column == 0 && self.is_document_marker()) || self.byte(0) == b'#' {
                break;
            }
            let at = self.here.at as usize;
            let run = self.plain_run(at);
            if run > at {
                if folding {
                    out.push_str(self.slice(from, end.at as usize));
                    push_folded(&mut out, &breaks, false);
                    breaks.clear();
                    (from, folding) = (at, false);
                }
                self.advance_to(run);
                end = self.here;
                self.require(2)?;
            }
            if !self.is_blank() && self.break_len_at(0) == 0 {
                break;
            }
            self.plain_blanks(&mut breaks, &mut folding, indent)?;
            if self.flow_level == 0 && i64::from(self.here.column) < indent {
                break;
            }
        }
        let last = self.slice(from, end.at as usize);
        let value = if out.is_empty() {
            Cow::Borrowed(last)
        } else {
            out.push_str(last);
            Cow::Owned(out)
        };
        let style = Style::Plain;
        self.tokens.push_back(Token {
            kind: TokenKind::Scalar { value, style },
            start,
            end,
        });
        if folding {
            self.key_allowed = true;
        }
        Ok(())
    }

    /// Returns the end of the run of plain characters that starts at `from`.
    fn plain_run(&self, from: usize) -> usize {
        let flow = self.flow_level > 0;
        let mut at = from;
        loop {
            let rest = self.source.get(at..).unwrap_or_default();
            at += rest
                .iter()
                .position(|byte| chars::may_end_plain(*byte, flow))
                .unwrap_or(rest.len());
            let ends = match self.source.get(at) {
                Some(b':') => self.ends_before(at + 1),
                Some(0xC2 | 0xE2) => chars::is_break(self.source, at),
                _ => true,
            };
            if ends {
                return at;
            }
            at += 1;
        }
    }

    fn ends_before(&self, at: usize) -> bool {
        matches!(self.source.get(at), None | Some(b' ' | b'\t')) || chars::is_break(self.source, at)
    }

    fn plain_blanks(&mut self, breaks: &mut String, folding: &mut bool, indent: i64) -> Scan<()> {
        self.require(1)?;
        loop {
            if self.is_blank() {
                if *folding && i64::from(self.here.column) < indent && self.byte(0) == b'\t' {
                    return Err(self.error("found a tab character that violates indentation"));
                }
                self.skip();
                self.skip_spaces(usize::MAX);
            } else if self.break_len_at(0) > 0 {
                self.require(2)?;
                self.read_break(breaks);
                *folding = true;
            } else {
                return Ok(());
            }
            self.require(1)?;
        }
    }

    pub(super) fn fetch_block_scalar(&mut self, literal: bool) -> Scan<()> {
        self.remove_key()?;
        self.key_allowed = true;
        let start = self.here;
        self.skip();
        let (chomp, increment) = self.block_header()?;
        let mut end = self.here;
        let mut indent = match increment {
            0 => 0,
            _ => self.indent.max(0) + increment,
        };
        let mut value = String::new();
        let (mut last_break, mut breaks) = (String::new(), String::new());
        self.block_breaks(&mut indent, &mut breaks, &mut end)?;
        self.require(1)?;
        let mut led_by_blank = false;
        while i64::from(self.here.column) == indent && self.byte(0) != 0 {
            let blank = self.is_blank();
            if !literal && !led_by_blank && !blank && last_break.starts_with('\n') {
                if breaks.is_empty() {
                    value.push(' ');
                }
            } else {
                value.push_str(&last_break);
            }
            last_break.clear();
            value.push_str(&breaks);
            breaks.clear();
            led_by_blank = blank;
            let (from, to) = (self.here.at as usize, self.line_end());
            value.push_str(self.slice(from, to));
            self.advance_to(to);
            self.require(2)?;
            self.read_break(&mut last_break);
            self.block_breaks(&mut indent, &mut breaks, &mut end)?;
        }
        if chomp != Chomp::Strip {
            value.push_str(&last_break);
        }
        if chomp == Chomp::Keep {
            value.push_str(&breaks);
        }
        let style = if literal { Style::Literal } else { Style::Folded };
        let value = Cow::Owned(value);
        self.tokens.push_back(Token {
            kind: TokenKind::Scalar { value, style },
            start,
            end,
        });
        Ok(())
    }

    /// Scans the rest of the line of the block scalar's indicator.
    fn block_header(&mut self) -> Scan<(Chomp, i64)> {
        self.require(1)?;
        let (mut chomp, mut increment) = (self.chomp(), 0);
        if chomp.is_some() {
            self.skip();
            self.require(1)?;
            increment = self.increment()?;
        } else if self.byte(0).is_ascii_digit() {
            increment = self.increment()?;
            self.require(1)?;
            chomp = self.chomp();
            if chomp.is_some() {
                self.skip();
            }
        }
        self.require(1)?;
        self.skip_blanks(true)?;
        self.skip_comment()?;
        if self.break_len_at(0) == 0 && self.byte(0) != 0 {
            return Err(self.error("did not find expected comment or line break"));
        }
        if self.break_len_at(0) > 0 {
            self.require(2)?;
            self.skip_break();
        }
        Ok((chomp.unwrap_or(Chomp::Clip), increment))
    }

    fn chomp(&self) -> Option<Chomp> {
        match self.byte(0) {
            b'+' => Some(Chomp::Keep),
            b'-' => Some(Chomp::Strip),
            _ => None,
        }
    }

    fn increment(&mut self) -> Scan<i64> {
        let byte = self.byte(0);
        if byte == b'0' {
            return Err(self.error("found an indentation indicator equal to 0"));
        }
        if !byte.is_ascii_digit() {
            return Ok(0);
        }
        self.skip();
        Ok(i64::from(byte - b'0'))
    }

    /// Scans indentation and empty lines. Detects the indentation unless the header specifies it.
    fn block_breaks(&mut self, indent: &mut i64, breaks: &mut String, end: &mut ScanPosition) -> Scan<()> {
        *end = self.here;
        let mut deepest = 0;
        loop {
            self.require(1)?;
            let missing = (*indent - i64::from(self.here.column)).max(0);
            let most = if *indent == 0 {
                usize::MAX
            } else {
                missing as usize
            };
            self.skip_spaces(most);
            self.require(1)?;
            deepest = deepest.max(i64::from(self.here.column));
            if (*indent == 0 || i64::from(self.here.column) < *indent) && self.byte(0) == b'\t' {
                return Err(self.error("found a tab character where an indentation space is expected"));
            }
            if self.break_len_at(0) == 0 {
                break;
            }
            self.require(2)?;
            self.read_break(breaks);
            *end = self.here;
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}
