//! Number literals, under every Go type that can represent them.

use mainstay_gostd::quote::{SyntaxError, quote, unquote_char};

/// A number literal, under all the types that can represent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number {
    /// As a signed integer.
    pub(crate) int: Option<i64>,
    /// As an unsigned integer.
    pub(crate) uint: Option<u64>,
    /// As a floating-point number.
    pub(crate) float: Option<f64>,
    /// As a complex number; only where the syntax is complex.
    pub(crate) complex: Option<(f64, f64)>,
    /// Whether the syntax is floating point, which decides where no type is required.
    pub(crate) looks_float: bool,
}

/// The literal syntax that the lexer recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Char,
    Complex,
    Plain,
}

/// An invalid number literal. The messages are Go's.
#[derive(Debug, thiserror::Error)]
pub(super) enum NumberError {
    #[error(transparent)]
    Character(#[from] SyntaxError),
    #[error("malformed character constant: {0}")]
    MalformedCharacter(String),
    #[error("integer overflow: {}", quote(.0))]
    IntegerOverflow(Vec<u8>),
    #[error("illegal number syntax: {}", quote(.0))]
    Syntax(Vec<u8>),
    #[error("syntax error scanning complex number")]
    Complex,
    #[error("strconv.ParseFloat: parsing {}: value out of range", quote(.0))]
    FloatRange(Vec<u8>),
    #[error("strconv.ParseFloat: parsing {}: invalid syntax", quote(.0))]
    FloatSyntax(Vec<u8>),
}

/// Parses a literal.
pub(super) fn parse(text: &[u8], syntax: Syntax) -> Result<Number, NumberError> {
    let mut number = match syntax {
        Syntax::Char => parse_char(text)?,
        Syntax::Complex => simplified(parse_complex(text)?),
        Syntax::Plain => parse_plain(text)?,
    };
    number.looks_float = looks_float(text);
    Ok(number)
}

fn looks_float(text: &[u8]) -> bool {
    let exponent = |byte: &u8| b"pP".contains(byte);
    let hexadecimal = matches!(text, [b'0', b'x' | b'X', _, ..]) && !text.iter().any(exponent);
    !hexadecimal && text.first() != Some(&b'\'') && text.iter().any(|byte| b".eEpP".contains(byte))
}

fn parse_char(text: &[u8]) -> Result<Number, NumberError> {
    let inner = text.get(1..).unwrap_or_default();
    let char = unquote_char(inner, b'\'')?;
    if char.tail != b"'" {
        let text = String::from_utf8_lossy(text).into_owned();
        return Err(NumberError::MalformedCharacter(text));
    }
    let value = i64::from(char.value);
    Ok(Number {
        int: Some(value),
        uint: Some(value as u64),
        float: Some(value as f64),
        ..Number::default()
    })
}

fn parse_plain(text: &[u8]) -> Result<Number, NumberError> {
    if let [head @ .., b'i'] = text
        && let Some(Ok(imaginary)) = parse_float(head)
    {
        return Ok(simplified((0.0, imaginary)));
    }
    let unsigned = parse_uint(text);
    let mut number = Number {
        uint: unsigned,
        int: parse_int(text),
        ..Number::default()
    };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(Ok(float)) = parse_float(text) {
        if !text.iter().any(|byte| b".eEpP".contains(byte)) {
            return Err(NumberError::IntegerOverflow(text.to_vec()));
        }
        number.float = Some(float);
        number.int = exact_int(float);
        number.uint = exact_uint(float);
    }
    if number.float.is_none() {
        return Err(NumberError::Syntax(text.to_vec()));
    }
    Ok(number)
}

fn simplified((real, imaginary): (f64, f64)) -> Number {
    let mut number = Number {
        complex: Some((real, imaginary)),
        ..Number::default()
    };
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = exact_int(real);
        number.uint = exact_uint(real);
    }
    number
}

/// Converts as amd64 does: a value that does not fit becomes the smallest integer.
#[allow(clippy::float_cmp)]
fn exact_int(float: f64) -> Option<i64> {
    let inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    let int = if inside { float as i64 } else { i64::MIN };
    (int as f64 == float).then_some(int)
}

#[allow(clippy::float_cmp)]
fn exact_uint(float: f64) -> Option<u64> {
    let uint = if float < 9_223_372_036_854_775_808.0 {
        exact_or_min(float) as u64
    } else {
        exact_or_min(float - 9_223_372_036_854_775_808.0) as u64 ^ (1 << 63)
    };
    (uint as f64 == float).then_some(uint)
}

