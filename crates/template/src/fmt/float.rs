//! Floating-point numbers as `strconv.FormatFloat` writes them, and `fmt`'s signs, zeros and padding around them.

use super::Printer;

/// No number of type float64 has more significant digits than this.
const ENOUGH: usize = 1100;

impl Printer<'_> {
    /// Writes `value`; `false` if the verb is not one for floats.
    pub(super) fn float(&mut self, value: f64, verb: u32) -> bool {
        let (style, precision) = match u8::try_from(verb).unwrap_or(0) {
            b'v' => (b'g', None),
            letter @ (b'b' | b'g' | b'G' | b'x' | b'X') => (letter, None),
            letter @ (b'f' | b'e' | b'E') => (letter, Some(6)),
            b'F' => (b'f', Some(6)),
            _ => return false,
        };
        let precision = self.flags.precision.or(precision);
        let mut text = number(value, style, precision);
        if !matches!(text.first(), Some(b'+' | b'-')) {
            text.insert(0, b'+');
        }
        if self.flags.space && !self.flags.plus && text.first() == Some(&b'+') {
            text.splice(0..1, *b" ");
        }
        if !value.is_finite() {
            return self.not_finite(value, &text);
        }
        if self.flags.sharp && style != b'b' {
            text = with_point(&text, style, precision);
        }
        self.signed(&text);
        true
    }

    fn not_finite(&mut self, value: f64, text: &[u8]) -> bool {
        let unsigned = text.get(1..).unwrap_or_default();
        let show_sign = !value.is_nan() || self.flags.space || self.flags.plus;
        self.pad_with_spaces(if show_sign { text } else { unsigned });
        true
    }

    /// The first byte is a sign, shown if it is not a plus or if asked for; zeros go between it and the digits.
    fn signed(&mut self, text: &[u8]) {
        let unsigned = text.get(1..).unwrap_or_default();
        if !self.flags.plus && text.first() == Some(&b'+') {
            return self.pad(unsigned);
        }
        match self.flags.width {
            Some(width) if self.flags.zero && !self.flags.minus && width > text.len() => {
                self.push(text.get(..1).unwrap_or_default());
                self.padding(width - text.len());
                self.push(unsigned);
            }
            _ => self.pad(text),
        }
    }
}

/// Whether `%v` writes it as the integer it is: below a million, and not a negative zero.
pub(super) fn is_small_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < 1e6 && (value != 0.0 || value.is_sign_positive())
}

/// Writes one of those.
pub(super) fn push_whole(value: f64, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing into a vector cannot fail.
    let _ = write!(out, "{}", value as i64);
}

/// `strconv.FormatFloat(value, style, precision, 64)`.
fn number(value: f64, style: u8, precision: Option<usize>) -> Vec<u8> {
    if value.is_nan() {
        return b"NaN".to_vec();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            b"+Inf".to_vec()
        } else {
            b"-Inf".to_vec()
        };
    }
    match style {
        b'f' => fixed(value, precision),
        b'e' | b'E' => exponential(&digits(value, precision.map(|p| p + 1)), style, precision),
        b'g' | b'G' => general(value, style, precision),
        b'b' => binary(value),
        _ => hexadecimal(value, style, precision),
    }
}

/// A decimal: digits without a point, the first not zero unless the number is.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    /// The value is `0.digits × 10^point`.
    point: i32,
}

