//! Time limits of a rehearsal, derived from the Istio's settings and the workloads.

use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::grace_period;
use mainstay_mesh::migration::MigrationSettings;

use crate::cluster_model::ClusterModel;
use crate::input::Input;
use crate::request::PlannedUpgrade;

/// Maximum virtual duration of a rehearsal, and the addition per workload.
const MAX_DURATION: Duration = Duration::from_hours(24);
const MAX_DURATION_PER_WORKLOAD: Duration = Duration::from_mins(15);
/// Margin that is added to the longest timeout to determine the idle time.
const MARGIN: Duration = Duration::from_mins(2);
/// Maximum time for the current state to settle.
const WARM_UP: Duration = Duration::from_mins(15);

/// Time limits of a rehearsal.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Start of the virtual clock.
    pub(crate) start: Timestamp,
    /// Maximum time for the current state to settle.
    pub(crate) warm_up: Duration,
    /// Idle time after which the rehearsal ends.
    pub(crate) idle: Duration,
    /// Maximum duration.
    pub(crate) max: Duration,
}

impl Limits {
    pub(crate) fn for_upgrade(input: &Input, planned: &PlannedUpgrade, model: &ClusterModel) -> Self {
        let settings = MigrationSettings::from_istio(&planned.target).unwrap_or_default();
        let timeout = Duration::try_from(settings.readiness_timeout).unwrap_or_default();
        let delay = Duration::try_from(settings.delay_between_batches).unwrap_or_default();
        let grace = Duration::try_from(grace_period(&planned.target)).unwrap_or_default();
        let idle = timeout
            .max(model.annotated_timeout)
            .max(delay)
            .max(grace)
            .saturating_add(MARGIN);
        let each = MAX_DURATION_PER_WORKLOAD.max(timeout.saturating_add(delay));
        let count = u32::try_from(model.workloads.len()).unwrap_or(u32::MAX);
        Self {
            start: start(input),
            warm_up: WARM_UP,
            idle,
            max: MAX_DURATION
                .saturating_add(idle)
                .saturating_add(each.saturating_mul(count)),
        }
    }
}

/// Returns the start of the virtual clock: the first whole second after every timestamp of the input.
fn start(input: &Input) -> Timestamp {
    let usual = mainstay_harness::ClusterOptions::default().start;
    let taken = input.taken.map_or(usual, |taken| {
        Timestamp::from_second(taken.as_second().saturating_add(1)).unwrap_or(usual)
    });
    // The end of the rehearsal must not exceed the maximum timestamp.
    let last = Timestamp::MAX.as_second() - 400 * 24 * 3600;
    Timestamp::from_second(taken.as_second().clamp(0, last)).unwrap_or(usual)
}
