//! Formats errors with their causes, as Go's wrapped errors print.

use std::error::Error;

/// Formats an error with its causes, joined by `: `. A cause that ends the text already is left out: some
/// libraries print the source of an error in its own text.
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
    fn causes_are_joined_once() {
        assert_eq!(chain(&Plain(ConnectionFailed)), "connect: connection refused");
        assert_eq!(chain(&Repeating(ConnectionFailed)), "request: connection refused");
    }
}
