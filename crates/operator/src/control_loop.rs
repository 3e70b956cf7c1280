//! Intervals of the control loops.

use std::time::Duration;

use jiff::Timestamp;

/// Minimum time between two iterations of a loop without an event.
const MIN_ITERATION_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time between two iterations of a loop.
pub(crate) const MAX_ITERATION_INTERVAL: Duration = Duration::from_secs(20);
/// Interval of checks whether the fence is open, while this process may not write.
pub(crate) const FENCED_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of checks whether the CRDs of a controller are installed.
pub(crate) const CRD_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Returns the time until the next iteration of a loop. `due` is the earliest due time, or `None` if nothing
/// is scheduled.
pub(crate) fn time_to_next_iteration(now: Timestamp, due: Option<Timestamp>) -> Duration {
    let wait = due.map_or(MAX_ITERATION_INTERVAL, |due| {
        Duration::try_from(due.duration_since(now)).unwrap_or_default()
    });
    wait.clamp(MIN_ITERATION_INTERVAL, MAX_ITERATION_INTERVAL)
}
