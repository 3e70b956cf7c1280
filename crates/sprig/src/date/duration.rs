//! Spans of time: takes and gives text such as `1h30m`, as Go's `time.Duration` does.

use super::quoted;

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;

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

/// Reads a duration, in nanoseconds.
pub(super) fn parse_duration(text: &[u8]) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
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
        let amount = Amount::read(&mut rest).ok_or_else(invalid)?;
        let unit = rest
            .iter()
            .position(|b| *b == b'.' || b.is_ascii_digit())
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(unit);
        if name.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(text)));
        }
        let unit = UNITS
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map(|(_, unit)| *unit);
        let unit =
            unit.ok_or_else(|| format!("time: unknown unit {} in duration {}", quoted(name), quoted(text)))?;
        total = amount
            .nanos(unit)
            .and_then(|nanos| total.checked_add(nanos))
            .ok_or_else(invalid)?;
        if total > 1 << 63 {
            return Err(invalid());
        }
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (true, _) => Ok((total as i64).wrapping_neg()),
        (false, Ok(total)) => Ok(total),
        (false, Err(_)) => Err(invalid()),
    }
}

/// A number with a fraction.
struct Amount {
    whole: u64,
    fraction: u64,
    scale: f64,
}

impl Amount {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let whole_digits = digits(rest);
        let whole = leading_int(whole_digits)?;
        *rest = rest.get(whole_digits.len()..)?;
        let mut amount = Self {
            whole,
            fraction: 0,
            scale: 1.0,
        };
        let mut any = !whole_digits.is_empty();
        if let Some(after) = rest.strip_prefix(b".") {
            let fraction = digits(after);
            any |= !fraction.is_empty();
            amount.read_fraction(fraction);
            *rest = after.get(fraction.len()..)?;
        }
        any.then_some(amount)
    }

    /// Digits past what 64 bits hold are dropped.
    fn read_fraction(&mut self, digits: &[u8]) {
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

    fn nanos(&self, unit: u64) -> Option<u64> {
        if self.whole > (1 << 63) / unit {
            return None;
        }
        let mut nanos = self.whole * unit;
        if self.fraction > 0 {
            nanos += (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        }
        (nanos <= 1 << 63).then_some(nanos)
    }
}

fn digits(text: &[u8]) -> &[u8] {
    text.get(..text.iter().take_while(|b| b.is_ascii_digit()).count())
        .unwrap_or_default()
}

/// The number, or `None` past 2⁶³.
pub(super) fn leading_int(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        if value > (1 << 63) / 10 {
            return None;
        }
        Some(value * 10 + u64::from(digit - b'0')).filter(|value| *value <= 1 << 63)
    })
}

/// Writes a duration of `nanos`.
pub(super) fn format_duration(nanos: i64) -> String {
    let total = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let text = match total {
        0 => return "0s".into(),
        1..1_000 => format!("{total}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(total, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(total, 6)),
        _ => clock(total),
    };
    format!("{sign}{text}")
}

fn clock(total: u64) -> String {
    let (minute, hour) = (MINUTE as u64, HOUR as u64);
    let seconds = decimal(total % minute, 9);
    match (total / hour, total / minute % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `value` divided by a power of ten, without trailing zeros.
fn decimal(value: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", value / unit)
}

/// The multiple of `unit` nearest to `nanos`, halves away from zero; unchanged where the unit is not positive.
pub(super) fn round(nanos: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let rest = (nanos % unit).abs();
    let towards_zero = nanos - nanos % unit;
    let up = rest as u64 + rest as u64 >= unit as u64;
    match (up, nanos < 0) {
        (false, _) => towards_zero,
        (true, true) => towards_zero.saturating_sub(unit),
        (true, false) => towards_zero.saturating_add(unit),
    }
}
