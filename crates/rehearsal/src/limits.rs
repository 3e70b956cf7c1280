//! How long to play: takes an Istio and its workloads, gives when the silence is long enough to be the end.

use std::time::Duration;

use jiff::Timestamp;
use mainstay_api::names;
use mainstay_mesh::grace_period;
use mainstay_mesh::migration::{MigrationSettings, parse_readiness_timeout};
use mainstay_mesh::workload::WorkloadKind;
use serde_json::Value;

use crate::input::{Input, at};
use crate::wish::Plot;

/// Nobody rehearses longer than this, in virtual time; and so much more for every workload.
const LONGEST: Duration = Duration::from_hours(24);
const LONGEST_EACH: Duration = Duration::from_mins(15);
/// A silence longer than everything one could wait for.
const MARGIN: Duration = Duration::from_mins(2);
/// Until the present state has come to rest.
const WARM_UP: Duration = Duration::from_mins(15);

/// How long to play.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// When the clock starts.
    pub(crate) start: Timestamp,
    /// How long the present may take to come to rest.
    pub(crate) warm_up: Duration,
    /// How long nothing must have happened.
    pub(crate) quiet: Duration,
    /// How long at most.
    pub(crate) most: Duration,
}

impl Limits {
    pub(crate) fn of(input: &Input, plot: &Plot, workloads: usize) -> Self {
        let settings = MigrationSettings::from_istio(&plot.wanted).unwrap_or_default();
        let timeout = Duration::try_from(settings.readiness_timeout).unwrap_or_default();
        let delay = Duration::try_from(settings.delay_between_batches).unwrap_or_default();
        let grace = Duration::try_from(grace_period(&plot.wanted)).unwrap_or_default();
        let workloads_of = |kind: &WorkloadKind| input.of_kind(kind.name());
        let own = WorkloadKind::ALL
            .iter()
            .flat_map(workloads_of)
            .filter_map(own_timeout)
            .max()
            .unwrap_or_default();
        let quiet = timeout.max(own).max(delay).max(grace).saturating_add(MARGIN);
        let each = LONGEST_EACH.max(timeout.saturating_add(delay));
        let count = u32::try_from(workloads).unwrap_or(u32::MAX);
        Self {
            start: start(input),
            warm_up: WARM_UP,
            quiet,
            most: LONGEST
                .saturating_add(quiet)
                .saturating_add(each.saturating_mul(count)),
        }
    }
}

/// A whole second after everything in the input.
fn start(input: &Input) -> Timestamp {
    let usual = mainstay_harness::ClusterOptions::default().start;
    let taken = input.taken.map_or(usual, |taken| {
        Timestamp::from_second(taken.as_second().saturating_add(1)).unwrap_or(usual)
    });
    // Far enough from the end of time that a rehearsal fits.
    let last = Timestamp::MAX.as_second() - 400 * 24 * 3600;
    Timestamp::from_second(taken.as_second().clamp(0, last)).unwrap_or(usual)
}

fn own_timeout(object: &Value) -> Option<Duration> {
    let text = at(object, "/metadata/annotations")?
        .get(names::READINESS_TIMEOUT)?
        .as_str()?;
    Duration::try_from(parse_readiness_timeout(text)?).ok()
}
