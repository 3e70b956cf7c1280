//! Resolution of plain scalars to values, as in go-yaml. The caller handles quotes and tags.

use mainstay_gostd::number::{IntError, parse_int, parse_uint};

use crate::timestamp;

/// Value of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A date or time. The value is the text itself.
    Timestamp,
    /// A string.
    Text,
}

/// Version of go-yaml that determines the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoYamlVersion {
    V2,
    V3,
}

/// Resolves `text`. Timestamps are recognized only if `dates` is set.
pub(crate) fn resolve(text: &str, version: GoYamlVersion, dates: bool) -> Resolved {
    let Some(first) = text.bytes().next() else {
        return Resolved::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            resolve_word(text, version)
        }
        b'.' => parse_special_float(text)
            .or_else(|| parse_dotted_float(text))
            .unwrap_or(Resolved::Text),
        b'0'..=b'9' | b'+' | b'-' => resolve_number(text, version, dates),
        _ => Resolved::Text,
    }
}

fn resolve_word(text: &str, version: GoYamlVersion) -> Resolved {
    match text {
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        _ if version == GoYamlVersion::V3 => Resolved::Text,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Resolved::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Resolved::Bool(false),
        _ => Resolved::Text,
    }
}

/// Whether `text` is a boolean in YAML 1.1 but not in v3. v3 quotes such texts for older parsers.
pub(crate) fn is_old_bool(text: &str) -> bool {
    text.len() <= 3
        && matches!(resolve_word(text, GoYamlVersion::V2), Resolved::Bool(_))
        && resolve_word(text, GoYamlVersion::V3) == Resolved::Text
}

fn parse_special_float(text: &str) -> Option<Resolved> {
    Some(Resolved::Float(match text {
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        _ => return None,
    }))
}

/// Parses a float that starts with a dot; Go allows `_` between its digits.
fn parse_dotted_float(text: &str) -> Option<Resolved> {
    if !text.contains('_') {
        return parse_decimal(text);
    }
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let joins = |at: usize| {
        let before = bytes
            .get(..at)
            .unwrap_or_default()
            .iter()
            .rposition(|byte| *byte != b'_');
        digit(before) && before == at.checked_sub(1) && digit(Some(at + 1))
    };
    let fine = bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte != b'_' || joins(at));
    if fine {
        parse_decimal(&text.replace('_', ""))
    } else {
        None
    }
}

/// Parses a decimal float in the form that YAML allows. Returns `None` if the number is out of range.
fn parse_decimal(text: &str) -> Option<Resolved> {
    if !is_decimal(text.as_bytes()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Resolved::Float(value))
}

/// Whether `text` matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_decimal(text: &[u8]) -> bool {
    let text = strip_sign(text);
    let (whole, rest) = split_digits(text);
    let rest = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let (digits, rest) = split_digits(fraction);
            if whole.is_empty() && digits.is_empty() {
                return false;
            }
            rest
        }
        None if whole.is_empty() => return false,
        None => rest,
    };
    match rest.split_first() {
        None => true,
        Some((b'e' | b'E', exponent)) => {
            let (digits, rest) = split_digits(strip_sign(exponent));
            !digits.is_empty() && rest.is_empty()
        }
        Some(_) => false,
    }
}

