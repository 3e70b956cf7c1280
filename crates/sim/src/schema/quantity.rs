//! Parses and formats `resource.Quantity`.

use std::fmt;

/// Decimal suffixes in ascending order, with their exponents of ten.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Binary suffixes in ascending order, with their exponents of two.
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// Returns the canonical form of a quantity: `1` for `1000m`, `500m` for `0.5`, `1Gi` for `1024Mi`. Returns
/// `None` if the text is not a quantity.
#[must_use]
pub fn canonical_quantity(text: &str) -> Option<String> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

/// Returns the value of a quantity in thousandths, rounded up, or `None` if the text is not a quantity.
#[must_use]
pub fn quantity_millis(text: &str) -> Option<i128> {
    let nanos = Quantity::parse(text)?.nanos;
    Some(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// An amount and the format in which it is printed. `Display` writes the canonical form.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Format,
}

const NANO: i128 = 1_000_000_000;

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self.form {
            Format::Binary => self.format_binary(),
            Format::Decimal => self.format_decimal(false),
            Format::Exponent => self.format_decimal(true),
        })
    }
}

impl Quantity {
    /// A quantity of zero.
    pub const ZERO: Self = Self {
        nanos: 0,
        form: Format::Decimal,
    };

    /// Creates a quantity from a whole number.
    #[must_use]
    pub fn count(number: usize) -> Self {
        let number = i128::try_from(number).unwrap_or(i128::MAX / NANO);
        Self {
            nanos: number.saturating_mul(NANO),
            form: Format::Decimal,
        }
    }

    /// Returns the value in billionths.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Returns the sum, in the format of `self` unless that is zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let form = if self.nanos == 0 { other.form } else { self.form };
        let nanos = self.nanos.saturating_add(other.nanos);
        Self { nanos, form }
    }

    /// Returns the difference, in the format of `self` unless that is zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nanos: -other.nanos,
            form: other.form,
        })
    }

    /// Parses a quantity. Returns `None` if the text is not a quantity.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let split = text
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '+' | '-' | '.'))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at_checked(split)?;
        let (negative, digits) = match number.as_bytes().first()? {
            b'-' => (true, number.get(1..)?),
            b'+' => (false, number.get(1..)?),
            _ => (false, number),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty())
            || !all_digits(whole)
            || !all_digits(fraction)
            || text.len() > 60
        {
            return None;
        }
        let (form, multiplier) = parse_suffix(suffix)?;
        let nanos = to_nanos(whole, fraction, &multiplier)?;
        Some(Self {
            nanos: if negative { -nanos } else { nanos },
            form,
        })
    }

    /// Formats the value with the largest binary suffix that divides it. Fractions are formatted with a
    /// decimal suffix.
    fn format_binary(&self) -> String {
        if self.nanos % NANO != 0 || self.nanos.abs() < 1024 * NANO {
            return self.format_decimal(false);
        }
        let mut number = self.nanos / NANO;
        let mut suffix = "";
        for (name, _) in BINARY {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = name;
        }
        format!("{number}{suffix}")
    }

    fn format_decimal(&self, exponent: bool) -> String {
        if self.nanos == 0 {
            return "0".into();
        }
        let (mut number, mut at) = (self.nanos, 0usize);
        while number % 1000 == 0 && at + 1 < DECIMAL.len() {
            number /= 1000;
            at += 1;
        }
        let (suffix, power) = DECIMAL.get(at).copied().unwrap_or(("", 0));
        match (exponent, power) {
            (false, _) => format!("{number}{suffix}"),
            (true, 0) => format!("{number}"),
            (true, power) => format!("{number}e{power}"),
        }
    }
}

/// Parses a suffix into its format and multiplier.
fn parse_suffix(suffix: &str) -> Option<(Format, Multiplier)> {
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Binary, Multiplier::Shift(*shift)));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, Multiplier::Power(*power)));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::Exponent, Multiplier::Power(power)))
}

enum Multiplier {
    Shift(u32),
    Power(i32),
}

/// Multiplies a number, given by its whole part and fraction, and returns the product in billionths, rounded
/// away from zero. Returns `None` on overflow.
fn to_nanos(whole: &str, fraction: &str, multiplier: &Multiplier) -> Option<i128> {
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let shift = -i32::try_from(fraction.len()).ok()?;
    let (digits, power) = match multiplier {
        Multiplier::Shift(bits) => (digits.checked_mul(1 << *bits)?, shift + 9),
        Multiplier::Power(power) => (digits, shift.checked_add(*power)? + 9),
    };
    let factor = 10i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        digits.checked_mul(factor)
    } else {
        Some(digits / factor + i128::from(digits % factor != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(
            canonical_quantity(text).as_deref().unwrap_or("none"),
            expected,
            "{text}"
        );
    }

    #[test]
    fn quantities_are_canonicalized() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1", "1"),
            ("100", "100"),
            ("1500Mi", "1500Mi"),
            ("0", "0"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("0.1Gi", "107374182400m"),
            ("1.5Gi", "1536Mi"),
            ("-1", "-1"),
            ("12000000", "12M"),
            ("100m", "100m"),
            ("512Ki", "512Ki"),
            ("1Ki", "1Ki"),
            ("1000Ki", "1000Ki"),
            ("", "none"),
            ("abc", "none"),
            ("1x", "none"),
            ("1.2.3", "none"),
            ("--1", "none"),
            (".", "none"),
            ("1 Gi", "none"),
        ] {
            check(text, expected);
        }
    }
}
