//! Parsing of numbers as in Go's `strconv`.

/// The reason why a text is not an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntError<T> {
    /// The text is not an integer.
    Syntax,
    /// The number is out of range; contains the nearest number in range.
    Range(T),
}

/// The reason why a text is not a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatError {
    /// The text is not a number.
    Syntax,
    /// The number is too large.
    Range,
}

/// Parses a signed integer (`strconv.ParseInt` with 64 bits); base 0 determines the base from the prefix and
/// allows underscores between digits.
pub fn parse_int(text: &[u8], base: u32) -> Result<i64, IntError<i64>> {
    let (negative, digits) = match text.split_first() {
        Some((b'+', rest)) => (false, rest),
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let nearest = if negative { i64::MIN } else { i64::MAX };
    let size = parse_uint(digits, base).map_err(|error| match error {
        IntError::Syntax => IntError::Syntax,
        IntError::Range(_) => IntError::Range(nearest),
    })?;
    let value = if negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    };
    value.ok_or(IntError::Range(nearest))
}

/// Parses an unsigned integer (`strconv.ParseUint` with 64 bits).
pub fn parse_uint(text: &[u8], base: u32) -> Result<u64, IntError<u64>> {
    let (radix, digits) = if base == 0 {
        split_prefix(text)
    } else {
        (base, text)
    };
    if text.is_empty() {
        return Err(IntError::Syntax);
    }
    let mut size = 0_u64;
    for &byte in digits {
        if byte == b'_' && base == 0 {
            continue;
        }
        let digit = char::from(byte).to_digit(36).filter(|digit| *digit < radix);
        let digit = u64::from(digit.ok_or(IntError::Syntax)?);
        let next = size
            .checked_mul(u64::from(radix))
            .and_then(|size| size.checked_add(digit));
        // Go does not parse the rest of the text after an overflow.
        size = next.ok_or(IntError::Range(u64::MAX))?;
    }
    if digits.contains(&b'_') && !underscores_are_valid(text) {
        return Err(IntError::Syntax);
    }
    Ok(size)
}

fn split_prefix(text: &[u8]) -> (u32, &[u8]) {
    match text {
        [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (2, rest),
        [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (8, rest),
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', rest @ ..] => (8, rest),
        _ => (10, text),
    }
}

/// Whether every underscore is between two digits, or between a prefix and a digit.
fn underscores_are_valid(text: &[u8]) -> bool {
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

/// Parses a float (`strconv.ParseFloat` with 64 bits).
pub fn parse_float(text: &[u8]) -> Result<f64, FloatError> {
    if let Some(special) = parse_special(text) {
        return Ok(special);
    }
    let size = parse_magnitude(text).ok_or(FloatError::Syntax)?;
    if size.is_infinite() {
        return Err(FloatError::Range);
    }
    Ok(if text.first() == Some(&b'-') { -size } else { size })
}

/// Parses a number and ignores its sign. The result is infinite if the number is too large.
fn parse_magnitude(text: &[u8]) -> Option<f64> {
    if text.contains(&b'_') && !underscores_are_valid(text) {
        return None;
    }
    let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'_').collect();
    let unsigned = plain
        .strip_prefix(b"+")
        .or_else(|| plain.strip_prefix(b"-"))
        .unwrap_or(&plain);
    match unsigned {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => parse_hex(rest),
        _ => parse_decimal(unsigned),
    }
}

fn parse_special(text: &[u8]) -> Option<f64> {
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

/// Parses hexadecimal digits followed by a binary exponent, which Go requires.
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
        Ok(exponent) | Err(IntError::Range(exponent)) => exponent.clamp(-100_000, 100_000),
        Err(IntError::Syntax) => return None,
    };
    Some(round_binary(mantissa, scale + exponent, sticky))
}

/// Rounds `mantissa` × 2^`exponent` to the nearest float. `sticky` means that the exact value is slightly
/// larger than `mantissa` × 2^`exponent`.
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

/// Returns `fraction` × 2^`exponent`, rounded once (`math.Ldexp`). `fraction` must be zero or a normal
/// number.
#[must_use]
pub fn ldexp(fraction: f64, exponent: i64) -> f64 {
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
        // Below the smallest normal number, only the last multiplication is inexact.
        _ => with(exponent + 53) * (1.0 / (1_u64 << 53) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_as_in_go() {
        assert_eq!(parse_int(b"-0x_1f", 0), Ok(-31));
        assert_eq!(parse_int(b"017", 0), Ok(15));
        assert_eq!(parse_int(b"017", 10), Ok(17));
        assert_eq!(parse_int(b"-9223372036854775808", 10), Ok(i64::MIN));
        assert_eq!(
            parse_int(b"9223372036854775808", 10),
            Err(IntError::Range(i64::MAX))
        );
        assert_eq!(
            parse_int(b"-99999999999999999999x", 10),
            Err(IntError::Range(i64::MIN))
        );
        assert_eq!(parse_uint(b"18446744073709551615", 0), Ok(u64::MAX));
        assert_eq!(
            parse_uint(b"18446744073709551616", 0),
            Err(IntError::Range(u64::MAX))
        );
        for text in ["", "-", "+-1", "1_", "_1", "1__2", "0x", "08", "a"] {
            assert_eq!(parse_int(text.as_bytes(), 0), Err(IntError::Syntax), "{text}");
        }
    }

    #[test]
    fn floats_are_parsed_as_in_go() {
        assert_eq!(parse_float(b"1_000.5e-1"), Ok(100.05));
        assert_eq!(parse_float(b"-0x1.8p1"), Ok(-3.0));
        assert_eq!(parse_float(b"0x_1p-1074"), Ok(f64::from_bits(1)));
        assert_eq!(parse_float(b"1e400"), Err(FloatError::Range));
        assert_eq!(parse_float(b"-Inf"), Ok(f64::NEG_INFINITY));
        for text in ["", ".", "e5", "1e", "1e_5", "0x1", "0x1p", "--1", "1 "] {
            assert_eq!(parse_float(text.as_bytes()), Err(FloatError::Syntax), "{text}");
        }
    }
}