/// `value` rounded to `count` significant digits, or the fewest that read back.
fn digits(value: f64, count: Option<usize>) -> Decimal {
    let text = match count {
        Some(count) => format!("{:.*e}", count.clamp(1, ENOUGH) - 1, value.abs()),
        None => format!("{:e}", value.abs()),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(|&byte| byte != b'.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 && count.is_none() {
        digits.clear();
        return Decimal {
            negative: value.is_sign_negative(),
            digits,
            point: 0,
        };
    }
    let point = if value == 0.0 { 1 } else { exponent + 1 };
    Decimal {
        negative: value.is_sign_negative(),
        digits,
        point,
    }
}

fn sign(negative: bool) -> Vec<u8> {
    if negative { vec![b'-'] } else { Vec::new() }
}

fn fixed(value: f64, precision: Option<usize>) -> Vec<u8> {
    let Some(precision) = precision else {
        return format!("{value}").into_bytes();
    };
    let mut text = format!("{:.*}", precision.min(ENOUGH), value).into_bytes();
    text.resize(text.len() + precision.saturating_sub(ENOUGH), b'0');
    text
}

fn exponential(decimal: &Decimal, style: u8, precision: Option<usize>) -> Vec<u8> {
    let mut out = sign(decimal.negative);
    let (first, rest) = decimal
        .digits
        .split_first()
        .map_or((b'0', &[][..]), |(first, rest)| (*first, rest));
    out.push(first);
    let places = precision.unwrap_or(rest.len());
    if places > 0 {
        out.push(b'.');
        let end = out.len() + places;
        out.extend(rest.iter().take(places));
        out.resize(end, b'0');
    }
    let zero = decimal.digits.iter().all(|&digit| digit == b'0');
    let exponent = if zero { 0 } else { decimal.point - 1 };
    out.push(style);
    out.push(if exponent < 0 { b'-' } else { b'+' });
    out.extend_from_slice(format!("{:02}", exponent.abs()).as_bytes());
    out
}

fn general(value: f64, style: u8, precision: Option<usize>) -> Vec<u8> {
    let wanted = precision.map(|p| p.max(1));
    let mut decimal = digits(value, wanted);
    let shortest = precision.is_none();
    let mut threshold = wanted.map_or(6, |p| p.min(i32::MAX as usize) as i32);
    if !shortest {
        while decimal.digits.last() == Some(&b'0') {
            decimal.digits.pop();
        }
        if value == 0.0 {
            decimal.point = 0;
        }
    }
    let count = decimal.digits.len() as i32;
    if threshold > count && count >= decimal.point {
        threshold = count;
    }
    if shortest {
        threshold = 6;
    }
    let exponent = decimal.point - 1;
    if exponent < -4 || exponent >= threshold {
        let places = decimal.digits.len().saturating_sub(1);
        return exponential(&decimal, style - 2, Some(places));
    }
    plain(&decimal)
}

/// Without an exponent, with the digits there are.
fn plain(decimal: &Decimal) -> Vec<u8> {
    let mut out = sign(decimal.negative);
    let digit = |place: i32| {
        usize::try_from(place)
            .ok()
            .and_then(|place| decimal.digits.get(place))
            .copied()
    };
    if decimal.point <= 0 {
        out.push(b'0');
    }
    out.extend((0..decimal.point).map(|place| digit(place).unwrap_or(b'0')));
    let count = decimal.digits.len() as i32;
    if count > decimal.point {
        out.push(b'.');
        out.extend((decimal.point..count).map(|place| digit(place).unwrap_or(b'0')));
    }
    out
}

/// Mantissa and exponent of the bits: `value = mantissa × 2^exponent`.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    }
}

fn binary(value: f64) -> Vec<u8> {
    let (mantissa, exponent) = parts(value);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}").into_bytes()
}

fn hexadecimal(value: f64, style: u8, precision: Option<usize>) -> Vec<u8> {
    let (mut mantissa, mut exponent) = parts(value);
    // Normalise so that the leading bit is bit 60 and there are fifteen hexadecimal places behind it.
    if mantissa == 0 {
        exponent = 0;
    } else {
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - shift as i32;
    }
    if let Some(places) = precision.filter(|&places| places < 15) {
        let shift = places as u32 * 4;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut out = sign(value.is_sign_negative());
    out.extend_from_slice(if style == b'X' { b"0X" } else { b"0x" });
    out.push(b'0' + (mantissa >> 60 & 1) as u8);
    hexadecimal_places(&mut out, mantissa << 4, style, precision);
    out.push(if style == b'X' { b'P' } else { b'p' });
    out.extend_from_slice(
        format!("{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()).as_bytes(),
    );
    out
}

fn hexadecimal_places(out: &mut Vec<u8>, mut fraction: u64, style: u8, precision: Option<usize>) {
    if precision == Some(0) || precision.is_none() && fraction == 0 {
        return;
    }
    out.push(b'.');
    let wanted = precision.unwrap_or(usize::MAX);
    let mut written = 0;
    while written < wanted && (precision.is_some() || fraction != 0) {
        let digit = char::from_digit((fraction >> 60) as u32, 16).unwrap_or('0');
        out.push(if style == b'X' {
            digit.to_ascii_uppercase()
        } else {
            digit
        } as u8);
        fraction <<= 4;
        written += 1;
    }
}

/// The sharp flag: always a point, and the zeros `g` leaves off.
fn with_point(text: &[u8], style: u8, precision: Option<usize>) -> Vec<u8> {
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
