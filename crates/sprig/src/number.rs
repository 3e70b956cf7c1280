//! Parses numbers as Go's `strconv` does.

/// A text that is not an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotInt {
    /// The syntax is invalid.
    Syntax,
    /// The number is out of range; contains the nearest value.
    Range(i64),
}

/// `strconv.ParseInt` with 64 bits; base 0 means that the prefix decides, and allows underscores between
/// digits.
pub(crate) fn parse_int(text: &[u8], base: u32) -> Result<i64, NotInt> {
    let (negative, digits) = match text.split_first() {
        Some((b'+', rest)) => (false, rest),
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let limit = if negative { 1 << 63 } else { (1 << 63) - 1 };
    let size = parse_size(digits, base)
        .filter(|_| !digits.is_empty())
        .ok_or(NotInt::Syntax)?;
    match size {
        size if size <= limit && negative => Ok((size as i64).wrapping_neg()),
        size if size <= limit => Ok(size as i64),
        _ if negative => Err(NotInt::Range(i64::MIN)),
        _ => Err(NotInt::Range(i64::MAX)),
    }
}

/// Returns the value of the digits; values above 64 bits are not distinguished.
fn parse_size(text: &[u8], base: u32) -> Option<u64> {
    let (radix, digits) = if base == 0 { prefixed(text) } else { (base, text) };
    let mut size = Some(0_u64);
    for &byte in digits {
        if byte == b'_' && base == 0 {
            continue;
        }
        let digit = char::from(byte).to_digit(36).filter(|digit| *digit < radix)?;
        size = size.and_then(|size| size.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)));
        if size.is_none() {
            // Go stops here and does not check the remaining characters.
            return Some(u64::MAX);
        }
    }
    if digits.contains(&b'_') && !underscores_fit(text) {
        return None;
    }
    size
}

fn prefixed(text: &[u8]) -> (u32, &[u8]) {
    match text {
        [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (2, rest),
        [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (8, rest),
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', rest @ ..] => (8, rest),
        _ => (10, text),
    }
}

/// Whether every underscore is between digits, or between a prefix and a digit.
fn underscores_fit(text: &[u8]) -> bool {
    let text = text
        .strip_prefix(b"+")
        .or_else(|| text.strip_prefix(b"-"))
        .unwrap_or(text);
    let (hex, mut after_digit, rest) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (true, true, rest),
        [b'0', b'b' | b'B' | b'o' | b'O', rest @ ..] => (false, true, rest),
        _ => (false, false, text),
    };
    let mut after_underscore = false;
    for &byte in rest {
        let digit = byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit();
        if byte == b'_' && !after_digit || !digit && byte != b'_' && after_underscore {
            return false;
        }
        after_underscore = byte == b'_';
        after_digit = digit;
    }
    !after_underscore
}

/// `strconv.ParseFloat` with 64 bits; `None` also if the number is too large.
pub(crate) fn parse_float(text: &[u8]) -> Option<f64> {
    if let Some(special) = special(text) {
        return Some(special);
    }
    if text.contains(&b'_') && !underscores_fit(text) {
        return None;
    }
    let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'_').collect();
    let unsigned = plain
        .strip_prefix(b"+")
        .or_else(|| plain.strip_prefix(b"-"))
        .unwrap_or(&plain);
    let negative = plain.first() == Some(&b'-');
    let size = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => parse_hex(rest)?,
        _ => parse_decimal(unsigned)?,
    };
    size.is_finite().then_some(if negative { -size } else { size })
}

fn special(text: &[u8]) -> Option<f64> {
    let name = text.to_ascii_lowercase();
    match name.as_slice() {
        b"nan" => Some(f64::NAN),
        b"inf" | b"+inf" | b"infinity" | b"+infinity" => Some(f64::INFINITY),
        b"-inf" | b"-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn parse_decimal(text: &[u8]) -> Option<f64> {
    let numeric = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.iter().all(numeric) || matches!(text.first(), None | Some(b'+' | b'-')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses hexadecimal digits with a binary exponent, which Go requires.
fn parse_hex(text: &[u8]) -> Option<f64> {
    let split = text.iter().position(|byte| matches!(byte, b'p' | b'P'))?;
    let (digits, exponent) = (text.get(..split)?, text.get(split + 1..)?);
    let (mut mantissa, mut scale, mut sticky) = (0_u64, 0_i64, false);
    let (mut seen_dot, mut seen_digit) = (false, false);
    for &byte in digits {
        if byte == b'.' && !seen_dot {
            seen_dot = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        seen_digit = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            scale -= if seen_dot { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            scale += if seen_dot { 0 } else { 4 };
        }
    }
    if !seen_digit || matches!(exponent, [b'+' | b'-', b'+' | b'-', ..]) {
        return None;
    }
    let exponent = match parse_int(exponent, 10) {
        Ok(exponent) | Err(NotInt::Range(exponent)) => exponent.clamp(-100_000, 100_000),
        Err(NotInt::Syntax) => return None,
    };
    Some(round_binary(mantissa, scale + exponent, sticky))
}

/// Returns the float nearest to `mantissa` × 2^`exponent`; `sticky` means that the exact value is slightly
/// larger.
fn round_binary(mantissa: u64, exponent: i64, sticky: bool) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let shift = mantissa.leading_zeros();
    let (mantissa, exponent) = (u128::from(mantissa << shift), exponent - i64::from(shift));
    let drop = 11 + (-1022 - (exponent + 63)).max(0);
    if drop > 64 {
        return 0.0;
    }
    let (kept, rest, half) = (
        mantissa >> drop,
        mantissa & ((1 << drop) - 1),
        1_u128 << (drop - 1),
    );
    let up = rest > half || rest == half && (sticky || kept & 1 == 1);
    ldexp((kept + u128::from(up)) as f64, exponent + drop)
}

/// Returns `fraction` × 2^`exponent`, rounded once. The fraction is zero or a normal number.
pub(crate) fn ldexp(fraction: f64, exponent: i64) -> f64 {
    if fraction == 0.0 {
        return fraction;
    }
    let bits = fraction.to_bits();
    let exponent = exponent.saturating_add((bits >> 52 & 0x7FF) as i64 - 1023);
    let with = |exponent: i64| f64::from_bits(bits & !(0x7FF << 52) | ((exponent + 1023) as u64) << 52);
    match exponent {
        ..-1075 => 0.0_f64.copysign(fraction),
        1024.. => f64::INFINITY.copysign(fraction),
        -1022.. => with(exponent),
        // Below the smallest normal number only the last product is inexact.
        _ => with(exponent + 53) * (1.0 / (1_u64 << 53) as f64),
    }
}
