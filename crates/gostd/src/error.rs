//! Formats errors with their causes, as Go's wrapped errors print.

use std::error::Error;

/// Formats an error with its causes, joined by `: `. Omits a cause if the text before it already ends with
/// the same text: some libraries include the source of an error in its message.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    for cause in causes.map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct ConnectionFailed;

    #[derive(Debug, thiserror::Error)]
    #[error("connect")]
    struct Plain(#[source] ConnectionFailed);

    #[derive(Debug, thiserror::Error)]
    #[error("request: {0}")]
    struct Repeating(#[source] ConnectionFailed);

    #[test]
    fn repeated_causes_are_omitted() {
        assert_eq!(chain(&Plain(ConnectionFailed)), "connect: connection refused");
        assert_eq!(chain(&Repeating(ConnectionFailed)), "request: connection refused");
    }
}
