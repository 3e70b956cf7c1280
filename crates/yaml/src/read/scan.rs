//! Conversion of characters to tokens as in libyaml's scanner.
//!
//! *Invariant:* a possible simple key makes the scanner read at most 1024 characters ahead, so the queue
//! remains short.

mod directive;
mod indent;
mod line;
mod quoted;
mod scalar;
mod tag;

use std::collections::VecDeque;

use super::source::Failure;
use super::token::{ScanPosition, Token, TokenKind};
use crate::chars;
use crate::{Error, Problem};

/// Position at which a key without `?` may start. The scanner decides later, depending on whether a `:`
/// follows.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    position: ScanPosition,
}

/// Entry of `keys_by_token` for a token at which no simple key starts.
const NO_KEY: u32 = u32::MAX;

/// Maximum nesting that libyaml accepts.
const MAX_DEPTH: usize = 10_000;

/// Maximum length of a simple key in characters.
const MAX_KEY_LEN: u32 = 1024;

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    source: &'a [u8],
    skipped: usize,
    failure: Option<Failure>,
    here: ScanPosition,
    tokens: VecDeque<Token<'a>>,
    parsed: usize,
    available: bool,
    started: bool,
    indent: i64,
    indents: Vec<i64>,
    simple_keys: Vec<SimpleKey>,
    /// For each token starting with `parsed`: index in `simple_keys` of the key that starts there.
    keys_by_token: VecDeque<u32>,
    key_allowed: bool,
    flow_level: usize,
}

