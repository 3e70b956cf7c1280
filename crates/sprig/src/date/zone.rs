//! Named time zones from the embedded database, without access to the machine's zone or files.

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::format::Local;
use super::time::Time;

/// Formats `time` with `layout` in the zone `name`, or in UTC if there is no such zone.
pub(super) fn format_in(time: &Time, name: &[u8], layout: &[u8]) -> Vec<u8> {
    let (seconds, nanos) = (time.seconds, time.nanos);
    let (zone, offset) = lookup(name, seconds).unwrap_or_else(|| ("UTC".into(), 0));
    Local {
        seconds,
        nanos,
        zone: zone.as_bytes(),
        offset,
    }
    .format(layout)
}

fn lookup(name: &[u8], seconds: i64) -> Option<(String, i64)> {
    let name = std::str::from_utf8(name).ok()?;
    if matches!(name, "" | "UTC" | "Local") {
        return None;
    }
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    // The database ignores case; Go does not.
    zone.iana_name().filter(|known| *known == name)?;
    let info = zone.to_offset_info(Timestamp::from_second(to_database_range(seconds)).ok()?);
    Some((info.abbreviation().to_owned(), i64::from(info.offset().seconds())))
}

/// Number of seconds after which the calendar, including weekdays, and the rules of a zone repeat: 400
/// years.
const CYCLE: i64 = 146_097 * 86_400;

/// Returns a time in the range of the database at which every zone has the same offset as at `seconds`.
fn to_database_range(seconds: i64) -> i64 {
    let (min, max) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    if seconds <= max {
        return seconds.max(min);
    }
    let start = max - CYCLE;
    start + (seconds - start) % CYCLE
}
