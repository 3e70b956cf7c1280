//! Errors of parsing and execution, with Go's messages and positions.

/// Error of a failed parse or run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// Complete message, identical to Go's.
    pub text: String,
    /// Positions of the failure, innermost last.
    pub at: Vec<Position>,
    /// The exceeded limit, if that is the cause.
    pub limit_exceeded: Option<crate::LimitExceeded>,
}

/// A position in template text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name under which the text was parsed.
    pub template: String,
    /// Line, starting at 1.
    pub line: u32,
    /// Column in bytes, starting at 0, as in Go's run-time errors. `None` in parse errors, which have no
    /// column in Go.
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
