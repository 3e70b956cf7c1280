//! A span of time as Go writes it (`1h2m3.5s`): takes the text, gives nanoseconds or says what is wrong with it.

use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A duration field. It keeps the text: one bad duration must not make a whole object unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(pub String);

/// Why a text is no duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of the form number, unit, number, unit, …
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit nobody knows.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl GoDuration {
    /// The span.
    pub fn span(&self) -> Result<SignedDuration, DurationError> {
        let invalid = || DurationError::Invalid(self.0.clone());
        let (negative, body) = match self.0.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.0.strip_prefix('+').unwrap_or(&self.0)),
        };
        if body == "0" {
            return Ok(SignedDuration::ZERO);
        }
        if body.is_empty() {
            return Err(invalid());
        }
        let (mut rest, mut total) = (body, 0_u64);
        while !rest.is_empty() {
            let (nanos, after) = self.piece(rest)?;
            total = total.checked_add(nanos).ok_or_else(invalid)?;
            rest = after;
        }
        let total = i64::try_from(total).map_err(|_| invalid())?;
        Ok(SignedDuration::from_nanos(if negative { -total } else { total }))
    }

    /// One number with its unit, in nanoseconds, and what follows it.
    fn piece<'a>(&self, text: &'a str) -> Result<(u64, &'a str), DurationError> {
        let invalid = || DurationError::Invalid(self.0.clone());
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let (digits, rest) = text.split_at(text.len() - number.len());
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(invalid());
        }
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (unit, after) = rest.split_at(end);
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(self.0.clone()));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, nanos) = known.ok_or_else(|| DurationError::UnknownUnit {
            unit: unit.into(),
            text: self.0.clone(),
        })?;
        let whole = number_of(whole).ok_or_else(invalid)?;
        let whole = whole.checked_mul(*nanos).ok_or_else(invalid)?;
        let total = whole
            .checked_add(fraction_of(fraction, *nanos))
            .ok_or_else(invalid)?;
        Ok((total, after))
    }
}

fn number_of(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}

/// `5` of `nanos` is half of them; digits past the eighteenth are below a nanosecond of any unit.
fn fraction_of(digits: &str, nanos: u64) -> u64 {
    let digits: String = digits.chars().take(18).collect();
    let scale = 10_u128.pow(u32::try_from(digits.len()).unwrap_or_default());
    let part: u128 = digits.parse().unwrap_or_default();
    u64::try_from(part * u128::from(nanos) / scale).unwrap_or_default()
}

impl From<SignedDuration> for GoDuration {
    /// As Go prints it: `5m0s`, `1.5s`, `20ms`, `0s`.
    fn from(span: SignedDuration) -> Self {
        let nanos = span.as_nanos();
        let sign = if nanos < 0 { "-" } else { "" };
        Self(format!("{sign}{}", printed(nanos.unsigned_abs())))
    }
}

fn printed(nanos: u128) -> String {
    match nanos {
        0 => "0s".into(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
            let seconds = decimal(rest, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

fn decimal(value: u128, scale: u128) -> String {
    let width = scale.ilog10() as usize;
    let fraction = format!("{:0width$}", value % scale);
    match fraction.trim_end_matches('0') {
        "" => (value / scale).to_string(),
        fraction => format!("{}.{fraction}", value / scale),
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let read = GoDuration(text.into()).span();
        let shown = read
            .map(|span| GoDuration::from(span).0)
            .map_err(|error| error.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
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
        check("9223372036854775807ns", Ok("2562047h47m16.854775807s"));
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        check("", Err("time: invalid duration \"\""));
        check("-", Err("time: invalid duration \"-\""));
        check("s", Err("time: invalid duration \"s\""));
        check(".s", Err("time: invalid duration \".s\""));
        check("1.2.3s", Err("time: invalid duration \"1.2.3s\""));
        check("30", Err("time: missing unit in duration \"30\""));
        check("1h30", Err("time: missing unit in duration \"1h30\""));
        check("1d", Err("time: unknown unit \"d\" in duration \"1d\""));
        check(
            "9223372036854775808ns",
            Err("time: invalid duration \"9223372036854775808ns\""),
        );
        check(
            "99999999999999999999h",
            Err("time: invalid duration \"99999999999999999999h\""),
        );
    }
}
