//! Monotonic clock, which tests can replace.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

/// A monotonic clock. Clones share the same source of time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

impl Clock {
    /// Creates a clock that calls `now` for the current time.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Creates a clock that starts at the current system time and is advanced by the monotonic clock, so
    /// that a correction of the system time does not change a grace period.
    #[must_use]
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// Creates a clock that starts at `start` and is advanced by tokio's clock, which tests may pause.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let created = Instant::now();
        Self::new(move || start.checked_add(created.elapsed()).unwrap_or(Timestamp::MAX))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
