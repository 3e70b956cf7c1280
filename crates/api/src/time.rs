//! Timestamps in the format of Kubernetes: RFC 3339, whole seconds, UTC.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A timestamp that is truncated to whole seconds, like `metav1.Time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// Truncates a timestamp to whole seconds.
    #[must_use]
    pub fn from_timestamp(timestamp: Timestamp) -> Self {
        Self(Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp))
    }

    /// Returns the timestamp.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Returns the timestamp plus `delay`, or the maximum timestamp on overflow.
    #[must_use]
    pub fn after(self, delay: SignedDuration) -> Timestamp {
        self.0.checked_add(delay).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self::from_timestamp).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, written: Option<&str>) {
        let read = serde_json::from_value::<Time>(text.into()).ok();
        assert_eq!(read.map(|time| time.to_string()).as_deref(), written, "{text}");
    }

    #[test]
    fn timestamps_are_truncated_to_seconds_in_utc() {
        check("2026-11-15T16:48:21Z", Some("2026-11-15T16:48:21Z"));
        check("2026-11-15T16:48:21.999Z", Some("2026-11-15T16:48:21Z"));
        check("2026-11-15T18:48:21+02:00", Some("2026-11-15T16:48:21Z"));
        check("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00Z"));
    }

    #[test]
    fn invalid_timestamps_are_rejected() {
        for text in ["", "yesterday", "2026-11-15", "2026-13-15T00:00:00Z"] {
            check(text, None);
        }
    }
}
