//! Lexer: converts template text to tokens, without trim markers and comments.

use super::token::{Kind, Token};
use mainstay_gostd::quote::quote;
use mainstay_gostd::unicode::{is_digit, is_letter, is_print};
use mainstay_gostd::utf8;

pub(super) struct Lexer<'a> {
    whole: &'a [u8],
    input: &'a [u8],
    pos: usize,
    start: usize,
    paren_depth: i32,
    line: u32,
    start_line: u32,
    inside_action: bool,
    /// Whether `break` is a keyword, which it is unless a function has this name.
    pub(super) break_ok: bool,
    /// Whether `continue` is a keyword, which it is unless a function has this name.
    pub(super) continue_ok: bool,
    /// Text of the error token.
    pub(super) error: String,
}

type Lexed = Option<Token>;

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Lexer {
            whole: input,
            input,
            pos: 0,
            start: 0,
            paren_depth: 0,
            line: 1,
            start_line: 1,
            inside_action: false,
            break_ok: true,
            continue_ok: true,
            error: String::new(),
        }
    }

    /// Returns the next token.
    pub(super) fn next_token(&mut self) -> Token {
        if self.inside_action {
            return self.scan_inside_action();
        }
        loop {
            if let Some(token) = self.scan_text() {
                return token;
            }
        }
    }

    /// Skips white space inside an action, where it is a separate token.
    #[inline]
    pub(super) fn skip_space(&mut self) {
        let at_space = self.peek_byte().is_some_and(|byte| has_class(byte, SPACE));
        if at_space && self.inside_action && self.at_right_delim().is_none() {
            self.scan_space();
        }
    }

    /// Returns the text of a token.
    pub(super) fn token_text(&self, token: Token) -> &'a [u8] {
        self.slice(token.pos, token.end)
    }

    /// Returns the text between two positions. Unlike the input, it remains available after an error.
    pub(super) fn slice(&self, start: u32, end: u32) -> &'a [u8] {
        self.whole.get(start as usize..end as usize).unwrap_or_default()
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u32> {
        utf8::decode(self.rest()).map(|(rune, _)| rune.into())
    }

    fn peek_byte(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    /// Skips letters, digits and underscores.
    #[inline]
    fn skip_alphanumeric(&mut self) {
        loop {
            let rest = self.rest();
            self.pos += rest.iter().take_while(|&&byte| has_class(byte, WORD)).count();
            if self.peek_byte().is_none_or(|byte| byte < 0x80) || !self.skip_letter() {
                return;
            }
        }
    }

    /// Skips one letter or digit above ASCII, if there is one.
    #[cold]
    fn skip_letter(&mut self) -> bool {
        let letter = utf8::decode(self.rest()).filter(|(rune, _)| is_alphanumeric(u32::from(*rune)));
        self.pos += letter.map_or(0, |(_, width)| width);
        letter.is_some()
    }

    #[inline]
    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token {
            pos: self.start as u32,
            end: self.pos as u32,
            line: self.start_line,
            kind,
        };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    /// Counts the lines between the start of the token and the current position.
    fn count_lines(&mut self) {
        let passed = self.input.get(self.start..self.pos).unwrap_or_default();
        self.line += count_newlines(passed);
    }

    fn ignore(&mut self) {
        self.count_lines();
        self.start = self.pos;
        self.start_line = self.line;
    }

    /// Skips one byte of `valid`, which must contain ASCII only. Returns whether it was found.
    fn accept(&mut self, valid: &[u8]) -> bool {
        let found = self.peek_byte().is_some_and(|byte| valid.contains(&byte));
        self.pos += usize::from(found);
        found
    }

    fn accept_run(&mut self, valid: &[u8]) {
        while self.accept(valid) {}
    }

    fn fail(&mut self, text: impl Into<String>) -> Token {
        let token = Token {
            pos: self.start as u32,
            end: self.start as u32,
            line: self.start_line,
            kind: Kind::Error,
        };
        self.error = text.into();
        self.start = 0;
        self.pos = 0;
        self.input = b"";
        token
    }

    fn scan_text(&mut self) -> Lexed {
        let Some(offset) = find_pair(self.rest(), *b"{{") else {
            self.pos = self.input.len();
            if self.pos > self.start {
                self.count_lines();
                return Some(self.emit(Kind::Text));
            }
            return Some(self.emit(Kind::Eof));
        };
        if offset > 0 {
            self.pos += offset;
            let before = self.input.get(self.start..self.pos).unwrap_or_default();
            let after = self.input.get(self.pos + 2..).unwrap_or_default();
            let trimmed = if has_left_trim(after) {
                count_trailing_spaces(before)
            } else {
                0
            };
            self.pos -= trimmed;
            self.count_lines();
            let token = self.emit(Kind::Text);
            self.pos += trimmed;
            self.ignore();
            if token.end > token.pos {
                return Some(token);
            }
        }
        self.scan_left_delim()
    }

    fn scan_left_delim(&mut self) -> Lexed {
        self.pos += 2;
        let marker = if has_left_trim(self.rest()) { 2 } else { 0 };
        if self
            .input
            .get(self.pos + marker..)
            .is_some_and(|rest| rest.starts_with(b"/*"))
        {
            self.pos += marker;
            self.ignore();
            return self.scan_comment();
        }
        let token = self.emit(Kind::LeftDelim);
        self.inside_action = true;
        self.pos += marker;
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn scan_comment(&mut self) -> Lexed {
        self.pos += 2;
        let Some(offset) = find_pair(self.rest(), *b"*/") else {
            return Some(self.fail("unclosed comment"));
        };
        self.pos += offset + 2;
        let Some(trim) = self.at_right_delim() else {
            return Some(self.fail("comment ends before closing delimiter"));
        };
        self.count_lines();
        self.emit(Kind::Text);
        self.pos += if trim { 4 } else { 2 };
        if trim {
            self.pos += count_leading_spaces(self.rest());
        }
        self.ignore();
        None
    }

    /// Returns whether the right delimiter at the current position trims the following text, or `None` if
    /// there is no right delimiter.
    #[inline]
    fn at_right_delim(&self) -> Option<bool> {
        match self.rest() {
            [b'}', b'}', ..] => Some(false),
            [space, b'-', b'}', b'}', ..] if has_class(*space, SPACE) => Some(true),
            _ => None,
        }
    }

    fn scan_right_delim(&mut self, trim: bool) -> Token {
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.pos += count_leading_spaces(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn scan_inside_action(&mut self) -> Token {
        let Some(byte) = self.peek_byte() else {
            return self.fail("unclosed action");
        };
        if has_class(byte, SPACE | CLOSE)
            && let Some(trim) = self.at_right_delim()
        {
            return if self.paren_depth == 0 {
                self.scan_right_delim(trim)
            } else {
                self.fail("unclosed left paren")
            };
        }
        if has_class(byte, SPACE) {
            return self.scan_space();
        }
        if has_class(byte, WORD) && !byte.is_ascii_digit() {
            return self.scan_identifier();
        }
        self.scan_other(byte)
    }

    /// Scans a token that starts with neither white space nor a letter.
    fn scan_other(&mut self, first: u8) -> Token {
        let rest = self.rest().get(1..).unwrap_or_default();
        match first {
            b'.' if rest.first().is_some_and(|next| !next.is_ascii_digit()) => {
                self.pos += 1;
                self.scan_name(Kind::Field, Kind::Dot)
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => self.scan_number_token(),
            0x80.. => self.scan_non_ascii(),
            _ => {
                self.pos += 1;
                self.scan_mark(first)
            }
        }
    }

    /// Scans a token that is identified by its first byte, which has already been consumed.
    fn scan_mark(&mut self, first: u8) -> Token {
        match first {
            b'=' => self.emit(Kind::Assign),
            b':' if self.accept(b"=") => self.emit(Kind::Declare),
            b':' => self.fail("expected :="),
            b'|' => self.emit(Kind::Pipe),
            b'"' => self.scan_delimited(b'"', Kind::String, "unterminated quoted string"),
            b'`' => self.scan_raw_quote(),
            b'$' => self.scan_name(Kind::Variable, Kind::Variable),
            b'\'' => self.scan_delimited(b'\'', Kind::CharConstant, "unterminated character constant"),
            b'(' => {
                self.paren_depth += 1;
                self.emit(Kind::LeftParen)
            }
            b')' => {
                self.paren_depth -= 1;
                if self.paren_depth < 0 {
                    return self.fail("unexpected right paren");
                }
                self.emit(Kind::RightParen)
            }
            _ if is_print(u32::from(first)) => self.emit(Kind::Char),
            _ => self.unrecognized(Some(u32::from(first))),
        }
    }

    /// Scans a token that starts with a character above ASCII.
    fn scan_non_ascii(&mut self) -> Token {
        let rune = self.peek();
        if rune.is_some_and(is_alphanumeric) {
            return self.scan_identifier();
        }
        self.unrecognized(rune)
    }

    fn unrecognized(&mut self, rune: Option<u32>) -> Token {
        self.fail(format!(
            "unrecognized character in action: {}",
            unicode_name(rune)
        ))
    }

    /// Scans white space, except for a space that belongs to the following right delimiter.
    fn scan_space(&mut self) -> Token {
        self.pos += count_leading_spaces(self.rest());
        let from_last = self.input.get(self.pos.saturating_sub(1)..).unwrap_or_default();
        if let [_, b'-', b'}', b'}', ..] = from_last {
            self.pos -= 1;
        }
        self.count_lines();
        self.emit(Kind::Space)
    }

    fn scan_identifier(&mut self) -> Token {
        self.skip_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(self.peek())));
        }
        let word = self.input.get(self.start..self.pos).unwrap_or_default();
        let kind = match word {
            b"block" => Kind::Block,
            b"break" if self.break_ok => Kind::Break,
            b"continue" if self.continue_ok => Kind::Continue,
            b"define" => Kind::Define,
            b"else" => Kind::Else,
            b"end" => Kind::End,
            b"if" => Kind::If,
            b"range" => Kind::Range,
            b"nil" => Kind::Nil,
            b"template" => Kind::Template,
            b"with" => Kind::With,
            b"true" | b"false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    /// Scans a field or a variable. Emits `bare` if no name follows the dot or dollar.
    fn scan_name(&mut self, kind: Kind, bare: Kind) -> Token {
        if self.at_terminator() {
            return self.emit(bare);
        }
        self.skip_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(self.peek())));
        }
        self.emit(kind)
    }

    #[inline]
    fn at_terminator(&self) -> bool {
        match self.rest() {
            [] | [b'}', b'}', ..] => true,
            [byte, ..] => has_class(*byte, END),
        }
    }

    /// Scans a literal that must end on its line; the opening quote has already been consumed. Works on
    /// bytes, because no byte of a multibyte character is ASCII.
    fn scan_delimited(&mut self, quote: u8, kind: Kind, unterminated: &str) -> Token {
        let mut bytes = self.rest().iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b'\\' if bytes.next() != Some(&b'\n') => {}
                b'\\' | b'\n' => break,
                _ if byte == quote => {
                    self.pos = self.input.len() - bytes.len();
                    return self.emit(kind);
                }
                _ => {}
            }
        }
        self.fail(unterminated)
    }

    fn scan_raw_quote(&mut self) -> Token {
        let Some(length) = memchr::memchr(b'`', self.rest()) else {
            return self.fail("unterminated raw quoted string");
        };
        self.pos += length + 1;
        self.count_lines();
        self.emit(Kind::RawString)
    }

    fn scan_number_token(&mut self) -> Token {
        if !self.scan_number() {
            return self.fail_bad_number();
        }
        if self
            .peek()
            .is_some_and(|rune| rune == u32::from(b'+') || rune == u32::from(b'-'))
        {
            let imaginary = self.scan_number() && self.input.get(self.pos.wrapping_sub(1)) == Some(&b'i');
            return if imaginary {
                self.emit(Kind::Complex)
            } else {
                self.fail_bad_number()
            };
        }
        self.emit(Kind::Number)
    }

    fn fail_bad_number(&mut self) -> Token {
        let text = self.input.get(self.start..self.pos).unwrap_or_default();
        self.fail(format!("bad number syntax: {}", quote(text)))
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &[u8] = b"0123456789_";
        const HEXADECIMAL: &[u8] = b"0123456789abcdefABCDEF_";
        self.accept(b"+-");
        let mut digits = DECIMAL;
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = HEXADECIMAL;
            } else if self.accept(b"oO") {
                digits = b"01234567_";
            } else if self.accept(b"bB") {
                digits = b"01_";
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        if digits == DECIMAL && self.accept(b"eE") || digits == HEXADECIMAL && self.accept(b"pP") {
            self.accept(b"+-");
            self.accept_run(DECIMAL);
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.pos += utf8::decode(self.rest()).map_or(0, |(_, width)| width);
            return false;
        }
        true
    }
}

