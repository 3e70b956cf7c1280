//! Go's `time.Time`, without the monotonic clock.

use std::rc::Rc;

use super::civil::{Civil, YEAR_ONE_TO_UNIX, seconds_at};
use super::format::Local;

/// A time with its zone.
#[derive(Clone, Debug)]
pub(super) struct Time {
    /// Seconds since 1970.
    pub(super) seconds: i64,
    /// Nanoseconds within the second.
    pub(super) nanos: u32,
    pub(super) zone: Zone,
}

/// Zone of a time. Named zones are used for formatting only and are never stored in a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// `time.UTC`.
    Utc,
    /// `time.Local`, which is UTC: a render does not depend on the machine on which it runs.
    Local,
    /// Zone with a name, which may be empty, and an offset in seconds east of UTC.
    Fixed(Rc<[u8]>, i64),
}

impl Zone {
    /// Returns the abbreviation and the offset of the zone.
    fn abbreviation_and_offset(&self) -> (&[u8], i64) {
        match self {
            Self::Utc | Self::Local => (b"UTC", 0),
            Self::Fixed(name, offset) => (name, *offset),
        }
    }

    /// Returns the name as `Location.String` does.
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Self::Utc => b"UTC",
            Self::Local => b"Local",
            Self::Fixed(name, _) => name,
        }
    }
}

/// Layout of `Time.String`.
const STRING: &[u8] = b"2006-01-02 15:04:05.999999999 -0700 MST";
/// Layout of `Time.MarshalJSON`.
const RFC3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

impl Time {
    /// Creates a local time.
    pub(super) fn unix(seconds: i64) -> Self {
        Self {
            seconds,
            nanos: 0,
            zone: Zone::Local,
        }
    }

    /// Returns the local time `nanos` nanoseconds after 1970.
    pub(super) fn unix_nanos(nanos: i128) -> Self {
        let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        Self {
            seconds: seconds as i64,
            nanos: nanos as u32,
            zone: Zone::Local,
        }
    }

    /// Returns Go's zero time.
    pub(super) fn zero() -> Self {
        Self {
            seconds: -YEAR_ONE_TO_UNIX,
            nanos: 0,
            zone: Zone::Utc,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.seconds == -YEAR_ONE_TO_UNIX && self.nanos == 0
    }

    pub(super) fn local(&self) -> Local<'_> {
        let (zone, offset) = self.zone.abbreviation_and_offset();
        Local {
            seconds: self.seconds,
            nanos: self.nanos,
            zone,
            offset,
        }
    }

    pub(super) fn civil(&self) -> Civil {
        self.local().civil()
    }

    pub(super) fn format(&self, layout: &[u8]) -> Vec<u8> {
        self.local().format(layout)
    }

    pub(super) fn text(&self) -> Vec<u8> {
        self.format(STRING)
    }

    pub(super) fn json(&self) -> Vec<u8> {
        self.format(RFC3339_NANO)
    }

    /// Returns seconds and nanoseconds since year 1, which determine the order of times.
    pub(super) fn rank(&self) -> (i64, u32) {
        (self.seconds.wrapping_add(YEAR_ONE_TO_UNIX), self.nanos)
    }

    /// Returns the number of nanoseconds since year 1.
    fn total_nanos(&self) -> i128 {
        let (seconds, nanos) = self.rank();
        i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
    }

    fn with_total_nanos(&self, total: i128) -> Self {
        let (seconds, nanos) = (total.div_euclid(1_000_000_000), total.rem_euclid(1_000_000_000));
        let seconds = (seconds as i64).wrapping_sub(YEAR_ONE_TO_UNIX);
        Self {
            seconds,
            nanos: nanos as u32,
            zone: self.zone.clone(),
        }
    }

    /// Adds nanoseconds.
    pub(super) fn add(&self, nanos: i64) -> Self {
        self.with_total_nanos(self.total_nanos() + i128::from(nanos))
    }

    /// Returns the number of nanoseconds since `other`, limited to the range of a duration.
    pub(super) fn since(&self, other: &Self) -> i64 {
        let span = self.total_nanos() - other.total_nanos();
        span.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Truncates to a multiple of `unit` since year 1. If `round` is set, rounds to the nearest multiple
    /// instead.
    pub(super) fn truncate(&self, unit: i64, round: bool) -> Self {
        if unit <= 0 {
            return self.clone();
        }
        let (total, unit) = (self.total_nanos(), i128::from(unit));
        let rest = total.rem_euclid(unit);
        let up = round && 2 * rest >= unit;
        self.with_total_nanos(total - rest + if up { unit } else { 0 })
    }

    /// Adds years, months and days.
    pub(super) fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let civil = self.civil();
        let clock = i64::from(civil.hour * 3_600 + civil.minute * 60 + civil.second);
        let month = i64::from(civil.month).wrapping_add(months);
        let midnight = seconds_at(
            civil.year.wrapping_add(years),
            month,
            i64::from(civil.day).wrapping_add(days),
        );
        let (_, offset) = self.zone.abbreviation_and_offset();
        let seconds = midnight.wrapping_add(clock).wrapping_sub(offset);
        Self {
            seconds,
            nanos: self.nanos,
            zone: self.zone.clone(),
        }
    }
}
