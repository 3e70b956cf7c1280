//! Template text into tokens: takes bytes, gives one token at a time, trim markers and comments already gone.

use crate::quote::quoted;
use crate::unicode::{is_alphanumeric, is_print};
use crate::utf8;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    // Keywords: in messages they are shown between angle brackets.
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    fn is_keyword(self) -> bool {
        self as u8 >= Self::Block as u8
    }
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// Where it starts, in bytes.
    pub(super) pos: u32,
    /// Its text; empty for errors, whose text the lexer keeps.
    pub(super) text: &'a [u8],
    /// The line it starts on, from 1.
    pub(super) line: u32,
}

impl Token<'_> {
    /// A token before any was read.
    pub(super) const NONE: Self = Token {
        kind: Kind::Error,
        pos: 0,
        text: b"",
        line: 0,
    };

    /// As messages show it.
    pub(super) fn shown(&self, error: &str) -> String {
        match self.kind {
            Kind::Eof => "EOF".into(),
            Kind::Error => error.into(),
            kind if kind.is_keyword() => format!("<{}>", String::from_utf8_lossy(self.text)),
            _ if self.text.len() > 10 => format!("{}...", quoted(first_runes(self.text, 10))),
            _ => quoted(self.text),
        }
    }
}

fn first_runes(text: &[u8], limit: usize) -> &[u8] {
    let end = utf8::runes(text)
        .nth(limit)
        .map_or(text.len(), |(start, _, _)| start);
    text.get(..end).unwrap_or(text)
}

/// The lexer.
#[allow(clippy::struct_excessive_bools)]
pub(super) struct Lexer<'a> {
    whole: &'a [u8],
    input: &'a [u8],
    pos: usize,
    start: usize,
    at_eof: bool,
    paren_depth: i32,
    line: u32,
    start_line: u32,
    inside_action: bool,
    /// Whether `break` is a keyword, that is, no function has its name.
    pub(super) break_ok: bool,
    /// Whether `continue` is one.
    pub(super) continue_ok: bool,
    /// The text of the error token.
    pub(super) error: String,
}

