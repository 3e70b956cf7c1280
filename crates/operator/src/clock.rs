//! A monotonic source of time; tests provide their own.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

/// A source of time; clones share it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

impl Clock {
    /// Creates a clock that calls `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Creates a clock from the system time now, advanced by the monotonic clock: a correction of the system
    /// time changes no grace period.
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