fn exact_or_min(float: f64) -> i64 {
    let inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    if inside { float as i64 } else { i64::MIN }
}

/// `strconv.ParseUint(text, 0, 64)`.
fn parse_uint(text: &[u8]) -> Option<u64> {
    let (radix, digits) = match text {
        [b'0', b'b' | b'B', digits @ ..] if !digits.is_empty() => (2, digits),
        [b'0', b'o' | b'O', digits @ ..] if !digits.is_empty() => (8, digits),
        [b'0', b'x' | b'X', digits @ ..] if !digits.is_empty() => (16, digits),
        [b'0', digits @ ..] => (8, digits),
        [] => return None,
        _ => (10, text),
    };
    let mut value = 0u64;
    for &byte in digits.iter().filter(|&&byte| byte != b'_') {
        let digit = char::from(byte).to_digit(radix)?;
        value = value
            .checked_mul(u64::from(radix))?
            .checked_add(u64::from(digit))?;
    }
    underscores_fit(text).then_some(value)
}

/// `strconv.ParseInt(text, 0, 64)`.
fn parse_int(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(parse_uint(digits)?),
        [b'+', digits @ ..] => i64::try_from(parse_uint(digits)?).ok(),
        _ => i64::try_from(parse_uint(text)?).ok(),
    }
}

/// Whether underscores occur only between digits, or between a base prefix and a digit.
fn underscores_fit(text: &[u8]) -> bool {
    if !text.contains(&b'_') {
        return true;
    }
    let text = text
        .strip_prefix(b"-")
        .or_else(|| text.strip_prefix(b"+"))
        .unwrap_or(text);
    let prefixed = matches!(text, [b'0', b'b' | b'B' | b'o' | b'O' | b'x' | b'X', ..]);
    let hexadecimal = matches!(text, [b'0', b'x' | b'X', ..]);
    let (body, mut before) = if prefixed {
        (text.get(2..).unwrap_or_default(), b'0')
    } else {
        (text, b'^')
    };
    for &byte in body {
        let is_digit = byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit();
        before = match byte {
            _ if is_digit => b'0',
            b'_' if before == b'0' => b'_',
            b'_' => return false,
            _ if before == b'_' => return false,
            _ => b'!',
        };
    }
    before != b'_'
}

/// `strconv.ParseFloat(text, 64)`: `None` is invalid syntax, `Err` is out of range.
pub(crate) fn parse_float(text: &[u8]) -> Option<Result<f64, ()>> {
    let (negative, body) = match text {
        [b'-', body @ ..] => (true, body),
        [b'+', body @ ..] => (false, body),
        _ => (false, text),
    };
    let magnitude = if let [b'0', b'x' | b'X', digits @ ..] = body
        && !digits.is_empty()
    {
        hexadecimal_float(digits)?
    } else {
        decimal_float(body)?
    };
    if !underscores_fit(text) {
        return None;
    }
    if magnitude.is_infinite() {
        return Some(Err(()));
    }
    Some(Ok(if negative { -magnitude } else { magnitude }))
}

fn decimal_float(body: &[u8]) -> Option<f64> {
    let shape = |byte: &u8| byte.is_ascii_digit() || b"._eE+-".contains(byte);
    if !body.iter().all(shape) || matches!(body.first(), Some(b'+' | b'-')) {
        return None;
    }
    // An underscore right after the exponent sign is invalid syntax, which removing underscores would hide.
    let exponent = body
        .iter()
        .position(|byte| b"eE".contains(byte))
        .map(|at| body.get(at + 1..).unwrap_or_default());
    if let Some(exponent) = exponent {
        let digits = exponent
            .strip_prefix(b"+")
            .or_else(|| exponent.strip_prefix(b"-"))
            .unwrap_or(exponent);
        if !digits.first().is_some_and(u8::is_ascii_digit) {
            return None;
        }
    }
    let plain: String = body
        .iter()
        .filter(|&&byte| byte != b'_')
        .map(|&byte| char::from(byte))
        .collect();
    plain.parse().ok()
}

