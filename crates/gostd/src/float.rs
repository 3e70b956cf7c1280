//! Formatting of floating-point numbers as in Go's `strconv.FormatFloat`.

use std::fmt::Write as _;

mod binary;

/// Maximum number of decimal digits to compute. No float64 has more significant digits; further requested
/// digits are zeros.
const MAX_DIGITS: usize = 1100;

/// Smallest number of digits at which a float can be equally near two shortest forms.
const MIN_TIED_DIGITS: usize = 15;

/// Formats `value` as `strconv.FormatFloat(value, format, precision, 64)` does, for the formats `b`, `e`,
/// `E`, `f`, `F`, `g`, `G`, `x` and `X`.
///
/// A precision of `None` corresponds to Go's `-1`: the fewest digits that parse as the same number.
#[must_use]
pub fn format_float(value: f64, format: char, precision: Option<usize>) -> String {
    let mut out = String::new();
    append_float(&mut out, value, format, precision);
    out
}

/// Appends the result of [`format_float`] to `out`.
pub fn append_float(out: &mut String, value: f64, format: char, precision: Option<usize>) {
    if let Some(special) = format_special(value) {
        return out.push_str(special);
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    push_finite(out, value.abs(), format, precision);
}

/// Formats `value` as `strconv.FormatFloat(value, 'g', -1, 32)` does.
#[must_use]
pub fn format_float32(value: f64) -> String {
    let narrow = value as f32;
    if let Some(special) = format_special(f64::from(narrow)) {
        return special.into();
    }
    let sign = if narrow.is_sign_negative() { "-" } else { "" };
    let digits = Digits::parse(&format!("{:e}", narrow.abs()));
    let mut out = String::from(sign);
    push_general(&mut out, &digits, None, 'e');
    out
}

/// Returns Go's text for NaN and the infinities, or `None` if `value` is finite.
#[must_use]
pub fn format_special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// Decimal digits of a finite, positive number: `0.d1d2d3… × 10^point`.
struct Digits {
    digits: String,
    point: i32,
}

impl Digits {
    /// Parses the output of Rust's `{:e}` format.
    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if digits.bytes().all(|digit| digit == b'0') {
            return Self {
                digits: String::new(),
                point: 0,
            };
        }
        Self {
            digits,
            point: exponent + 1,
        }
    }

    /// Returns the fewest digits that parse as `value`. If two candidates are equally near, the one with
    /// an even last digit is returned, as in Go.
    fn shortest(value: f64) -> Self {
        let digits = Self::parse(&format!("{value:e}"));
        if digits.count() < MIN_TIED_DIGITS {
            return digits;
        }
        let after = digits.count() - 1;
        let rounded = format!("{value:.after$e}");
        if rounded.parse() == Ok(value) {
            Self::parse(&rounded)
        } else {
            digits
        }
    }

    /// Rounds to `count` significant digits, at least one.
    fn rounded(value: f64, count: usize) -> Self {
        let after = count.clamp(1, MAX_DIGITS) - 1;
        let mut digits = Self::parse(&format!("{value:.after$e}"));
        let kept = digits.digits.trim_end_matches('0').len();
        digits.digits.truncate(kept);
        digits
    }

    fn count(&self) -> usize {
        self.digits.len()
    }

    fn exponent(&self) -> i32 {
        if self.digits.is_empty() { 0 } else { self.point - 1 }
    }
}

fn push_finite(out: &mut String, value: f64, format: char, precision: Option<usize>) {
    match (format, precision) {
        ('e' | 'E', None) => {
            let digits = Digits::shortest(value);
            let after = digits.count().saturating_sub(1);
            push_exponent(out, &digits, after, format);
        }
        ('e' | 'E', Some(after)) => push_exponent(
            out,
            &Digits::rounded(value, after.saturating_add(1)),
            after,
            format,
        ),
        ('f' | 'F', None) => push_plain(out, &Digits::shortest(value)),
        ('f' | 'F', Some(after)) => push_fixed(out, value, after),
        ('b', _) => binary::push_binary(out, value),
        ('x' | 'X', _) => binary::push_hexadecimal(out, value, format, precision),
        (_, None) => push_general(out, &Digits::shortest(value), None, exponent_letter(format)),
        (_, Some(count)) => {
            let count = count.max(1);
            push_general(
                out,
                &Digits::rounded(value, count),
                Some(count),
                exponent_letter(format),
            );
        }
    }
}

