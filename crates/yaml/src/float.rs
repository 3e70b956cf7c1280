//! Formatting of floats as in `encoding/json`.

use mainstay_gostd::float::{append_float, format_float};

/// Formats a finite float as `encoding/json` does: without an exponent between 1e-6 and 1e21.
#[must_use]
pub fn float_to_json(value: f64) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

/// Appends the result of [`float_to_json`] to `out`.
pub(crate) fn push_json(out: &mut String, value: f64) {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return append_float(out, value, 'f', None);
    }
    let text = format_float(value, 'e', None);
    match text.split_once("e-0") {
        Some((mantissa, exponent)) => {
            out.push_str(mantissa);
            out.push_str("e-");
            out.push_str(exponent);
        }
        None => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_used_for_extremes_only() {
        for (value, expected) in [
            (1.0, "1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (1e-6, "0.000001"),
            (-0.0, "-0"),
            (1.5e-10, "1.5e-10"),
        ] {
            assert_eq!(float_to_json(value), expected);
        }
    }
}
