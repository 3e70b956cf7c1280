//! Exact comparison, divisibility and formatting of numbers.

use std::cmp::Ordering;

use mainstay_gostd::float::format_float;
use mainstay_yaml::Value;

/// Whether the value is a number without fraction.
pub(super) fn is_integer(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Uint(_) => true,
        Value::Float(number) => number.fract() == 0.0,
        _ => false,
    }
}

/// Compares two numbers.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (to_integer(left), to_integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left
            .as_f64()
            .partial_cmp(&right.as_f64())
            .unwrap_or(Ordering::Equal),
    }
}

fn to_integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// Whether `value` is a multiple of `step`. Both are treated as decimal numbers.
pub(super) fn is_multiple(value: &Value, step: &Value) -> bool {
    match (to_decimal(value), to_decimal(step)) {
        (Some(value), Some(step)) if step.digits != 0 => divides(value, step),
        _ => true,
    }
}

/// The number `digits · 10^power`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    power: i32,
}

fn to_decimal(value: &Value) -> Option<Decimal> {
    if let Some(number) = to_integer(value) {
        return Some(Decimal {
            digits: number,
            power: 0,
        });
    }
    let text = format_float(value.as_f64()?, 'e', None);
    let (digits, exponent) = text.split_once('e')?;
    let (head, tail) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let digits: i128 = format!("{head}{tail}").parse().ok()?;
    Some(Decimal {
        digits,
        power: exponent - tail.len() as i32,
    })
}

fn divides(value: Decimal, step: Decimal) -> bool {
    let power = value.power - step.power;
    let (value, step) = (value.digits, step.digits);
    let scaled =
        |number: i128, power: u32| 10_i128.checked_pow(power).and_then(|ten| number.checked_mul(ten));
    if power >= 0 {
        // Computes value · 10^power / step.
        match scaled(value, power.unsigned_abs()) {
            Some(value) => value % step == 0,
            // The product overflows, so the remainder is computed one power at a time.
            None => (0..power).fold(value % step, |rest, _| (rest * 10) % step) == 0,
        }
    } else {
        match scaled(step, power.unsigned_abs()) {
            Some(step) => value % step == 0,
            None => value == 0,
        }
    }
}

/// Formats a bound for messages: with grouped digits, or as a power of ten with superscript digits.
pub(super) fn format_number(value: &Value) -> String {
    format_large_float(value.as_f64().unwrap_or_default())
}

fn format_large_float(number: f64) -> String {
    let text = format_float(number, 'g', None);
    match text.split_once('e') {
        None => group_thousands(&text),
        Some((digits, exponent)) => {
            let small: String = exponent.chars().filter_map(superscript).collect();
            format!("{digits}×10{small}")
        }
    }
}

fn superscript(c: char) -> Option<char> {
    match c {
        '-' => Some('⁻'),
        '0'..='9' => "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c as usize - '0' as usize),
        _ => None,
    }
}

/// Formats a count for messages.
pub(super) fn format_count(count: i64) -> String {
    group_thousands(&count.to_string())
}

/// Inserts commas as thousands separators.
fn group_thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(whole, part)| (whole, Some(part)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_the_go_library() {
        let check = |number: f64, expected: &str| assert_eq!(format_large_float(number), expected);
        check(5.0, "5");
        check(0.3, "0.3");
        check(123_456.0, "123,456");
        check(1_234_567.0, "1.234567×10⁰⁶");
        check(-1e-7, "-1×10⁻⁰⁷");
        check(1e23, "1×10²³");
        assert_eq!(format_count(1500), "1,500");
    }

    #[test]
    fn divisibility_of_decimals_is_exact() {
        let check = |value: f64, step: f64, expected: bool| {
            assert_eq!(
                is_multiple(&Value::Float(value), &Value::Float(step)),
                expected,
                "{value} by {step}"
            );
        };
        check(0.3, 0.1, true);
        check(5.0, 0.3, false);
        check(1e300, 7.0, false);
        check(1e300, 10.0, true);
        check(1e-7, 3.0, false);
        check(0.0, 1e-300, true);
    }
}
