//! Compares quantities by amount: `1000m` equals `1`, `1Gi` equals `1024Mi`.

/// Whether both texts are quantities with the same amount.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let starts_like_quantity =
        |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    if !starts_like_quantity(one) || !starts_like_quantity(other) {
        return false;
    }
    match (parse_amount(one), parse_amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Parses a quantity exactly: sign, mantissa without trailing zeros, and power of ten. `None` if the text
/// is not a quantity or too large.
fn parse_amount(text: &str) -> Option<(bool, u128, i32)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits
        .find(|one: char| !one.is_ascii_digit() && one != '.')
        .unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (twos, tens) = scale(suffix)?;
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let mut mantissa = mantissa.checked_mul(1_u128.checked_shl(twos)?)?;
    let mut exponent = tens - i32::try_from(fraction.len()).ok()?;
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    Some(if mantissa == 0 {
        (false, 0, 0)
    } else {
        (is_negative, mantissa, exponent)
    })
}

/// Returns the powers of two and of ten of a suffix; `None` if it is unknown.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => (0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_compared() {
        let same = [
            ("1000m", "1"),
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1e3", "1k"),
            ("0", "0m"),
            ("100Mi", "104857600"),
            ("-1", "-1000m"),
        ];
        for (one, other) in same {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "2"),
            ("1G", "1Gi"),
            ("1", "one"),
            ("v1", "v1.0"),
            ("1.2.3", "1.2.3"),
            ("1x", "1"),
            ("-1", "1"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
