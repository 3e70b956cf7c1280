//! Formats values in messages like Go.

use serde_json::Value;

/// Formats a string like `%q`.
pub(crate) fn quoted(text: &str) -> String {
    mainstay_gostd::quote::quote(text)
}

/// Formats a number like `%v`.
pub(crate) fn float(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let shown = format!("{value:e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Formats a value of any type.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => number.as_i64().map_or_else(
            || float(number.as_f64().unwrap_or_default()),
            |int| int.to_string(),
        ),
        Value::Null | Value::Bool(_) => value.to_string(),
        tree => json(tree),
    }
}

/// Formats a value like Go's JSON encoder, with escaped HTML characters.
pub(crate) fn json(tree: &Value) -> String {
    tree.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
