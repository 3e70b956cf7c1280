//! Parsing of times with a layout, with the errors of Go's `time.Parse`.

use mainstay_gostd::time::{Quoted, parse_digits};

use super::civil::{MONTHS, WEEKDAYS, days_in, is_leap, seconds_at};
use super::layout::{Chunk, Element, Fraction, Offset, next_chunk};
use super::time::{Time, Zone};

/// Parses `value` with `layout`. A time without a zone is local, which is UTC.
pub(super) fn parse_time(layout: &[u8], value: &[u8]) -> Result<Time, ParseTimeError> {
    let mut fields = Fields::default();
    let (mut rest_layout, mut rest) = (layout, value);
    loop {
        let chunk = next_chunk(rest_layout);
        let mismatch = |element: &[u8], rest: &[u8]| ParseTimeError::Mismatch {
            value: value.to_vec(),
            layout: layout.to_vec(),
            rest: rest.to_vec(),
            element: element.to_vec(),
        };
        skip_literal(&mut rest, chunk.prefix).map_err(|()| mismatch(chunk.prefix, rest))?;
        let Chunk {
            element: Some((element, text)),
            rest: after,
            ..
        } = chunk
        else {
            break;
        };
        let held = rest;
        rest_layout = after;
        match fields.read(element, &mut rest, rest_layout) {
            Ok(()) => {}
            Err(ElementError::Value) => return Err(mismatch(text, held)),
            Err(ElementError::Range(what)) => return Err(invalid(value, format!(": {what} out of range"))),
        }
    }
    if !rest.is_empty() {
        return Err(invalid(value, format!(": extra text: {}", Quoted(rest))));
    }
    fields
        .finish()
        .map_err(|message| invalid(value, message.to_owned()))
}

/// Error of parsing a time, with the message of Go's `time.ParseError`.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseTimeError {
    /// `rest` of the value does not match `element` of the layout.
    #[error(
        "parsing time {} as {}: cannot parse {} as {}",
        Quoted(.value), Quoted(.layout), Quoted(.rest), Quoted(.element)
    )]
    Mismatch {
        value: Vec<u8>,
        layout: Vec<u8>,
        rest: Vec<u8>,
        element: Vec<u8>,
    },
    /// The value matches the layout but is invalid. `message` starts with its separator.
    #[error("parsing time {}{message}", Quoted(.value))]
    Invalid { value: Vec<u8>, message: String },
}

fn invalid(value: &[u8], message: String) -> ParseTimeError {
    ParseTimeError::Invalid {
        value: value.to_vec(),
        message,
    }
}

/// Error of parsing one element.
enum ElementError {
    /// The text has the wrong form.
    Value,
    /// The number is out of range for this field.
    Range(&'static str),
}

type Read<T = ()> = Result<T, ElementError>;

/// The fields parsed so far.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    /// Whether `PM` was read.
    pm: bool,
    /// Whether `AM` was read.
    am: bool,
    utc: bool,
    /// Offset in seconds east of UTC. An offset of -1 is treated as missing, since Go uses it as a marker.
    offset: Option<i64>,
    zone: Vec<u8>,
}

