//! Splits a source into tokens with their positions.

use super::CompileError;
use super::source::report;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Ident(String),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An operator, bracket or other punctuation.
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(super) struct PositionedToken {
    pub token: Token,
    /// Position in the source, in characters.
    pub at: usize,
    /// Source text of the token.
    pub text: String,
}

/// Longer symbols precede their prefixes.
const SYMBOLS: [&str; 30] = [
    "==", "!=", "<=", ">=", "&&", "||", "[?", ".?", "{?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":",
    "(", ")", "[", "]", "{", "}", ".", ",", "=", "&", "|",
];

pub(super) fn tokenize(source: &str) -> Result<Vec<PositionedToken>, CompileError> {
    let chars: Vec<char> = source.chars().collect();
    let mut lexer = Lexer {
        source,
        chars: &chars,
        at: 0,
    };
    let mut out = Vec::new();
    while let Some(token) = lexer.next_token()? {
        out.push(token);
    }
    out.push(PositionedToken {
        token: Token::End,
        at: chars.len(),
        text: "<EOF>".into(),
    });
    Ok(out)
}

struct Lexer<'a> {
    source: &'a str,
    chars: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn fail<T>(&self, at: usize, message: &str) -> Result<T, CompileError> {
        Err(CompileError::new(report(self.source, at, message)))
    }

    fn next_token(&mut self) -> Result<Option<PositionedToken>, CompileError> {
        self.skip_space();
        let start = self.at;
        let Some(c) = self.peek(0) else {
            return Ok(None);
        };
        let token = match c {
            '"' | '\'' => Token::Text(self.read_string(false)?),
            'r' | 'R' if matches!(self.peek(1), Some('"' | '\'')) => {
                self.at += 1;
                Token::Text(self.read_string(true)?)
            }
            'b' | 'B' if matches!(self.peek(1), Some('"' | '\'')) => {
                self.at += 1;
                Token::Bytes(self.read_string(false)?.into_bytes())
            }
            c if c.is_ascii_digit() || c == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit()) => {
                self.read_number()?
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                Token::Ident(word)
            }
            '`' => {
                self.at += 1;
                let word = self.take_while(|c| c != '`' && c != '\n');
                self.at += 1;
                Token::Ident(word)
            }
            _ => self.read_symbol()?,
        };
        let text = self.chars.get(start..self.at).unwrap_or(&[]).iter().collect();
        Ok(Some(PositionedToken {
            token,
            at: start,
            text,
        }))
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek(0) {
                Some(c) if c.is_whitespace() => self.at += 1,
                Some('/') if self.peek(1) == Some('/') => {
                    self.take_while(|c| c != '\n');
                }
                _ => return,
            }
        }
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek(0).filter(|c| accepts(*c)) {
            word.push(c);
            self.at += 1;
        }
        word
    }

    fn read_symbol(&mut self) -> Result<Token, CompileError> {
        let rest: String = self.chars.iter().skip(self.at).take(2).collect();
        let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) else {
            let shown = rest.chars().next().unwrap_or(' ');
            return self.fail(
                self.at,
                &format!("Syntax error: token recognition error at: '{shown}'"),
            );
        };
        // `[?` and `{?` always mark an optional entry: a conditional cannot follow an opening bracket.
        self.at += symbol.len();
        Ok(Token::Symbol(symbol))
    }

    fn read_number(&mut self) -> Result<Token, CompileError> {
        let start = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            if matches!(self.peek(0), Some('u' | 'U')) {
                self.at += 1;
                return match u64::from_str_radix(&digits, 16) {
                    Ok(number) => Ok(Token::Uint(number)),
                    Err(_) => self.fail(start, "invalid uint literal"),
                };
            }
            return match i64::from_str_radix(&digits, 16) {
                Ok(number) => Ok(Token::Int(number)),
                Err(_) => self.fail(start, "invalid int literal"),
            };
        }
        let mut digits = self.take_while(|c| c.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            float = true;
            self.at += 1;
            digits.push('.');
            digits.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            float = true;
            self.at += 1;
            digits.push('e');
            if let Some(sign @ ('+' | '-')) = self.peek(0) {
                self.at += 1;
                digits.push(sign);
            }
            digits.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        if float {
            return match format!("0{digits}").parse() {
                Ok(number) => Ok(Token::Double(number)),
                Err(_) => self.fail(start, "invalid double literal"),
            };
        }
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return match digits.parse() {
                Ok(number) => Ok(Token::Uint(number)),
                Err(_) => self.fail(start, "invalid uint literal"),
            };
        }
        // The minus sign is a separate token, so the absolute value of the smallest integer must be accepted.
        if digits == "9223372036854775808" {
            return Ok(Token::Int(i64::MIN));
        }
        match digits.parse() {
            Ok(number) => Ok(Token::Int(number)),
            Err(_) => self.fail(start, "invalid int literal"),
        }
    }

    fn read_string(&mut self, raw: bool) -> Result<String, CompileError> {
        let start = self.at;
        let quote = self.peek(0).unwrap_or('"');
        let triple = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        self.at += if triple { 3 } else { 1 };
        let mut text = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                return self.fail(
                    start,
                    &format!("Syntax error: token recognition error at: '{quote}'"),
                );
            };
            let closes =
                c == quote && (!triple || self.peek(1) == Some(quote) && self.peek(2) == Some(quote));
            if closes {
                self.at += if triple { 3 } else { 1 };
                return Ok(text);
            }
            if !triple && c == '\n' {
                return self.fail(
                    start,
                    &format!("Syntax error: token recognition error at: '{quote}'"),
                );
            }
            self.at += 1;
            if c == '\\' && !raw {
                text.push(self.read_escape()?);
            } else {
                text.push(c);
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, CompileError> {
        let start = self.at;
        let Some(c) = self.peek(0) else {
            return self.fail(start, "Syntax error: unfinished escape");
        };
        self.at += 1;
        let code = |lexer: &mut Self, length: usize, radix: u32| {
            let digits: String = lexer.chars.iter().skip(lexer.at).take(length).collect();
            lexer.at += length;
            let code = u32::from_str_radix(&digits, radix)
                .ok()
                .filter(|_| digits.chars().count() == length);
            match code.and_then(char::from_u32) {
                Some(c) => Ok(c),
                None => lexer.fail(start, "Syntax error: invalid escape"),
            }
        };
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' | 'X' => code(self, 2, 16)?,
            'u' => code(self, 4, 16)?,
            'U' => code(self, 8, 16)?,
            '0'..='3' => {
                self.at -= 1;
                code(self, 3, 8)?
            }
            '\\' | '\'' | '"' | '`' | '?' => c,
            _ => return self.fail(start, "Syntax error: invalid escape"),
        })
    }
}
