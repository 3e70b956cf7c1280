//! Tokens of template text and their form in messages.

use mainstay_gostd::quote::quote;
use mainstay_gostd::utf8;

/// Kind of a token.
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
    // Keywords. Messages show them in angle brackets.
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

/// A token. Its size is two words, so that it is passed in registers. The lexer's `token_text` returns its
/// text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Start offset in bytes.
    pub(super) pos: u32,
    /// End offset in bytes. Equal to `pos` for an error; its text is stored in the lexer.
    pub(super) end: u32,
    /// Line of the start, starting at 1.
    pub(super) line: u32,
    pub(super) kind: Kind,
}

impl Token {
    /// Creates the token before the first one.
    pub(super) const NONE: Self = Token {
        pos: 0,
        end: 0,
        line: 0,
        kind: Kind::Error,
    };

    /// Formats the token for messages. `text` is the token's text.
    pub(super) fn describe(self, text: &[u8]) -> String {
        match self.kind {
            Kind::Eof => "EOF".into(),
            kind if kind.is_keyword() => format!("<{}>", String::from_utf8_lossy(text)),
            _ if text.len() > 10 => format!("{}...", quote(utf8::prefix(text, 10))),
            _ => quote(text),
        }
    }
}
