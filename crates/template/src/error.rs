//! Why a template could not be parsed or run, in Go's words and with a position.

/// A failed parse or run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The whole message, as Go words it.
    pub text: String,
    /// Where it happened, innermost last.
    pub at: Vec<Position>,
    /// The limit that was reached, if that is why.
    pub limit_exceeded: Option<crate::LimitExceeded>,
}

/// A place in template text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name the text was parsed under.
    pub template: String,
    /// From 1.
    pub line: u32,
    /// In bytes from 0, as Go counts in run-time errors; `None` in parse errors, which Go gives no column.
    pub column: Option<u32>,
}

impl Error {
    /// An error without a position.
    pub(crate) fn plain(text: String) -> Self {
        Self {
            text,
            at: Vec::new(),
            limit_exceeded: None,
        }
    }
}