fn exponent_letter(format: char) -> char {
    if format == 'G' { 'E' } else { 'e' }
}

/// Appends the `%e` form: one digit, `after` decimals, and an exponent of at least two digits.
fn push_exponent(out: &mut String, digits: &Digits, after: usize, letter: char) {
    let (first, rest) = digits.digits.split_at(digits.count().min(1));
    out.push_str(if first.is_empty() { "0" } else { first });
    if after > 0 {
        out.push('.');
        out.push_str(rest.get(..after).unwrap_or(rest));
        out.extend(std::iter::repeat_n('0', after.saturating_sub(rest.len())));
    }
    let exponent = digits.exponent();
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{letter}{sign}{:02}", exponent.abs());
}

/// Appends the `%f` form with `after` decimals.
fn push_fixed(out: &mut String, value: f64, after: usize) {
    let exact = after.min(MAX_DIGITS);
    let _ = write!(out, "{value:.exact$}");
    out.extend(std::iter::repeat_n('0', after - exact));
}

/// Appends the `%g` form: `%e` for large exponents, `%f` otherwise, without trailing zeros.
fn push_general(out: &mut String, digits: &Digits, precision: Option<usize>, letter: char) {
    let count = digits.count();
    let limit = match precision {
        None => 6,
        Some(wanted) if wanted > count && i32::try_from(count).unwrap_or(i32::MAX) >= digits.point => count,
        Some(wanted) => wanted,
    };
    let exponent = digits.point - 1;
    if exponent < -4 || exponent >= i32::try_from(limit).unwrap_or(i32::MAX) {
        push_exponent(out, digits, count.saturating_sub(1), letter);
    } else {
        push_plain(out, digits);
    }
}

/// Writes the digits without an exponent.
fn push_plain(out: &mut String, digits: &Digits) {
    let whole = usize::try_from(digits.point).unwrap_or(0);
    let (left, right) = digits.digits.split_at(whole.min(digits.count()));
    out.push_str(if left.is_empty() { "0" } else { left });
    out.extend(std::iter::repeat_n('0', whole.saturating_sub(digits.count())));
    if !right.is_empty() {
        out.push('.');
        let zeros = usize::try_from(-digits.point).unwrap_or(0);
        out.extend(std::iter::repeat_n('0', zeros));
        out.push_str(right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, format: char, precision: Option<usize>, expected: &str) {
        assert_eq!(
            format_float(value, format, precision),
            expected,
            "{value} {format} {precision:?}"
        );
    }

    #[test]
    fn floats_are_formatted_with_the_fewest_digits() {
        check(1e6, 'g', None, "1e+06");
        check(123_456.0, 'g', None, "123456");
        check(12_345_678.9, 'g', None, "1.23456789e+07");
        check(1e-5, 'g', None, "1e-05");
        check(0.0001, 'g', None, "0.0001");
        check(-0.0, 'g', None, "-0");
        check(1e100, 'G', None, "1E+100");
        check(0.0, 'e', None, "0e+00");
        check(1.5, 'e', None, "1.5e+00");
        check(
            -4_049_131_141_985_421.0 / 4.0,
            'g',
            None,
            "-1.0122827854963552e+15",
        );
        check(1e21, 'f', None, "1000000000000000000000");
        check(f64::INFINITY, 'g', None, "+Inf");
    }

    #[test]
    fn floats_are_formatted_with_the_given_precision() {
        check(3.126, 'f', Some(2), "3.13");
        check(2.5, 'f', Some(0), "2");
        check(100.0, 'g', Some(3), "100");
        check(1000.0, 'g', Some(3), "1e+03");
        check(1234.5678, 'g', Some(6), "1234.57");
        check(1e6, 'g', Some(10), "1000000");
        check(0.0, 'e', Some(3), "0.000e+00");
        check(123.0, 'e', Some(4), "1.2300e+02");
        check(1.0, 'f', Some(2000), &format!("1.{}", "0".repeat(2000)));
    }

    #[test]
    fn float32_is_formatted_with_the_fewest_digits() {
        assert_eq!(format_float32(1.1), "1.1");
        assert_eq!(format_float32(0.1 + 0.2), "0.3");
    }
}