impl Fields {
    fn read(&mut self, element: Element, rest: &mut &[u8], layout: &[u8]) -> Read {
        match element {
            Element::Year => {
                let year = parse_signed(take_bytes(rest, 2)?)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Element::LongYear => {
                rest.first()
                    .filter(|b| b.is_ascii_digit())
                    .ok_or(ElementError::Value)?;
                self.year = parse_signed(take_bytes(rest, 4)?)?;
            }
            Element::Month => self.month = Some(parse_name(rest, &MONTHS, 3)?),
            Element::LongMonth => self.month = Some(parse_name(rest, &MONTHS, usize::MAX)?),
            Element::NumMonth | Element::ZeroMonth => {
                let month = parse_number(rest, element == Element::ZeroMonth)?;
                self.month = Some(check_range(month, 1, 12, "month")?);
            }
            Element::Weekday => drop(parse_name(rest, &WEEKDAYS, 3)?),
            Element::LongWeekday => drop(parse_name(rest, &WEEKDAYS, usize::MAX)?),
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                if element == Element::UnderDay {
                    *rest = rest.strip_prefix(b" ").unwrap_or(rest);
                }
                self.day = Some(parse_number(rest, element == Element::ZeroDay)?);
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                self.year_day = Some(parse_three_digits(rest, element == Element::ZeroYearDay)?);
            }
            Element::Hour => self.hour = check_range(parse_number(rest, false)?, 0, 23, "hour")?,
            Element::Hour12 | Element::ZeroHour12 => {
                self.hour = check_range(parse_number(rest, element == Element::ZeroHour12)?, 0, 12, "hour")?;
            }
            Element::Minute | Element::ZeroMinute => {
                self.minute = check_range(
                    parse_number(rest, element == Element::ZeroMinute)?,
                    0,
                    59,
                    "minute",
                )?;
            }
            Element::Second | Element::ZeroSecond => {
                self.second = check_range(
                    parse_number(rest, element == Element::ZeroSecond)?,
                    0,
                    59,
                    "second",
                )?;
                self.read_extra_fraction(rest, layout)?;
            }
            Element::UpperPm => self.read_am_pm(rest, b"PM", b"AM")?,
            Element::LowerPm => self.read_am_pm(rest, b"pm", b"am")?,
            Element::Offset(form) if form.iso && rest.starts_with(b"Z") => {
                take_bytes(rest, 1)?;
                self.utc = true;
            }
            Element::Offset(form) => {
                self.offset = Some(parse_offset(rest, form)?).filter(|offset| *offset != -1);
            }
            Element::ZoneName if rest.starts_with(b"UTC") => {
                take_bytes(rest, 3)?;
                self.utc = true;
            }
            Element::ZoneName => {
                let len = zone_name_len(rest).ok_or(ElementError::Value)?;
                self.zone = take_bytes(rest, len)?.to_vec();
            }
            Element::Fraction(form) => self.read_fraction(rest, form)?,
        }
        Ok(())
    }

    fn read_am_pm(&mut self, rest: &mut &[u8], pm: &[u8], am: &[u8]) -> Read {
        let half = take_bytes(rest, 2)?;
        self.pm |= half == pm;
        self.am |= half == am;
        if half == pm || half == am {
            Ok(())
        } else {
            Err(ElementError::Value)
        }
    }

    /// Parses a fraction of a second that is not in the layout.
    fn read_extra_fraction(&mut self, rest: &mut &[u8], layout: &[u8]) -> Read {
        let fraction = matches!(rest, [b'.' | b',', b'0'..=b'9', ..]);
        let layout_has_fraction = matches!(next_chunk(layout).element, Some((Element::Fraction(_), _)));
        if fraction && !layout_has_fraction {
            let len = 1 + rest.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
            self.nanos = parse_nanos(take_bytes(rest, len)?)?;
        }
        Ok(())
    }

