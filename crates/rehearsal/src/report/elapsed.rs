//! Virtual time since the start of the upgrade.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds of virtual time since the start of the upgrade; also used for durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// Creates an elapsed time from seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Elapsed {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Elapsed> for Duration {
    fn from(elapsed: Elapsed) -> Self {
        Self::from_millis(elapsed.0)
    }
}

impl fmt::Display for Elapsed {
    /// Formats as `0.4s`, `12s`, `3m05s` or `2h07m`: with tenths below ten seconds, without seconds from
    /// one hour.
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
