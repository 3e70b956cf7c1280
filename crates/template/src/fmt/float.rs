//! Formatting of floating-point numbers with the signs, zeros and padding of package `fmt`.

use mainstay_gostd::float::format_float;

use super::Printer;

impl Printer<'_> {
    /// Writes `value`. Returns `false` if the verb does not apply to floats.
    pub(super) fn float(&mut self, value: f64, verb: u32) -> bool {
        let (style, precision) = match u8::try_from(verb).unwrap_or(0) {
            b'v' => (b'g', None),
            letter @ (b'b' | b'g' | b'G' | b'x' | b'X') => (letter, None),
            letter @ (b'f' | b'e' | b'E') => (letter, Some(6)),
            b'F' => (b'f', Some(6)),
            _ => return false,
        };
        let precision = self.flags.precision.or(precision);
        let mut text = format_float(value, char::from(style), precision).into_bytes();
        if !matches!(text.first(), Some(b'+' | b'-')) {
            text.insert(0, b'+');
        }
        if self.flags.space && !self.flags.plus && text.first() == Some(&b'+') {
            text.splice(0..1, *b" ");
        }
        if !value.is_finite() {
            return self.write_non_finite(value, &text);
        }
        if self.flags.sharp && style != b'b' {
            text = add_decimal_point(&text, style, precision);
        }
        self.write_signed(&text);
        true
    }

    fn write_non_finite(&mut self, value: f64, text: &[u8]) -> bool {
        let unsigned = text.get(1..).unwrap_or_default();
        let show_sign = !value.is_nan() || self.flags.space || self.flags.plus;
        self.pad_with_spaces(if show_sign { text } else { unsigned });
        true
    }

    /// Writes a number that starts with its sign. A plus sign is omitted unless it was requested; padding
    /// zeros are written between sign and digits.
    fn write_signed(&mut self, text: &[u8]) {
        let unsigned = text.get(1..).unwrap_or_default();
        if !self.flags.plus && text.first() == Some(&b'+') {
            return self.pad(unsigned);
        }
        match self.flags.width {
            Some(width) if self.flags.zero && !self.flags.minus && width > text.len() => {
                self.push(text.get(..1).unwrap_or_default());
                self.push_padding(width - text.len());
                self.push(unsigned);
            }
            _ => self.pad(text),
        }
    }
}

/// Whether `%v` writes the float as an integer: its absolute value is below a million, and it is not a
/// negative zero.
pub(super) fn is_small_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < 1e6 && (value != 0.0 || value.is_sign_positive())
}

/// Writes a float for which [`is_small_whole`] returns `true`.
pub(super) fn push_whole(value: f64, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a vector cannot fail.
    let _ = write!(out, "{}", value as i64);
}

/// Applies the sharp flag: adds a decimal point if it is missing, and the trailing zeros that `g` removes.
fn add_decimal_point(text: &[u8], style: u8, precision: Option<usize>) -> Vec<u8> {
    let mut missing = match style {
        b'g' | b'G' | b'x' => precision.map_or(6, |p| p as i64),
        _ => 0,
    };
    let hexadecimal = matches!(style, b'x' | b'X');
    let tail = text.iter().position(|byte| match byte {
        b'p' | b'P' => true,
        b'e' | b'E' => !hexadecimal,
        _ => false,
    });
    let (head, tail) = text
        .split_at_checked(tail.unwrap_or(text.len()))
        .unwrap_or((text, b""));
    let mut seen = false;
    for &byte in head.iter().skip(1).filter(|&&byte| byte != b'.') {
        seen |= byte != b'0';
        missing -= i64::from(seen);
    }
    let mut out = head.to_vec();
    if !head.contains(&b'.') {
        if head.len() == 2 && head.last() == Some(&b'0') {
            missing -= 1;
        }
        out.push(b'.');
    }
    out.resize(out.len() + usize::try_from(missing).unwrap_or(0), b'0');
    out.extend_from_slice(tail);
    out
}
