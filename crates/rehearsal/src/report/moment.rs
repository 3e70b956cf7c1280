//! A moment of virtual time: milliseconds since the upgrade began. Also used for stretches of time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since the upgrade began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// So many seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// How long after another moment; nothing if before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Moment {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Moment> for Duration {
    fn from(moment: Moment) -> Self {
        Self::from_millis(moment.0)
    }
}

impl fmt::Display for Moment {
    /// For people: `0.4s`, `12s`, `3m05s`, `2h07m`. Below ten seconds with a tenth, above an hour without seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.saturating_add(50) / 100;
        let seconds = self.0.saturating_add(500) / 1000;
        let minutes = seconds / 60;
        match () {
            () if tenths == 0 => f.write_str("0s"),
            () if tenths < 100 && tenths.is_multiple_of(10) => write!(f, "{}s", tenths / 10),
            () if tenths < 100 => write!(f, "{}.{}s", tenths / 10, tenths % 10),
            () if seconds < 60 => write!(f, "{seconds}s"),
            () if minutes < 60 => write!(f, "{minutes}m{:02}s", seconds % 60),
            () => write!(f, "{}h{:02}m", minutes / 60, minutes % 60),
        }
    }
}
