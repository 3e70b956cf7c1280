//! What time it is: takes nothing, gives moments that never go back. Tests bring their own.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

/// A source of moments; clones are the same one.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

impl Clock {
    /// Whatever this function says.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The machine's time at the start of the process, moved on by its monotonic clock: a correction of the machine's time neither
    /// shortens a grace period nor lengthens a pause.
    #[must_use]
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// This moment, moved on by tokio's clock, which tests may pause.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let begun = Instant::now();
        Self::new(move || start.checked_add(begun.elapsed()).unwrap_or(Timestamp::MAX))
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}