/// Formats a character as `%#U` does. `None` is the end of input, which is rune -1 in Go.
fn unicode_name(rune: Option<u32>) -> String {
    let Some(rune) = rune else {
        return "U+FFFFFFFFFFFFFFFF".into();
    };
    let shown = char::from_u32(rune).filter(|_| is_print(rune));
    shown.map_or_else(|| format!("U+{rune:04X}"), |c| format!("U+{rune:04X} '{c}'"))
}

/// Class of letters, digits and the underscore. Classes are bits, so that one table contains all of them.
const WORD: u8 = 1;
/// Class of white space.
const SPACE: u8 = 2;
/// Class of bytes that end a name.
const END: u8 = 4;
/// Class of bytes that may close an action.
const CLOSE: u8 = 8;

static CLASS: [u8; 256] = classes();

#[allow(
    clippy::indexing_slicing,
    reason = "runs when compiling, where a wrong index is an error"
)]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => WORD,
            b' ' | b'\t' | b'\r' | b'\n' => SPACE | END,
            b'.' | b',' | b'|' | b':' | b')' | b'(' => END,
            b'}' => CLOSE,
            _ => 0,
        };
        byte += 1;
    }
    table
}

#[inline]
fn has_class(byte: u8, class: u8) -> bool {
    CLASS.get(usize::from(byte)).is_some_and(|bits| bits & class != 0)
}

fn has_left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', next, ..] if has_class(*next, SPACE))
}

fn count_trailing_spaces(text: &[u8]) -> usize {
    text.iter()
        .rev()
        .take_while(|&&byte| has_class(byte, SPACE))
        .count()
}

fn count_leading_spaces(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| has_class(byte, SPACE)).count()
}

/// Counts line feeds. Most texts are a space or an indentation, for which a function call is slower than a
/// loop.
fn count_newlines(text: &[u8]) -> u32 {
    const SHORT: usize = 16;
    if text.len() > SHORT {
        return memchr::memchr_iter(b'\n', text).count() as u32;
    }
    text.iter()
        .fold(0, |count, &byte| count + u32::from(byte == b'\n'))
}

fn find_pair(text: &[u8], two: [u8; 2]) -> Option<usize> {
    let [first, second] = two;
    memchr::memchr_iter(first, text).find(|&at| text.get(at + 1) == Some(&second))
}

/// Whether a name may contain `rune`.
fn is_alphanumeric(rune: u32) -> bool {
    rune == u32::from(b'_') || is_letter(rune) || is_digit(rune)
}