fn strip_sign(text: &[u8]) -> &[u8] {
    match text.split_first() {
        Some((b'+' | b'-', rest)) => rest,
        _ => text,
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn resolve_number(text: &str, version: GoYamlVersion, dates: bool) -> Resolved {
    if let Some(special) = parse_special_float(text) {
        return special;
    }
    if dates && timestamp::is_timestamp(text) {
        return Resolved::Timestamp;
    }
    if !may_be_number(text.as_bytes()) {
        return Resolved::Text;
    }
    if text.contains('_') {
        return resolve_joined_number(&text.replace('_', ""), version);
    }
    resolve_joined_number(text, version)
}

/// Whether every byte may be part of a number in some base. Avoids the conversion attempts for words such
/// as `5m`.
fn may_be_number(text: &[u8]) -> bool {
    text.iter().all(|byte| {
        byte.is_ascii_hexdigit() || matches!(byte, b'_' | b'+' | b'-' | b'.' | b'x' | b'X' | b'o' | b'O')
    })
}

fn resolve_joined_number(text: &str, version: GoYamlVersion) -> Resolved {
    parse_integer(text)
        .or_else(|| parse_decimal(text))
        .or_else(|| parse_prefixed(text, "0b", 2))
        .or_else(|| {
            (version == GoYamlVersion::V3)
                .then(|| parse_prefixed(text, "0o", 8))
                .flatten()
        })
        .unwrap_or(Resolved::Text)
}

/// Parses an integer as `strconv.ParseInt` or `strconv.ParseUint` with base 0 does.
fn parse_integer(text: &str) -> Option<Resolved> {
    match parse_int(text.as_bytes(), 0) {
        Ok(value) => Some(Resolved::Int(value)),
        Err(IntError::Syntax) => None,
        Err(IntError::Range(_)) => parse_uint(text.as_bytes(), 0).ok().map(Resolved::Uint),
    }
}

/// Parses an integer with `prefix`, after which a sign may follow: go-yaml's second attempt at `0b…`, and
/// v3's at `0o…`.
fn parse_prefixed(text: &str, prefix: &str, base: u32) -> Option<Resolved> {
    if let Some(digits) = text.strip_prefix(prefix) {
        return i64::from_str_radix(digits, base).ok().map(Resolved::Int);
    }
    let digits = text.strip_prefix('-')?.strip_prefix(prefix)?;
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("-{digits}"), base)
        .ok()
        .map(Resolved::Int)
}

/// Whether `text` is a base-60 number in YAML 1.1. Both versions quote these, although they do not parse
/// them as numbers.
pub(crate) fn is_base60(text: &str) -> bool {
    let text = strip_sign(text.as_bytes());
    if !text.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b'_')
        .unwrap_or(text.len());
    let mut rest = text.get(end..).unwrap_or_default();
    let mut groups = 0;
    while let Some(group) = rest.strip_prefix(b":") {
        let Some(after) = strip_base60_digits(group) else {
            return false;
        };
        rest = after;
        groups += 1;
    }
    groups > 0 && (rest.is_empty() || is_base60_fraction(rest))
}

/// Strips the longest prefix that matches `[0-5]?[0-9]`. Returns the rest, or `None` without a match.
fn strip_base60_digits(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'0'..=b'5', b'0'..=b'9', rest @ ..] | [b'0'..=b'9', rest @ ..] => Some(rest),
        _ => None,
    }
}

fn is_base60_fraction(text: &[u8]) -> bool {
    text.strip_prefix(b".")
        .is_some_and(|rest| rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Resolved) {
        assert_eq!(resolve(text, GoYamlVersion::V2, true), expected, "{text}");
    }

    #[test]
    fn numbers_resolve_as_in_go_yaml() {
        check("0777", Resolved::Int(511));
        check("0o14", Resolved::Int(12));
        check("08", Resolved::Float(8.0));
        check("1_000", Resolved::Int(1000));
        check("0b101", Resolved::Int(5));
        check("0b-1", Resolved::Int(-1));
        check("0x1F", Resolved::Int(31));
        check("0", Resolved::Int(0));
        check("-0", Resolved::Int(0));
        check("-9223372036854775808", Resolved::Int(i64::MIN));
        check("18446744073709551615", Resolved::Uint(u64::MAX));
        check(
            "18446744073709551616",
            Resolved::Float(18_446_744_073_709_551_616.0),
        );
        check(
            "+18446744073709551615",
            Resolved::Float(18_446_744_073_709_551_615.0),
        );
        check(".5_0", Resolved::Float(0.5));
        check("5.", Resolved::Float(5.0));
    }

    #[test]
    fn texts_that_only_resemble_numbers_are_strings() {
        for text in [
            "1e", "0b2", "1e400", "1.2.3", "5m", "12:30:45", "oN", "._5", ".5_", "--1", "0x", "1 2",
        ] {
            check(text, Resolved::Text);
        }
    }

    #[test]
    fn base_60_numbers_are_detected() {
        for (text, expected) in [
            ("1:2", true),
            ("12:30:45", true),
            ("1:60", false),
            ("1:2.5_", true),
            ("1:", false),
            ("-1_:0", true),
        ] {
            assert_eq!(is_base60(text), expected, "{text}");
        }
    }
}