type Lexed<'a> = Option<Token<'a>>;

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Lexer {
            whole: input,
            input,
            pos: 0,
            start: 0,
            at_eof: false,
            paren_depth: 0,
            line: 1,
            start_line: 1,
            inside_action: false,
            break_ok: true,
            continue_ok: true,
            error: String::new(),
        }
    }

    /// The next token.
    pub(super) fn next_token(&mut self) -> Token<'a> {
        if self.inside_action {
            return self.inside();
        }
        loop {
            if let Some(token) = self.text() {
                return token;
            }
        }
    }

    /// The text between two positions, whole even after an error.
    pub(super) fn slice(&self, start: u32, end: u32) -> &'a [u8] {
        self.whole.get(start as usize..end as usize).unwrap_or_default()
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.pos..).unwrap_or_default()
    }

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (rune, width) = utf8::decode(self.rest());
        if width == 0 {
            self.at_eof = true;
            return None;
        }
        self.pos += width;
        if rune == u32::from(b'\n') {
            self.line += 1;
        }
        Some(rune)
    }

    fn peek(&self) -> Option<u32> {
        let (rune, width) = utf8::decode(self.rest());
        (width > 0).then_some(rune)
    }

    /// Passes over letters, digits and underscores; gives what follows.
    fn pass_alphanumeric(&mut self) -> Option<u32> {
        loop {
            let rest = self.rest();
            let ascii = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            self.pos += rest.iter().take_while(ascii).count();
            let after = self.peek();
            if !after.is_some_and(|rune| rune >= 0x80 && is_alphanumeric(rune)) {
                return after;
            }
            self.next();
        }
    }

    fn backup(&mut self) {
        if self.at_eof || self.pos == 0 {
            return;
        }
        let seen = self.input.get(..self.pos).unwrap_or_default();
        self.pos -= utf8::last_width(seen);
        if seen.last() == Some(&b'\n') {
            self.line -= 1;
        }
    }

    fn emit(&mut self, kind: Kind) -> Token<'a> {
        let text = self.input.get(self.start..self.pos).unwrap_or_default();
        let token = Token {
            kind,
            pos: self.start as u32,
            text,
            line: self.start_line,
        };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    /// Counts the lines of what was passed over without `next`, up to here.
    fn count_lines(&mut self) {
        let passed = self.input.get(self.start..self.pos).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count() as u32;
    }

    fn ignore(&mut self) {
        self.count_lines();
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn accept(&mut self, valid: &[u8]) -> bool {
        let found = self
            .next()
            .and_then(|rune| u8::try_from(rune).ok())
            .is_some_and(|byte| valid.contains(&byte));
        if !found {
            self.backup();
        }
        found
    }

    fn accept_run(&mut self, valid: &[u8]) {
        while self.accept(valid) {}
    }

    fn fail(&mut self, text: impl Into<String>) -> Token<'a> {
        let token = Token {
            kind: Kind::Error,
            pos: self.start as u32,
            text: b"",
            line: self.start_line,
        };
        self.error = text.into();
        self.start = 0;
        self.pos = 0;
        self.input = b"";
        token
    }

    fn text(&mut self) -> Lexed<'a> {
        let Some(offset) = find(self.rest(), *b"{{") else {
            self.pos = self.input.len();
            if self.pos > self.start {
                self.count_lines();
                return Some(self.emit(Kind::Text));
            }
            let mut token = self.emit(Kind::Eof);
            token.text = b"EOF";
            return Some(token);
        };
        if offset > 0 {
            self.pos += offset;
            let before = self.input.get(self.start..self.pos).unwrap_or_default();
            let after = self.input.get(self.pos + 2..).unwrap_or_default();
            let trimmed = if has_left_trim(after) {
                trailing_spaces(before)
            } else {
                0
            };
            self.pos -= trimmed;
            self.count_lines();
            let token = self.emit(Kind::Text);
            self.pos += trimmed;
            self.ignore();
            if !token.text.is_empty() {
                return Some(token);
            }
        }
        self.left_delim()
    }

    fn left_delim(&mut self) -> Lexed<'a> {
        self.pos += 2;
        let marker = if has_left_trim(self.rest()) { 2 } else { 0 };
        if self
            .input
            .get(self.pos + marker..)
            .is_some_and(|rest| rest.starts_with(b"/*"))
        {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        let token = self.emit(Kind::LeftDelim);
        self.inside_action = true;
        self.pos += marker;
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Lexed<'a> {
        self.pos += 2;
        let Some(offset) = find(self.rest(), *b"*/") else {
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
            self.pos += leading_spaces(self.rest());
        }
        self.ignore();
        None
    }

    /// Whether an action ends here, and if so whether it trims what follows.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest.get(2..).is_some_and(|rest| rest.starts_with(b"}}")) {
            return Some(true);
        }
        rest.starts_with(b"}}").then_some(false)
    }

    fn right_delim(&mut self) -> Token<'a> {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.pos += leading_spaces(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside(&mut self) -> Token<'a> {
        if self.at_right_delim().is_some() {
            return if self.paren_depth == 0 {
                self.right_delim()
            } else {
                self.fail("unclosed left paren")
            };
        }
        let Some(rune) = self.next() else {
            return self.fail("unclosed action");
        };
        let byte = u8::try_from(rune).unwrap_or(0x80);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                self.backup();
                self.space()
            }
            b'=' => self.emit(Kind::Assign),
            b':' if self.next() == Some(u32::from(b'=')) => self.emit(Kind::Declare),
            b':' => self.fail("expected :="),
            b'|' => self.emit(Kind::Pipe),
            b'"' => self.delimited(b'"', Kind::String, "unterminated quoted string"),
            b'`' => self.raw_quote(),
            b'$' => self.name(Kind::Variable, Kind::Variable),
            b'\'' => self.delimited(b'\'', Kind::CharConstant, "unterminated character constant"),
            b'.' if self.rest().first().is_some_and(|next| !next.is_ascii_digit()) => {
                self.name(Kind::Field, Kind::Dot)
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => {
                self.backup();
                self.number()
            }
            _ if is_alphanumeric(rune) => self.identifier(),
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
            _ if rune < 0x80 && is_print(rune) => self.emit(Kind::Char),
            _ => self.fail(format!(
                "unrecognized character in action: {}",
                unicode_name(Some(rune))
            )),
        }
    }

    fn space(&mut self) -> Token<'a> {
        let mut spaces = 0;
        while self.peek().is_some_and(is_space) {
            self.next();
            spaces += 1;
        }
        let from_last = self.input.get(self.pos.saturating_sub(1)..).unwrap_or_default();
        if has_right_trim(from_last) && from_last.get(2..).is_some_and(|rest| rest.starts_with(b"}}")) {
            self.backup();
            if spaces == 1 {
                return self.right_delim();
            }
        }
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Token<'a> {
        let after = self.pass_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(after)));
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

    /// A field or a variable; `bare` if nothing follows the dot or dollar.
    fn name(&mut self, kind: Kind, bare: Kind) -> Token<'a> {
        if self.at_terminator() {
            return self.emit(bare);
        }
        let after = self.pass_alphanumeric();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(after)));
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek().map(|rune| u8::try_from(rune).unwrap_or(0x80)) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => true,
            Some(_) => self.rest().starts_with(b"}}"),
        }
    }

    fn delimited(&mut self, quote: u8, kind: Kind, unterminated: &str) -> Token<'a> {
        const NEWLINE: u32 = b'\n' as u32;
        const BACKSLASH: u32 = b'\\' as u32;
        loop {
            match self.next() {
                Some(BACKSLASH) => match self.next() {
                    None | Some(NEWLINE) => return self.fail(unterminated),
                    Some(_) => {}
                },
                None | Some(NEWLINE) => return self.fail(unterminated),
                Some(rune) if rune == u32::from(quote) => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quote(&mut self) -> Token<'a> {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some(rune) if rune == u32::from(b'`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token<'a> {
        if !self.scan_number() {
            return self.bad_number();
        }
        if self
            .peek()
            .is_some_and(|rune| rune == u32::from(b'+') || rune == u32::from(b'-'))
        {
            let imaginary = self.scan_number() && self.input.get(self.pos.wrapping_sub(1)) == Some(&b'i');
            return if imaginary {
                self.emit(Kind::Complex)
            } else {
                self.bad_number()
            };
        }
        self.emit(Kind::Number)
    }

    fn bad_number(&mut self) -> Token<'a> {
        let text = self.input.get(self.start..self.pos).unwrap_or_default();
        self.fail(format!("bad number syntax: {}", quoted(text)))
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
            self.next();
            return false;
        }
        true
    }
}

/// `%#U`; the end of input is Go's rune -1.
fn unicode_name(rune: Option<u32>) -> String {
    let Some(rune) = rune else {
        return "U+FFFFFFFFFFFFFFFF".into();
    };
    let shown = char::from_u32(rune).filter(|_| is_print(rune));
    shown.map_or_else(|| format!("U+{rune:04X}"), |c| format!("U+{rune:04X} '{c}'"))
}

fn is_space(rune: u32) -> bool {
    matches!(u8::try_from(rune), Ok(b' ' | b'\t' | b'\r' | b'\n'))
}

fn is_space_byte(byte: u8) -> bool {
    is_space(u32::from(byte))
}

fn has_left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', next, ..] if is_space_byte(*next))
}

fn has_right_trim(text: &[u8]) -> bool {
    matches!(text, [first, b'-', ..] if is_space_byte(*first))
}

fn trailing_spaces(text: &[u8]) -> usize {
    text.iter().rev().take_while(|&&byte| is_space_byte(byte)).count()
}

fn leading_spaces(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| is_space_byte(byte)).count()
}

fn find(text: &[u8], two: [u8; 2]) -> Option<usize> {
    let [first, second] = two;
    memchr::memchr_iter(first, text).find(|&at| text.get(at + 1) == Some(&second))
}
