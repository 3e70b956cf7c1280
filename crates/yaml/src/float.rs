//! Go's ways to print a float: takes a number and a format, gives what `strconv.FormatFloat` gives.

/// No float has more digits than this; what a caller asks beyond is zeros.
const MOST_DIGITS: usize = 1100;

/// With fewer digits no float lies half-way between two shortest forms.
const FEWEST_TIED: usize = 15;

/// `strconv.FormatFloat(value, format, precision, 64)` for the formats `e`, `E`, `f`, `F`, `g` and `G`.
///
/// `None` is Go's `-1`: the fewest digits that read back as the same number.
#[must_use]
pub fn format_float(value: f64, format: char, precision: Option<usize>) -> String {
    let mut out = String::new();
    if let Some(special) = special(value) {
        out.push_str(special);
        return out;
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    push_finite(&mut out, value.abs(), format, precision);
    out
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`: what `sigs.k8s.io/yaml` makes of a float where it wants a string.
#[must_use]
pub fn format_float32(value: f64) -> String {
    let narrow = value as f32;
    if let Some(special) = special(f64::from(narrow)) {
        return special.into();
    }
    let sign = if narrow.is_sign_negative() { "-" } else { "" };
    let digits = Digits::read(&format!("{:e}", narrow.abs()));
    let mut out = String::from(sign);
    push_general(&mut out, &digits, None, 'e');
    out
}

/// A finite float as `encoding/json` prints it: never an exponent between 1e-6 and 1e21.
#[must_use]
pub fn float_to_json(value: f64) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

/// What Go prints for a number that is none.
pub(crate) fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

pub(crate) fn push_json(out: &mut String, value: f64) {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        out.push_str(&format_float(value, 'f', None));
        return;
    }
    let text = format_float(value, 'e', None);
    match text.split_once("e-0") {
        Some((mantissa, exponent)) => {
            out.push_str(mantissa);
            out.push_str("e-");
            out.push_str(exponent);
        }
        None => out.push_str(&text),
    }
}

/// The decimal digits of a finite, positive number: `0.d1d2d3… × 10^point`.
struct Digits {
    digits: String,
    point: i32,
}

impl Digits {
    /// Reads Rust's `{:e}` form.
    fn read(text: &str) -> Self {
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

    /// The fewest digits that read back as `value`; of two that are equally near the even one, as Go chooses.
    fn shortest(value: f64) -> Self {
        let digits = Self::read(&format!("{value:e}"));
        if digits.count() < FEWEST_TIED {
            return digits;
        }
        let after = digits.count() - 1;
        let rounded = format!("{value:.after$e}");
        if rounded.parse() == Ok(value) {
            Self::read(&rounded)
        } else {
            digits
        }
    }

    /// Rounded to `count` significant digits, at least one.
    fn rounded(value: f64, count: usize) -> Self {
        let after = count.clamp(1, MOST_DIGITS) - 1;
        let mut digits = Self::read(&format!("{value:.after$e}"));
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

/// `%e`: one digit, `after` digits, an exponent of at least two.
fn push_exponent(out: &mut String, digits: &Digits, after: usize, letter: char) {
    use std::fmt::Write as _;
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

/// `%f` with a precision.
fn push_fixed(out: &mut String, value: f64, after: usize) {
    use std::fmt::Write as _;
    let exact = after.min(MOST_DIGITS);
    let _ = write!(out, "{value:.exact$}");
    out.extend(std::iter::repeat_n('0', after - exact));
}

/// `%g`: `%e` for large exponents, `%f` otherwise, no zeros at the end.
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

/// The digits as they are, without exponent.
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
    fn shortest() {
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
    fn with_precision() {
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
    fn json() {
        for (value, expected) in [
            (1.0, "1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (1e-6, "0.000001"),
            (-0.0, "-0"),
            (1.5e-10, "1.5e-10"),
        ] {
            assert_eq!(float_to_json(value), expected);
        }
    }

    #[test]
    fn narrow() {
        assert_eq!(format_float32(1.1), "1.1");
        assert_eq!(format_float32(0.1 + 0.2), "0.3");
    }
}
