//! Syntax errors of regular expressions, with the messages of Go's regexp/syntax.

use mainstay_gostd::utf8::to_string_lossy;

/// Error of parsing a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{part}`")]
pub struct RegexError {
    reason: Reason,
    part: String,
}

/// Kind of a syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
    #[error("invalid character class range")]
    CharRange,
    #[error("invalid escape sequence")]
    Escape,
    #[error("invalid named capture")]
    NamedCapture,
    #[error("invalid or unsupported Perl syntax")]
    PerlOp,
    #[error("invalid nested repetition operator")]
    RepeatOp,
    #[error("invalid repeat count")]
    RepeatSize,
    #[error("invalid UTF-8")]
    Utf8,
    #[error("missing closing ]")]
    MissingBracket,
    #[error("missing closing )")]
    MissingParen,
    #[error("missing argument to repetition operator")]
    MissingRepeatArgument,
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    #[error("unexpected )")]
    UnexpectedParen,
    #[error("expression nests too deeply")]
    NestingDepth,
    #[error("expression too large")]
    Large,
}

impl RegexError {
    pub(super) fn is_too_large(&self) -> bool {
        self.reason == Reason::Large
    }
}

impl Reason {
    /// Creates the error for `part` of the expression, which the message quotes.
    pub(super) fn at(self, part: &[u8]) -> RegexError {
        RegexError {
            reason: self,
            part: to_string_lossy(part).into_owned(),
        }
    }
}
