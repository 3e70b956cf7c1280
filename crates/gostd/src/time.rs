//! Parsing and formatting of durations in nanoseconds, as in Go's package `time`.

use std::fmt::{self, Write as _};

/// Nanoseconds per second.
pub const SECOND: i64 = 1_000_000_000;
/// Nanoseconds per minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Nanoseconds per hour.
pub const HOUR: i64 = 60 * MINUTE;

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND as u64),
    ("m", MINUTE as u64),
    ("h", HOUR as u64),
];

/// The reason why a text is not a duration. The messages are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of numbers and units, or does not fit 64 bits.
    #[error("time: invalid duration {}", Quoted(.text))]
    Invalid {
        /// Whole text of the duration.
        text: Vec<u8>,
    },
    /// A number has no unit.
    #[error("time: missing unit in duration {}", Quoted(.text))]
    MissingUnit {
        /// Whole text of the duration.
        text: Vec<u8>,
    },
    /// A unit does not exist.
    #[error("time: unknown unit {} in duration {}", Quoted(.unit), Quoted(.text))]
    UnknownUnit {
        /// The unit, as written.
        unit: Vec<u8>,
        /// Whole text of the duration.
        text: Vec<u8>,
    },
}

/// Text quoted as in messages of package `time`: bytes beyond ASCII in hexadecimal, unlike
/// [`crate::quote::quote`].
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                b' '..=0x7f => f.write_char(char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_char('"')
    }
}

/// Parses a duration such as `1h15m30.918s` (`time.ParseDuration`).
pub fn parse_duration(text: impl AsRef<[u8]>) -> Result<i64, DurationError> {
    let text = text.as_ref();
    let invalid = || DurationError::Invalid { text: text.to_vec() };
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if rest == b"0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let amount = Amount::parse(&mut rest).ok_or_else(invalid)?;
        let unit = parse_unit(&mut rest, text)?;
        total = amount
            .nanoseconds(unit)
            .and_then(|nanoseconds| total.checked_add(nanoseconds))
            .filter(|total| *total <= 1 << 63)
            .ok_or_else(invalid)?;
    }
    match (negative, i64::try_from(total)) {
        (true, _) => Ok((total as i64).wrapping_neg()),
        (false, Ok(total)) => Ok(total),
        (false, Err(_)) => Err(invalid()),
    }
}

/// Parses the unit at the start of `rest` into nanoseconds.
fn parse_unit(rest: &mut &[u8], text: &[u8]) -> Result<u64, DurationError> {
    let end = rest
        .iter()
        .position(|byte| *byte == b'.' || byte.is_ascii_digit())
        .unwrap_or(rest.len());
    let (name, after) = rest.split_at_checked(end).unwrap_or((rest, b""));
    if name.is_empty() {
        return Err(DurationError::MissingUnit { text: text.to_vec() });
    }
    *rest = after;
    let known = UNITS.iter().find(|(known, _)| known.as_bytes() == name);
    known
        .map(|(_, unit)| *unit)
        .ok_or_else(|| DurationError::UnknownUnit {
            unit: name.to_vec(),
            text: text.to_vec(),
        })
}

/// A decimal number: `whole + fraction / scale`.
struct Amount {
    whole: u64,
    fraction: u64,
    scale: f64,
}

impl Amount {
    fn parse(rest: &mut &[u8]) -> Option<Self> {
        let whole_digits = leading_digits(rest);
        let mut amount = Self {
            whole: parse_digits(whole_digits)?,
            fraction: 0,
            scale: 1.0,
        };
        *rest = rest.get(whole_digits.len()..)?;
        let mut any = !whole_digits.is_empty();
        if let Some(after) = rest.strip_prefix(b".") {
            let fraction = leading_digits(after);
            any |= !fraction.is_empty();
            amount.parse_fraction(fraction);
            *rest = after.get(fraction.len()..)?;
        }
        any.then_some(amount)
    }

    /// Parses the digits after the decimal point. Digits beyond 63 bits are dropped.
    fn parse_fraction(&mut self, digits: &[u8]) {
        for digit in digits {
            if self.fraction > (i64::MAX as u64) / 10 {
                return;
            }
            let next = self.fraction * 10 + u64::from(digit - b'0');
            if next > 1 << 63 {
                return;
            }
            self.fraction = next;
            self.scale *= 10.0;
        }
    }

