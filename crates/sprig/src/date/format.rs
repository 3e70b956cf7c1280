//! Formatting of times with a layout, as in Go's `Time.Format`.

use super::civil::{Civil, MONTHS, WEEKDAYS};
use super::layout::{Element, Fraction, Offset, next_chunk};

/// A time in a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local<'a> {
    /// Seconds since 1970 in UTC.
    pub(super) seconds: i64,
    pub(super) nanos: u32,
    /// Abbreviation of the zone. May be empty.
    pub(super) zone: &'a [u8],
    /// Offset of the zone in seconds east of UTC.
    pub(super) offset: i64,
}

impl Local<'_> {
    /// Returns the date and time of day in the zone.
    pub(super) fn civil(&self) -> Civil {
        Civil::from_seconds(self.seconds.wrapping_add(self.offset))
    }

    /// Formats this time with `layout`.
    pub(super) fn format(&self, layout: &[u8]) -> Vec<u8> {
        let civil = self.civil();
        let mut out = Vec::with_capacity(layout.len() + 10);
        let mut rest = layout;
        while !rest.is_empty() {
            let chunk = next_chunk(rest);
            out.extend_from_slice(chunk.prefix);
            let Some((element, _)) = chunk.element else { break };
            self.push_element(&mut out, &civil, element);
            rest = chunk.rest;
        }
        out
    }

    fn push_element(&self, out: &mut Vec<u8>, civil: &Civil, element: Element) {
        let hour12 = if civil.hour.is_multiple_of(12) {
            12
        } else {
            civil.hour % 12
        };
        match element {
            Element::Year => push_number(out, civil.year.abs() % 100, 2),
            Element::LongYear => push_number(out, civil.year, 4),
            Element::LongMonth => out.extend_from_slice(month(civil.month).as_bytes()),
            Element::Month => out.extend_from_slice(short_name(month(civil.month))),
            Element::NumMonth => push_number(out, civil.month, 0),
            Element::ZeroMonth => push_number(out, civil.month, 2),
            Element::LongWeekday => out.extend_from_slice(weekday(civil.weekday).as_bytes()),
            Element::Weekday => out.extend_from_slice(short_name(weekday(civil.weekday))),
            Element::Day => push_number(out, civil.day, 0),
            Element::UnderDay => push_padded(out, civil.day, 2),
            Element::ZeroDay => push_number(out, civil.day, 2),
            Element::UnderYearDay => push_padded(out, civil.year_day, 3),
            Element::ZeroYearDay => push_number(out, civil.year_day, 3),
            Element::Hour => push_number(out, civil.hour, 2),
            Element::Hour12 => push_number(out, hour12, 0),
            Element::ZeroHour12 => push_number(out, hour12, 2),
            Element::Minute => push_number(out, civil.minute, 0),
            Element::ZeroMinute => push_number(out, civil.minute, 2),
            Element::Second => push_number(out, civil.second, 0),
            Element::ZeroSecond => push_number(out, civil.second, 2),
            Element::UpperPm => out.extend_from_slice(if civil.hour >= 12 { b"PM" } else { b"AM" }),
            Element::LowerPm => out.extend_from_slice(if civil.hour >= 12 { b"pm" } else { b"am" }),
            Element::ZoneName if !self.zone.is_empty() => out.extend_from_slice(self.zone),
            Element::ZoneName => self.push_offset(out, UNNAMED_ZONE_OFFSET),
            Element::Offset(form) => self.push_offset(out, form),
            Element::Fraction(form) => self.push_fraction(out, form),
        }
    }

    fn push_offset(&self, out: &mut Vec<u8>, form: Offset) {
        if form.iso && self.offset == 0 {
            out.push(b'Z');
            return;
        }
        // The sign is the sign of the total number of minutes.
        let minutes = self.offset / 60;
        out.push(if minutes < 0 { b'-' } else { b'+' });
        let seconds = if minutes < 0 { -self.offset } else { self.offset } % 60;
        push_number(out, minutes.abs() / 60, 2);
        if form.colons {
            out.push(b':');
        }
        if form.minutes {
            push_number(out, minutes.abs() % 60, 2);
        }
        if form.seconds {
            if form.colons {
                out.push(b':');
            }
            push_number(out, seconds, 2);
        }
    }

    fn push_fraction(&self, out: &mut Vec<u8>, form: Fraction) {
        if form.trim && (form.digits == 0 || self.nanos == 0) {
            return;
        }
        let digits = format!("{:09}", self.nanos);
        let kept = digits.get(..form.digits.min(9)).unwrap_or(&digits);
        let kept = if form.trim {
            kept.trim_end_matches('0')
        } else {
            kept
        };
        if !(form.trim && kept.is_empty()) {
            out.push(if form.comma { b',' } else { b'.' });
            out.extend_from_slice(kept.as_bytes());
        }
    }
}

/// Format of the offset that replaces the name of an unnamed zone.
const UNNAMED_ZONE_OFFSET: Offset = Offset {
    iso: false,
    colons: false,
    minutes: true,
    seconds: false,
};

fn push_number(out: &mut Vec<u8>, value: impl Into<i64>, width: usize) {
    let value = value.into();
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(format!("{:0width$}", value.unsigned_abs()).as_bytes());
}

fn push_padded(out: &mut Vec<u8>, value: u32, width: usize) {
    out.extend_from_slice(format!("{value:>width$}").as_bytes());
}

/// Returns the name of month `number`, starting at 1.
pub(super) fn month(number: u32) -> &'static str {
    MONTHS
        .get(number.wrapping_sub(1) as usize)
        .copied()
        .unwrap_or_default()
}

/// Returns the name of weekday `number`, starting at 0 for Sunday.
pub(super) fn weekday(number: u32) -> &'static str {
    WEEKDAYS.get(number as usize).copied().unwrap_or_default()
}

fn short_name(name: &str) -> &[u8] {
    name.as_bytes().get(..3).unwrap_or_default()
}