type Scan<T> = Result<T, Error>;

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, skipped: usize, failure: Option<Failure>) -> Self {
        Self {
            text,
            source: text.as_bytes(),
            skipped,
            failure,
            here: ScanPosition::default(),
            tokens: VecDeque::new(),
            parsed: 0,
            available: false,
            started: false,
            indent: -1,
            indents: Vec::new(),
            simple_keys: vec![SimpleKey::default()],
            keys_by_token: VecDeque::new(),
            key_allowed: true,
            flow_level: 0,
        }
    }

    pub(super) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the next token without removing it.
    pub(super) fn peek(&mut self) -> Scan<&Token<'a>> {
        if !self.available {
            self.fetch_more()?;
        }
        match self.tokens.front() {
            Some(token) => Ok(token),
            None => Err(error_at(
                "unknown problem parsing YAML content",
                self.here,
                self.skipped,
            )),
        }
    }

    /// Removes the next token from the queue.
    pub(super) fn take(&mut self) -> Scan<Token<'a>> {
        self.peek()?;
        self.available = false;
        self.parsed += 1;
        self.keys_by_token.pop_front();
        match self.tokens.pop_front() {
            Some(token) => Ok(token),
            None => Err(error_at(
                "unknown problem parsing YAML content",
                self.here,
                self.skipped,
            )),
        }
    }

    /// Scans ahead as long as the first token may be the start of a key.
    fn fetch_more(&mut self) -> Scan<()> {
        loop {
            if !self.tokens.is_empty() {
                let key = self.keys_by_token.front().copied().unwrap_or(NO_KEY);
                if key == NO_KEY || !self.key_is_valid(key as usize)? {
                    break;
                }
            }
            self.fetch_next()?;
        }
        self.available = true;
        Ok(())
    }

    fn fetch_next(&mut self) -> Scan<()> {
        self.require(1)?;
        if !self.started {
            self.started = true;
            self.push(TokenKind::StreamStart, self.here);
            return Ok(());
        }
        self.skip_to_token()?;
        self.unroll_indent(i64::from(self.here.column));
        self.require(4)?;
        if self.here.column == 0 && self.fetch_at_line_start()? {
            return Ok(());
        }
        self.fetch_indicator()
    }

    /// Scans directives and document markers, which are recognized only at the start of a line.
    fn fetch_at_line_start(&mut self) -> Scan<bool> {
        match self.byte(0) {
            b'%' => self.fetch_directive()?,
            b'-' if self.is_document_marker() => self.fetch_document(TokenKind::DocumentStart)?,
            b'.' if self.is_document_marker() => self.fetch_document(TokenKind::DocumentEnd)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn fetch_indicator(&mut self) -> Scan<()> {
        let flow = self.flow_level > 0;
        match self.byte(0) {
            0 => self.fetch_stream_end(),
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.is_blank_or_end(1) => self.fetch_block_entry(),
            b'?' if flow || self.is_blank_or_end(1) => self.fetch_key(),
            b':' if flow || self.is_blank_or_end(1) => self.fetch_value(),
            b'*' => self.fetch_anchor(true),
            b'&' => self.fetch_anchor(false),
            b'!' => self.fetch_tag(),
            b'|' if !flow => self.fetch_block_scalar(true),
            b'>' if !flow => self.fetch_block_scalar(false),
            b'\'' => self.fetch_quoted(true),
            b'"' => self.fetch_quoted(false),
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' | b' ' | b'\n' | b'\r' => self.no_token(),
            _ if self.break_len_at(0) > 0 => self.no_token(),
            _ => self.fetch_plain(),
        }
    }

    fn no_token(&self) -> Scan<()> {
        Err(self.error("found character that cannot start any token"))
    }

    // Lookahead.

    /// Returns the byte at offset `ahead`, or 0 after the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.source
            .get(self.here.at as usize + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn break_len_at(&self, ahead: usize) -> usize {
        chars::break_len(self.source, self.here.at as usize + ahead)
    }

    fn is_blank(&self) -> bool {
        matches!(self.byte(0), b' ' | b'\t')
    }

    /// Whether a blank, a line break or the end of the text is at offset `ahead`.
    fn is_blank_or_end(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t' | 0) || self.break_len_at(ahead) > 0
    }

    /// Whether `---` or `...` followed by a blank is at the current position.
    fn is_document_marker(&self) -> bool {
        let mark = matches!(
            (self.byte(0), self.byte(1), self.byte(2)),
            (b'-', b'-', b'-') | (b'.', b'.', b'.')
        );
        mark && self.is_blank_or_end(3)
    }

    /// Fails if go-yaml would have to read more input to see `count` characters, and its reader fails.
    fn require(&self, count: usize) -> Scan<()> {
        match self.failure {
            Some(failure) if self.remaining_chars(count) < count => Err(failure.error()),
            _ => Ok(()),
        }
    }

    fn remaining_chars(&self, most: usize) -> usize {
        let rest = self.text.get(self.here.at as usize..).unwrap_or_default();
        rest.chars().take(most).count()
    }

    // Movement.

    /// Moves to byte offset `end`. The skipped text must not contain a line break.
    fn advance_to(&mut self, end: usize) {
        let passed = self.source.get(self.here.at as usize..end).unwrap_or_default();
        let count = if passed.is_ascii() {
            passed.len()
        } else {
            count_chars(passed)
        };
        self.here.at = end as u32;
        self.here.index += count as u32;
        self.here.column += count as u32;
    }

    /// Moves over one character that is not a line break.
    fn skip(&mut self) {
        let end = self.here.at as usize + chars::width(self.byte(0));
        self.here.at = end.min(self.source.len()) as u32;
        self.here.index += 1;
        self.here.column += 1;
    }

    /// Moves over at most `most` spaces.
    fn skip_spaces(&mut self, most: usize) {
        let rest = self.source.get(self.here.at as usize..).unwrap_or_default();
        let count = rest.iter().take(most).take_while(|byte| **byte == b' ').count() as u32;
        self.here.at += count;
        self.here.index += count;
        self.here.column += count;
    }

    /// Moves over a line break.
    fn skip_break(&mut self) {
        let len = self.break_len_at(0) as u32;
        let pair = len == 2 && self.byte(0) == b'\r';
        self.here.at += len;
        self.here.index += 1 + u32::from(pair);
        self.here.column = 0;
        self.here.line += 1;
    }

    /// Moves over a line break and appends it to `out`. Separators are kept, all other line breaks become a
    /// newline.
    fn read_break(&mut self, out: &mut String) {
        match self.break_len_at(0) {
            0 => return,
            3 => {
                let at = self.here.at as usize;
                out.push_str(self.text.get(at..at + 3).unwrap_or_default());
            }
            _ => out.push('\n'),
        }
        self.skip_break();
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    // Tokens and errors.

    fn push(&mut self, kind: TokenKind<'a>, start: ScanPosition) {
        let end = self.here;
        self.tokens.push_back(Token { kind, start, end });
    }

    /// Inserts an empty token before token `number`, or appends it if that token has already been removed.
    fn insert(&mut self, number: usize, kind: TokenKind<'a>, position: ScanPosition) {
        let token = Token {
            kind,
            start: position,
            end: position,
        };
        match number.checked_sub(self.parsed) {
            Some(at) if at <= self.tokens.len() => self.tokens.insert(at, token),
            _ => self.tokens.push_back(token),
        }
    }

    fn error(&self, problem: &'static str) -> Error {
        error_at(problem, self.here, self.skipped)
    }
}

/// Creates a scanner error. Go prints its line only from the second line on.
fn error_at(problem: &'static str, position: ScanPosition, skipped: usize) -> Error {
    let line = if position.line == 0 {
        0
    } else {
        position.line as usize + 1
    };
    let problem = problem.into();
    Problem::Syntax { problem, line }.at(position.position(skipped))
}

fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}
