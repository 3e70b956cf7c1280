//! Calendar arithmetic for the whole range of Go's `time.Time`, which wraps around at 64 bits.

const SECONDS_PER_DAY: u64 = 86_400;
const DAYS_PER_ERA: u64 = 146_097;
/// First year of Go's calculations, a multiple of 400. No representable time is before it.
const FIRST_YEAR: i64 = -292_277_022_400;
/// Number of days from 1 March of [`FIRST_YEAR`] to 1 January of year 1.
const DAYS_TO_YEAR_ONE: u64 = FIRST_YEAR.unsigned_abs() / 400 * DAYS_PER_ERA + 306;
/// Number of seconds from 1 January of year 1 to 1 January 1970.
pub(super) const YEAR_ONE_TO_UNIX: i64 = 62_135_596_800;
const FIRST_TO_UNIX: u64 = (DAYS_TO_YEAR_ONE * SECONDS_PER_DAY).wrapping_add(YEAR_ONE_TO_UNIX as u64);

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// Month, starting at 1.
    pub(crate) month: u32,
    /// Day of the month, starting at 1.
    pub(crate) day: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
    /// Day of the week, starting at 0 for Sunday.
    pub(crate) weekday: u32,
    /// Day of the year, starting at 1.
    pub(crate) year_day: u32,
}

impl Civil {
    /// Returns the date and time `seconds` after 1970. `seconds` may include a zone offset.
    pub(crate) fn from_seconds(seconds: i64) -> Self {
        let absolute = (seconds as u64).wrapping_add(FIRST_TO_UNIX);
        let (days, clock) = (absolute / SECONDS_PER_DAY, (absolute % SECONDS_PER_DAY) as u32);
        let era_day = days % DAYS_PER_ERA;
        let era_year = (era_day - era_day / 1_460 + era_day / 36_524 - era_day / 146_096) / 365;
        // Days and months are counted from March, so that the leap day is the last day.
        let day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
        let month = (5 * day + 2) / 153;
        let day_of_month = (day - (153 * month + 2) / 5 + 1) as u32;
        let month = if month < 10 { month + 3 } else { month - 9 } as u32;
        let year = FIRST_YEAR + (days / DAYS_PER_ERA * 400 + era_year) as i64 + i64::from(month <= 2);
        Self {
            year,
            month,
            day: day_of_month,
            hour: clock / 3_600,
            minute: clock / 60 % 60,
            second: clock % 60,
            weekday: ((days + FIRST_WEEKDAY) % 7) as u32,
            year_day: days_before(month, year) + day_of_month,
        }
    }
}

/// Weekday of 1 March of [`FIRST_YEAR`]: Wednesday.
const FIRST_WEEKDAY: u64 = 3;

/// Returns the number of seconds from 1970 to midnight of a date. Month and day may be out of range.
pub(super) fn seconds_at(year: i64, month: i64, day: i64) -> i64 {
    let year = year.wrapping_add((month - 1).div_euclid(12));
    let month = (month - 1).rem_euclid(12) + 1;
    let march_year = year.wrapping_sub(i64::from(month <= 2));
    let march_month = (month + 9) % 12;
    let era = march_year.div_euclid(400);
    let era_year = march_year.rem_euclid(400);
    let era_day = 365 * era_year + era_year / 4 - era_year / 100 + (153 * march_month + 2) / 5;
    // 719,468 is the number of days from 1 March of year 0 to 1970.
    let days = era
        .wrapping_mul(DAYS_PER_ERA as i64)
        .wrapping_add(era_day - 719_468)
        .wrapping_add(day.wrapping_sub(1));
    days.wrapping_mul(SECONDS_PER_DAY as i64)
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in(month: u32, year: i64) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before(month: u32, year: i64) -> u32 {
    (1..month).map(|month| days_in(month, year)).sum()
}