fn hexadecimal_float(digits: &[u8]) -> Option<f64> {
    let at = digits.iter().position(|byte| b"pP".contains(byte))?;
    let (mantissa, exponent) = digits.split_at_checked(at)?;
    let exponent = binary_exponent(exponent.get(1..)?)?;
    let (mut value, mut shift, mut sticky) = (0u64, 0i64, false);
    let (mut any, mut dot) = (false, false);
    for &byte in mantissa {
        match byte {
            b'_' => {}
            b'.' if !dot => dot = true,
            _ => {
                let digit = u64::from(char::from(byte).to_digit(16)?);
                any = true;
                if value >> 59 == 0 {
                    value = value << 4 | digit;
                    shift -= i64::from(dot) * 4;
                } else {
                    sticky |= digit != 0;
                    shift += i64::from(!dot) * 4;
                }
            }
        }
    }
    any.then(|| scaled(value, sticky, exponent + shift))
}

fn binary_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, text),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits.iter().filter(|&&byte| byte != b'_') {
        let digit = i64::from(char::from(byte).to_digit(10)?);
        value = (value * 10 + digit).min(100_000);
    }
    Some(if negative { -value } else { value })
}

/// `value × 2^exponent`, rounded to nearest even once.
fn scaled(value: u64, sticky: bool, exponent: i64) -> f64 {
    if value == 0 {
        return 0.0;
    }
    let zeros = value.leading_zeros();
    let mantissa = value << zeros;
    let exponent = exponent - i64::from(zeros);
    // mantissa has its top bit set: the number is mantissa × 2^exponent, its leading bit has the value
    // 2^(exponent + 63).
    let lead = exponent + 63;
    if lead > 1023 {
        return f64::INFINITY;
    }
    let drop = if lead >= -1022 { 11 } else { 11 + (-1022 - lead) };
    if drop > 64 {
        return 0.0;
    }
    let (kept, lost) = if drop == 64 {
        (0, mantissa)
    } else {
        (mantissa >> drop, mantissa << (64 - drop))
    };
    let half = 1u64 << 63;
    let up = lost > half || lost == half && (sticky || kept & 1 == 1);
    let kept = kept + u64::from(up);
    // Two exact steps: the mantissa has at most 54 bits, and each power of two is exact or the result is
    // subnormal-exact.
    let power = exponent + drop;
    let first = power.clamp(-1000, 900);
    kept as f64 * 2f64.powi(first as i32) * 2f64.powi((power - first) as i32)
}

/// `fmt.Sscan` of a complex number, for the texts that the lexer accepts.
fn parse_complex(text: &[u8]) -> Result<(f64, f64), NumberError> {
    let (real, rest) = float_token(text);
    let (sign, rest) = match rest {
        [sign @ (b'+' | b'-'), rest @ ..] => (*sign, rest),
        _ => return Err(NumberError::Complex),
    };
    let (imaginary, rest) = float_token(rest);
    if rest.first() != Some(&b'i') {
        return Err(NumberError::Complex);
    }
    let mut signed = vec![sign];
    signed.extend_from_slice(imaginary);
    Ok((convert_float(real)?, convert_float(&signed)?))
}

fn float_token(text: &[u8]) -> (&[u8], &[u8]) {
    let run = |from: usize, digits: &[u8]| {
        from + text
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| digits.contains(byte))
            .count()
    };
    let one =
        |from: usize, of: &[u8]| from + usize::from(text.get(from).is_some_and(|byte| of.contains(byte)));
    let decimal = b"0123456789_";
    // An `i` here would start "Inf": it is consumed, and then missing as the imaginary unit.
    let mut end = one(one(0, b"+-"), b"iI");
    let (mut digits, mut exponent): (&[u8], &[u8]) = (decimal, b"eEp");
    let after_zero = one(end, b"0");
    if after_zero > end {
        end = one(after_zero, b"xX");
        if end > after_zero {
            (digits, exponent) = (b"0123456789aAbBcCdDeEfF_", b"pP");
        }
    }
    end = run(end, digits);
    let after_dot = one(end, b".");
    if after_dot > end {
        end = run(after_dot, digits);
    }
    let after_exponent = one(end, exponent);
    if after_exponent > end {
        end = run(one(after_exponent, b"+-"), decimal);
    }
    text.split_at_checked(end).unwrap_or((text, b""))
}

fn convert_float(text: &[u8]) -> Result<f64, NumberError> {
    match parse_float(text) {
        Some(Ok(float)) => Ok(float),
        Some(Err(())) => Err(NumberError::FloatRange(text.to_vec())),
        None => Err(NumberError::FloatSyntax(text.to_vec())),
    }
}
