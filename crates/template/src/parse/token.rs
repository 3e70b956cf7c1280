//! What template text consists of: kinds of tokens, their place, and how messages show them.

use mainstay_gostd::quote::quote;
use mainstay_gostd::utf8;

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
    pub(super) fn is_keyword(self) -> bool {
        self as u8 >= Self::Block as u8
    }
}

/// One token: two words wide, so that it is passed in registers. The lexer's `text_of` gives its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Where it starts, in bytes.
    pub(super) pos: u32,
    /// Where it ends; an error, whose text the lexer keeps, ends where it starts.
    pub(super) end: u32,
    /// The line it starts on, from 1.
    pub(super) line: u32,
    pub(super) kind: Kind,
}

impl Token {
    /// A token before any was read.
    pub(super) const NONE: Self = Token {
        pos: 0,
        end: 0,
        line: 0,
        kind: Kind::Error,
    };

    /// As messages show it, if `text` is its text.
    pub(super) fn shown(self, text: &[u8]) -> String {
        match self.kind {
            Kind::Eof => "EOF".into(),
            kind if kind.is_keyword() => format!("<{}>", String::from_utf8_lossy(text)),
            _ if text.len() > 10 => format!("{}...", quote(utf8::prefix(text, 10))),
            _ => quote(text),
        }
    }
}
