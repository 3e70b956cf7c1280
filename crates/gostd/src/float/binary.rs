//! Float formats with a binary exponent: `b`, `x` and `X`.

use std::fmt::Write as _;

/// Number of hexadecimal digits after the point of a normalized mantissa.
const FRACTION_DIGITS: usize = 15;

/// Splits a positive float into mantissa and exponent: `value = mantissa × 2^exponent`.
fn split_float(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    }
}

/// Appends the `%b` form: decimal mantissa and binary exponent.
pub(super) fn push_binary(out: &mut String, value: f64) {
    let (mantissa, exponent) = split_float(value);
    // Writing to a string cannot fail.
    let _ = write!(out, "{mantissa}p{exponent:+}");
}

/// Appends the `%x` form: hexadecimal mantissa and binary exponent.
pub(super) fn push_hexadecimal(out: &mut String, value: f64, format: char, precision: Option<usize>) {
    let (mut mantissa, mut exponent) = split_float(value);
    // Normalize: the leading bit is bit 60, followed by fifteen hexadecimal digits.
    if mantissa == 0 {
        exponent = 0;
    } else {
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - shift as i32;
    }
    if let Some(places) = precision.filter(|&places| places < FRACTION_DIGITS) {
        mantissa = round_mantissa(mantissa, places);
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    out.push('0');
    out.push(format);
    out.push(if mantissa >> 60 & 1 == 1 { '1' } else { '0' });
    push_fraction(out, mantissa << 4, format, precision);
    out.push(if format == 'X' { 'P' } else { 'p' });
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{sign}{:02}", exponent.abs());
}

/// Rounds a normalized mantissa to `places` hexadecimal digits after the point, ties to even.
fn round_mantissa(mantissa: u64, places: usize) -> u64 {
    let shift = places as u32 * 4;
    let extra = (mantissa << shift) & ((1 << 60) - 1);
    let mut kept = mantissa >> (60 - shift);
    if extra | (kept & 1) > 1 << 59 {
        kept += 1;
    }
    kept << (60 - shift)
}

fn push_fraction(out: &mut String, mut fraction: u64, format: char, precision: Option<usize>) {
    if precision == Some(0) || precision.is_none() && fraction == 0 {
        return;
    }
    out.push('.');
    let mut left = precision.unwrap_or(usize::MAX);
    while left > 0 && (precision.is_some() || fraction != 0) {
        let digit = char::from_digit((fraction >> 60) as u32, 16).unwrap_or('0');
        out.push(if format == 'X' {
            digit.to_ascii_uppercase()
        } else {
            digit
        });
        fraction <<= 4;
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::float::format_float;

    fn check(value: f64, format: char, precision: Option<usize>, expected: &str) {
        assert_eq!(
            format_float(value, format, precision),
            expected,
            "{value} {format}"
        );
    }

    #[test]
    fn formats_with_a_binary_exponent_equal_gos() {
        check(1.0, 'b', None, "4503599627370496p-52");
        check(-0.5, 'b', None, "-4503599627370496p-53");
        check(1.0, 'x', None, "0x1p+00");
        check(0.0, 'x', None, "0x0p+00");
        check(-10.75, 'x', None, "-0x1.58p+03");
        check(255.9, 'X', Some(2), "0X1.00P+08");
        check(1.5, 'x', Some(3), "0x1.800p+00");
    }
}