    fn read_fraction(&mut self, rest: &mut &[u8], form: Fraction) -> Read {
        if !form.trim {
            self.nanos = parse_nanos(take_bytes(rest, form.digits + 1)?)?;
        } else if matches!(rest, [b'.' | b',', b'0'..=b'9', ..]) {
            let len = 1 + rest.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
            self.nanos = parse_nanos(take_bytes(rest, len)?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Time, &'static str> {
        if self.pm && self.hour < 12 {
            self.hour += 12;
        } else if self.am && self.hour == 12 {
            self.hour = 0;
        }
        let (month, day) = self.date()?;
        if day < 1 || day > days_in(month, self.year) {
            return Err(": day out of range");
        }
        let clock = i64::from(self.hour * 3_600 + self.minute * 60 + self.second);
        let seconds = seconds_at(self.year, i64::from(month), i64::from(day)) + clock;
        let nanos = self.nanos;
        Ok(match (self.utc, self.offset) {
            (true, _) => Time {
                seconds,
                nanos,
                zone: Zone::Utc,
            },
            (false, Some(offset)) => Time {
                seconds: seconds - offset,
                nanos,
                zone: self.zone_at(offset),
            },
            (false, None) if self.zone.is_empty() => Time {
                seconds,
                nanos,
                zone: Zone::Local,
            },
            (false, None) => {
                let offset = self
                    .zone
                    .strip_prefix(b"GMT")
                    .and_then(|hours| parse_signed(hours).ok())
                    .unwrap_or(0)
                    * 3_600;
                Time {
                    seconds,
                    nanos,
                    zone: Zone::Fixed(self.zone.into(), offset),
                }
            }
        })
    }

    /// Returns the local zone if it has this offset and name, or otherwise a fixed zone.
    fn zone_at(self, offset: i64) -> Zone {
        if offset == 0 && (self.zone.is_empty() || self.zone == b"UTC") {
            Zone::Local
        } else {
            Zone::Fixed(self.zone.into(), offset)
        }
    }

    fn date(&self) -> Result<(u32, u32), &'static str> {
        let Some(year_day) = self.year_day else {
            return Ok((self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        let leap = is_leap(self.year);
        if year_day < 1 || year_day > 365 + u32::from(leap) {
            return Err(": day-of-year out of range");
        }
        let (mut month, mut day) = (1, year_day);
        while day > days_in(month, self.year) {
            day -= days_in(month, self.year);
            month += 1;
        }
        if self.month.is_some_and(|read| read != month) {
            return Err(": day-of-year does not match month");
        }
        if self.day.is_some_and(|read| read != day) {
            return Err(": day-of-year does not match day");
        }
        Ok((month, day))
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8], len: usize) -> Read<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len).ok_or(ElementError::Value)?;
    *rest = after;
    Ok(taken)
}

fn check_range(value: u32, min: u32, max: u32, what: &'static str) -> Read<u32> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(ElementError::Range(what))
    }
}

/// Skips literal text. A run of spaces matches any run of spaces.
fn skip_literal(rest: &mut &[u8], prefix: &[u8]) -> Result<(), ()> {
    let mut prefix = prefix;
    while let Some((first, after)) = prefix.split_first() {
        if *first == b' ' {
            if rest.first().is_some_and(|b| *b != b' ') {
                return Err(());
            }
            prefix = trim_start_spaces(prefix);
            *rest = trim_start_spaces(rest);
            continue;
        }
        *rest = rest.strip_prefix(&[*first]).ok_or(())?;
        prefix = after;
    }
    Ok(())
}

fn trim_start_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|b| **b == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// Parses one or two digits, or exactly two if `fixed` is set.
fn parse_number(rest: &mut &[u8], fixed: bool) -> Read<u32> {
    let (value, len) = match *rest {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => (u32::from(a - b'0') * 10 + u32::from(b - b'0'), 2),
        [a @ b'0'..=b'9', ..] if !fixed => (u32::from(a - b'0'), 1),
        _ => return Err(ElementError::Value),
    };
    take_bytes(rest, len)?;
    Ok(value)
}

/// Parses up to three digits after optional spaces, or exactly three digits without spaces if `fixed` is
/// set.
fn parse_three_digits(rest: &mut &[u8], fixed: bool) -> Read<u32> {
    if !fixed {
        *rest = rest.strip_prefix(b" ").unwrap_or(rest);
        *rest = rest.strip_prefix(b" ").unwrap_or(rest);
    }
    let len = rest.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
    if len == 0 || fixed && len != 3 {
        return Err(ElementError::Value);
    }
    Ok(take_bytes(rest, len)?
        .iter()
        .fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

/// Parses a signed number.
fn parse_signed(text: &[u8]) -> Read<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, text),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(ElementError::Value);
    }
    let value = parse_digits(digits).ok_or(ElementError::Value)? as i64;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// Parses a name. Only its first `len` letters are compared, ignoring case. Returns its number, starting
/// at 1.
fn parse_name(rest: &mut &[u8], names: &[&str], len: usize) -> Read<u32> {
    for (name, number) in names.iter().zip(1..) {
        let name = name.as_bytes();
        let name = name.get(..len).unwrap_or(name);
        if rest
            .get(..name.len())
            .is_some_and(|text| text.eq_ignore_ascii_case(name))
        {
            take_bytes(rest, name.len())?;
            return Ok(number);
        }
    }
    Err(ElementError::Value)
}

/// Parses a separator and digits. Only the first nine digits are used.
fn parse_nanos(text: &[u8]) -> Read<u32> {
    let ([b'.' | b','], digits) = text.split_at_checked(1).ok_or(ElementError::Value)? else {
        return Err(ElementError::Value);
    };
    let digits = digits.get(..9).unwrap_or(digits);
    let value = parse_signed(digits)?;
    let value = u32::try_from(value).map_err(|_| ElementError::Range("fractional second"))?;
    Ok(value * 10_u32.pow(9 - digits.len() as u32))
}

fn parse_offset(rest: &mut &[u8], form: Offset) -> Read<i64> {
    let len = 3 + 2 * (usize::from(form.minutes) + usize::from(form.seconds));
    let colons = usize::from(form.colons) * (usize::from(form.minutes) + usize::from(form.seconds));
    let text = rest.get(..len + colons).ok_or(ElementError::Value)?;
    let step = if form.colons { 3 } else { 2 };
    let misplaced = form.colons && (text.get(3) != Some(&b':') || form.seconds && text.get(6) != Some(&b':'));
    if misplaced {
        return Err(ElementError::Value);
    }
    let field = |index: usize| {
        let mut digits = text.get(1 + index * step..3 + index * step).unwrap_or_default();
        parse_number(&mut digits, true)
    };
    let read = |wanted: bool, index: usize| if wanted { field(index) } else { Ok(0) };
    let (hours, minutes, seconds) = match (field(0), read(form.minutes, 1), read(form.seconds, 2)) {
        (Ok(hours), Ok(minutes), Ok(seconds)) => (hours, minutes, seconds),
        // Go also checks the fields before the first invalid one.
        (Ok(hours), minutes, _) => {
            check_range(minutes.unwrap_or(0), 0, 60, "time zone offset minute")?;
            check_range(hours, 0, 24, "time zone offset hour")?;
            return Err(ElementError::Value);
        }
        _ => return Err(ElementError::Value),
    };
    // Go reports the last field that is out of range.
    check_range(seconds, 0, 60, "time zone offset second")?;
    check_range(minutes, 0, 60, "time zone offset minute")?;
    check_range(hours, 0, 24, "time zone offset hour")?;
    let total = i64::from((hours * 60 + minutes) * 60 + seconds);
    let total = match text.first() {
        Some(b'+') => total,
        Some(b'-') => -total,
        _ => return Err(ElementError::Value),
    };
    take_bytes(rest, len + colons)?;
    Ok(total)
}

/// Returns the length of the zone abbreviation at the start of `text`, or `None` if there is none.
fn zone_name_len(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(after) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_hours_len(after));
    }
    if matches!(text, [b'+' | b'-', ..]) {
        return Some(signed_hours_len(text)).filter(|len| *len > 0);
    }
    let upper = text.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count();
    let fits = match upper {
        3 => true,
        4 => text.get(3) == Some(&b'T') || text.starts_with(b"WITA"),
        5 => text.get(4) == Some(&b'T'),
        _ => false,
    };
    fits.then_some(upper)
}

/// Returns the length of an offset in hours such as `+3` or `-11`, or zero for other texts and for hours
/// above 23.
fn signed_hours_len(text: &[u8]) -> usize {
    let [b'+' | b'-', after @ ..] = text else { return 0 };
    let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
    let hours = after.get(..digits).and_then(parse_digits);
    if digits > 0 && hours.is_some_and(|hours| hours <= 23) {
        digits + 1
    } else {
        0
    }
}
