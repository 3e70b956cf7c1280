//! Writes quantities in Kubernetes' canonical form: `2000m` as `2`, `0.5` as `500m`, `1024Mi` as `1Gi`.
//! Upstream reads values into typed structs, so its revisions and the `ConfigMap`s with values contain this
//! form.

use mainstay_api::Values;
use serde_json::Value;

/// Keys of maps whose values are quantities.
const MAPS: [&str; 2] = ["limits", "requests"];
/// Keys of single quantities.
const FIELDS: [&str; 3] = ["divisor", "sizeLimit", "tolerance"];

/// Decimal suffixes by exponent.
const DECIMAL: [(i32, &str); 10] = [
    (-9, "n"),
    (-6, "u"),
    (-3, "m"),
    (0, ""),
    (3, "k"),
    (6, "M"),
    (9, "G"),
    (12, "T"),
    (15, "P"),
    (18, "E"),
];
/// Binary suffixes, each 1024 times the previous one.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Smallest exponent. Smaller amounts are rounded up.
const MIN_EXPONENT: i32 = -9;

/// Writes every quantity in canonical form. Values come from parsers with a depth limit, so recursion is
/// safe.
pub(super) fn canonicalize(values: &mut Values) {
    for (key, value) in values.iter_mut() {
        match value {
            Value::Object(map) if MAPS.contains(&key.as_str()) => {
                map.values_mut().for_each(canonicalize_value);
            }
            Value::Object(map) => canonicalize(map),
            Value::Array(items) => items.iter_mut().for_each(|item| {
                if let Value::Object(map) = item {
                    canonicalize(map);
                }
            }),
            _ if FIELDS.contains(&key.as_str()) => canonicalize_value(value),
            _ => {}
        }
    }
}

fn canonicalize_value(value: &mut Value) {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Some(canonical) = canonical_form(&text) {
        *value = canonical.into();
    }
}

/// Notation of a quantity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// Returns the canonical form, or `None` if the text is not a quantity or is out of range.
fn canonical_form(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|one: char| !one.is_ascii_digit() && one != '.');
    let (number, suffix) = digits.split_at(end.unwrap_or(digits.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let exponent = -i32::try_from(fraction.len()).ok()?;
    let (format, factor, scale) = parse_suffix(suffix)?;
    let mantissa = mantissa.checked_mul(factor)?;
    let (mantissa, exponent) = round_up(mantissa, exponent.checked_add(scale)?);
    if mantissa == 0 {
        return Some("0".into());
    }
    let written = match format {
        Format::Binary => format_binary(mantissa, exponent)?,
        other => format_decimal(mantissa, exponent, other)?,
    };
    Some(format!("{sign}{written}"))
}

/// Returns the format, the binary factor and the decimal exponent of a suffix.
fn parse_suffix(suffix: &str) -> Option<(Format, u128, i32)> {
    if let Some((exponent, _)) = DECIMAL.iter().find(|(_, known)| *known == suffix) {
        return Some((Format::Decimal, 1, *exponent));
    }
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Some((
            Format::Binary,
            1024_u128.checked_pow(u32::try_from(power).ok()?)?,
            0,
        ));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-30..=30)
        .contains(&exponent)
        .then_some((Format::Exponent, 1, exponent))
}

/// Rounds amounts below the smallest exponent up.
fn round_up(mut mantissa: u128, mut exponent: i32) -> (u128, i32) {
    while exponent < MIN_EXPONENT {
        mantissa = mantissa.div_ceil(10);
        exponent += 1;
    }
    (mantissa, exponent)
}

fn format_decimal(mut mantissa: u128, mut exponent: i32, format: Format) -> Option<String> {
    while mantissa.is_multiple_of(10) {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 {
        mantissa = mantissa.checked_mul(10)?;
        exponent -= 1;
    }
    if format == Format::Exponent {
        let suffix = if exponent == 0 {
            String::new()
        } else {
            format!("e{exponent}")
        };
        return Some(format!("{mantissa}{suffix}"));
    }
    let (_, suffix) = DECIMAL.iter().find(|(known, _)| *known == exponent)?;
    Some(format!("{mantissa}{suffix}"))
}

/// Formats a binary quantity: an amount below 1024 with decimal places in decimal notation, any other
/// amount as an integer, rounded up. Returns `None` if the amount is out of range.
fn format_binary(mantissa: u128, exponent: i32) -> Option<String> {
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    let mut amount = if exponent < 0 {
        if mantissa < power.checked_mul(1024)? {
            return format_decimal(mantissa, exponent, Format::Decimal);
        }
        mantissa.div_ceil(power)
    } else {
        mantissa.checked_mul(power)?
    };
    let mut suffixes = BINARY.iter();
    let mut suffix = suffixes.next()?;
    while amount.is_multiple_of(1024) {
        match suffixes.next() {
            Some(next) => suffix = next,
            None => break,
        }
        amount /= 1024;
    }
    Some(format!("{amount}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    #[test]
    fn quantities_have_kubernetes_canonical_form() {
        for (text, expected) in [
            ("2000m", "2"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("2", "2"),
            ("1000", "1k"),
            ("1024Mi", "1Gi"),
            ("2048Mi", "2Gi"),
            ("1000Mi", "1000Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e1", "120"),
            ("0", "0"),
            ("0m", "0"),
            ("-2000m", "-2"),
            ("+1", "1"),
            ("0.0000000001", "1n"),
            ("100u", "100u"),
        ] {
            assert_eq!(canonical_form(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            ".",
            "1.2.3",
            "one",
            "1x",
            "1 Gi",
            "99999999999999999999999999999999999999999",
        ] {
            assert_eq!(canonical_form(text), None, "{text}");
        }
    }

    #[test]
    fn only_fields_that_are_quantities_are_rewritten() {
        let mut values = map(
            r#"{"pilot":{"cpu":"2000m","resources":{"requests":{"cpu":"2000m","memory":2147483648},"limits":{"cpu":null}},"volumes":[{"emptyDir":{"sizeLimit":"1024Mi"}}]}}"#,
        );
        canonicalize(&mut values);
        assert_eq!(
            to_json(&values),
            r#"{"pilot":{"cpu":"2000m","resources":{"limits":{"cpu":null},"requests":{"cpu":"2","memory":"2147483648"}},"volumes":[{"emptyDir":{"sizeLimit":"1Gi"}}]}}"#
        );
    }
}
