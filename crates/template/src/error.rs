//! Errors of parsing and execution, in Go's words and with a position.

/// A failed parse or run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The whole message, in Go's words.
    pub text: String,
    /// The positions of the failure, innermost last.
    pub at: Vec<Position>,
    /// The limit that was exceeded, if that is the cause.
    pub limit_exceeded: Option<crate::LimitExceeded>,
}

/// A position in template text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name under which the text was parsed.
    pub template: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes from 0, as in Go's run-time errors; `None` in parse errors, which have no column in
    /// Go.
    pub column: Option<u32>,
}

impl Error {
    /// Creates an error without a position.
    pub(crate) fn plain(text: String) -> Self {
        Self {
            text,
            at: Vec::new(),
            limit_exceeded: None,
        }
    }
}