    fn nanoseconds(&self, unit: u64) -> Option<u64> {
        if self.whole > (1 << 63) / unit {
            return None;
        }
        let mut total = self.whole * unit;
        if self.fraction > 0 {
            total += (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        }
        (total <= 1 << 63).then_some(total)
    }
}

fn leading_digits(text: &[u8]) -> &[u8] {
    text.get(..text.iter().take_while(|byte| byte.is_ascii_digit()).count())
        .unwrap_or_default()
}

/// Parses ASCII digits. Returns `None` if the value is greater than 2⁶³.
#[must_use]
pub fn parse_digits(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        if value > (1 << 63) / 10 {
            return None;
        }
        Some(value * 10 + u64::from(digit - b'0')).filter(|value| *value <= 1 << 63)
    })
}

/// Formats a duration such as `1h15m30.918s` (`Duration.String`).
#[must_use]
pub fn format_duration(nanoseconds: i64) -> String {
    let total = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let text = match total {
        0 => return "0s".into(),
        1..1_000 => format!("{total}ns"),
        1_000..1_000_000 => format!("{}µs", format_decimal(total, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", format_decimal(total, 6)),
        _ => format_hours_minutes_seconds(total),
    };
    format!("{sign}{text}")
}

fn format_hours_minutes_seconds(total: u64) -> String {
    let (minute, hour) = (MINUTE as u64, HOUR as u64);
    let seconds = format_decimal(total % minute, 9);
    match (total / hour, total / minute % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats `value` divided by 10^`places`, without trailing zeros.
fn format_decimal(value: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", value / unit)
}

/// Rounds to the nearest multiple of `unit`, halves away from zero (`Duration.Round`). If `unit` is not
/// positive, returns `nanoseconds` unchanged.
#[must_use]
pub fn round_duration(nanoseconds: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanoseconds;
    }
    let rest = (nanoseconds % unit).unsigned_abs();
    let towards_zero = nanoseconds - nanoseconds % unit;
    let up = rest + rest >= unit.unsigned_abs();
    match (up, nanoseconds < 0) {
        (false, _) => towards_zero,
        (true, true) => towards_zero.saturating_sub(unit),
        (true, false) => towards_zero.saturating_add(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let shown = parse_duration(text)
            .map(format_duration)
            .map_err(|error| error.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn durations_are_parsed_and_formatted_as_in_go() {
        check("30s", Ok("30s"));
        check("5m", Ok("5m0s"));
        check("1h", Ok("1h0m0s"));
        check("1h15m30.918s", Ok("1h15m30.918s"));
        check("-1.5h", Ok("-1h30m0s"));
        check("+2m30s", Ok("2m30s"));
        check(".5s", Ok("500ms"));
        check("1.s", Ok("1s"));
        check("0", Ok("0s"));
        check("0s", Ok("0s"));
        check("100ns", Ok("100ns"));
        check("1500us", Ok("1.5ms"));
        check("2µs", Ok("2µs"));
        check("0.1000000000000000000001h", Ok("6m0s"));
        check("9223372036854775807ns", Ok("2562047h47m16.854775807s"));
        check("-9223372036854775808ns", Ok("-2562047h47m16.854775808s"));
    }

    #[test]
    fn error_messages_equal_gos() {
        check("", Err("time: invalid duration \"\""));
        check("-", Err("time: invalid duration \"-\""));
        check("s", Err("time: invalid duration \"s\""));
        check(".s", Err("time: invalid duration \".s\""));
        check("1.2.3s", Err("time: missing unit in duration \"1.2.3s\""));
        check("30", Err("time: missing unit in duration \"30\""));
        check("1h30", Err("time: missing unit in duration \"1h30\""));
        check("1d", Err("time: unknown unit \"d\" in duration \"1d\""));
        check(
            "1é",
            Err("time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
        );
        check(
            "9223372036854775808ns",
            Err("time: invalid duration \"9223372036854775808ns\""),
        );
        check(
            "99999999999999999999h",
            Err("time: invalid duration \"99999999999999999999h\""),
        );
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!(round_duration(1_500, 1_000), 2_000);
        assert_eq!(round_duration(-1_500, 1_000), -2_000);
        assert_eq!(round_duration(1_499, 1_000), 1_000);
        assert_eq!(round_duration(7, 0), 7);
    }
}
