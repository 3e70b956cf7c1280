//! Virtual time: instants, their formats in Kubernetes, and a clock that is advanced explicitly. The system
//! clock is never read.

use std::fmt;
use std::time::Duration;

/// An instant of virtual time, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

impl Instant {
    /// Returns the instant `micros` microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the instant `seconds` seconds after the epoch.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Returns the microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the instant `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns the instant `seconds` later, or earlier if negative.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Formats the instant as `metav1.Time`, in whole seconds.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let (date, time) = self.date_and_time();
        format!("{date}T{time}Z")
    }

    /// Formats the instant as `metav1.MicroTime`.
    #[must_use]
    pub fn rfc3339_micro(self) -> String {
        let (date, time) = self.date_and_time();
        format!("{date}T{time}.{:06}Z", self.0.rem_euclid(1_000_000))
    }

    /// Parses an RFC 3339 time with any offset. The fraction of a second is optional.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't'])?;
        let (clock, offset) = split_offset(rest)?;
        let mut ymd = date.splitn(3, '-').map(str::parse::<i64>);
        let (year, month, day) = (ymd.next()?.ok()?, ymd.next()?.ok()?, ymd.next()?.ok()?);
        let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut hms = whole.splitn(3, ':').map(str::parse::<i64>);
        let (hour, minute, second) = (hms.next()?.ok()?, hms.next()?.ok()?, hms.next()?.ok()?);
        let in_range = (0..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..=60).contains(&second);
        if !in_range {
            return None;
        }
        let seconds =
            days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
        Some(Self(seconds * 1_000_000 + parse_fraction(fraction)?))
    }

    fn date_and_time(self) -> (String, String) {
        let seconds = self.as_seconds();
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let rest = seconds.rem_euclid(86_400);
        (
            format!("{year:04}-{month:02}-{day:02}"),
            format!("{:02}:{:02}:{:02}", rest / 3_600, rest % 3_600 / 60, rest % 60),
        )
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339_micro())
    }
}

/// Returns the microseconds of the digits after the decimal point.
fn parse_fraction(fraction: &str) -> Option<i64> {
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    digits.parse().ok()
}

/// Splits the offset in seconds from the time of day.
fn split_offset(rest: &str) -> Option<(&str, i64)> {
    if let Some(clock) = rest.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = rest.rfind(['+', '-'])?;
    let (clock, offset) = rest.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    Some((
        clock,
        sign * (hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60),
    ))
}

/// Returns the days since the epoch of a proleptic Gregorian date. Eras have 400 years, and years start in
/// March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns year, month and day, the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A virtual clock. It advances only when [`Clock::advance`] is called.
#[derive(Clone, Debug)]
pub struct Clock {
    now: Instant,
}

impl Clock {
    /// Creates a clock with the current time `start`.
    #[must_use]
    pub fn new(start: Instant) -> Self {
        Self { now: start }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Advances the clock.
    pub fn advance(&mut self, by: Duration) {
        self.now = self.now.plus(by);
    }
}

impl Default for Clock {
    /// Returns a clock that starts at 2026-01-01T00:00:00Z: arbitrary but fixed, so that traces are
    /// comparable.
    fn default() -> Self {
        Self::new(Instant::from_seconds(1_767_225_600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = Instant::parse(text).map_or_else(|| "none".to_owned(), Instant::rfc3339_micro);
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn rfc3339_is_parsed_and_formatted() {
        check("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z");
        check("2024-02-29T23:59:59.5Z", "2024-02-29T23:59:59.500000Z");
        check("2026-01-01T00:00:00+02:00", "2025-12-31T22:00:00.000000Z");
        check("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000Z");
        check("2026-13-01T00:00:00Z", "none");
        check("2026-01-01 00:00:00", "none");
        check("", "none");
        assert_eq!(Clock::default().now().rfc3339(), "2026-01-01T00:00:00Z");
    }
}
