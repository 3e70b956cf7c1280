//! Parsing of number literals into every Go type that can represent them.

use mainstay_gostd::number::{FloatError, parse_float, parse_int, parse_uint};
use mainstay_gostd::quote::{SyntaxError, quote, unquote_char};

/// A number literal in all types that can represent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number {
    /// Value as a signed integer.
    pub(crate) int: Option<i64>,
    /// Value as an unsigned integer.
    pub(crate) uint: Option<u64>,
    /// Value as a floating-point number.
    pub(crate) float: Option<f64>,
    /// Value as a complex number. Only set if the syntax is complex.
    pub(crate) complex: Option<(f64, f64)>,
    /// Whether the syntax is that of a float. Determines the type if none is required.
    pub(crate) looks_float: bool,
}

/// Syntax of a literal, as recognized by the lexer.
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
        Syntax::Complex => from_complex(parse_complex(text)?),
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
        && let Ok(imaginary) = parse_float(head)
    {
        return Ok(from_complex((0.0, imaginary)));
    }
    let mut number = Number {
        uint: parse_uint(text, 0).ok(),
        int: parse_int(text, 0).ok(),
        ..Number::default()
    };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Ok(float) = parse_float(text) {
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

fn from_complex((real, imaginary): (f64, f64)) -> Number {
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

/// Converts to an integer as amd64 does: a value that does not fit becomes the smallest integer. Returns
/// `None` if the conversion is not exact.
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

/// Parses a complex number as `fmt.Sscan` does, for the texts that the lexer accepts.
fn parse_complex(text: &[u8]) -> Result<(f64, f64), NumberError> {
    let (real, rest) = split_float(text);
    let (sign, rest) = match rest {
        [sign @ (b'+' | b'-'), rest @ ..] => (*sign, rest),
        _ => return Err(NumberError::Complex),
    };
    let (imaginary, rest) = split_float(rest);
    if rest.first() != Some(&b'i') {
        return Err(NumberError::Complex);
    }
    let mut signed = vec![sign];
    signed.extend_from_slice(imaginary);
    Ok((convert_float(real)?, convert_float(&signed)?))
}

fn split_float(text: &[u8]) -> (&[u8], &[u8]) {
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
    // In Go, an `i` at this position is the start of "Inf": it is consumed, and then missing as the
    // imaginary unit.
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
    parse_float(text).map_err(|error| match error {
        FloatError::Syntax => NumberError::FloatSyntax(text.to_vec()),
        FloatError::Range => NumberError::FloatRange(text.to_vec()),
    })
}
