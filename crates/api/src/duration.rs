//! Duration fields in Go's format (`1h2m3.5s`).

use std::fmt;

use jiff::SignedDuration;
pub use mainstay_gostd::time::DurationError;
use mainstay_gostd::time::{format_duration, parse_duration};
use serde::{Deserialize, Serialize};

/// A duration field. It is stored as text, so that an object with an invalid duration can be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(pub String);

impl GoDuration {
    /// Parses the duration.
    pub fn span(&self) -> Result<SignedDuration, DurationError> {
        parse_duration(&self.0).map(SignedDuration::from_nanos)
    }
}

impl From<SignedDuration> for GoDuration {
    /// Formats a duration like Go: `5m0s`, `1.5s`, `20ms`, `0s`.
    fn from(span: SignedDuration) -> Self {
        let limit = if span.is_negative() { i64::MIN } else { i64::MAX };
        let nanoseconds = i64::try_from(span.as_nanos()).unwrap_or(limit);
        Self(format_duration(nanoseconds))
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_formatted_as_in_go() {
        let span = GoDuration("1h15m30.918s".into()).span().unwrap();
        assert_eq!(span, SignedDuration::from_millis(4_530_918));
        assert_eq!(GoDuration::from(span).0, "1h15m30.918s");
        assert_eq!(
            GoDuration::from(SignedDuration::MAX).0,
            "2562047h47m16.854775807s"
        );
        assert_eq!(
            GoDuration::from(SignedDuration::MIN).0,
            "-2562047h47m16.854775808s"
        );
    }

    #[test]
    fn errors_equal_those_of_go() {
        let error = GoDuration("1d".into()).span().unwrap_err();
        assert_eq!(error.to_string(), "time: unknown unit \"d\" in duration \"1d\"");
    }
}
