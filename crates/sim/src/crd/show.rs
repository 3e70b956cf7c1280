//! Formats values in messages as Go does.

use std::fmt::Write as _;

use serde_json::Value;

/// A string as `%q` prints it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => drop(write!(out, "\\x{:02x}", c as u32)),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number as `%v` prints it.
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

/// A value of any kind.
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

/// A tree as Go's encoder writes it, with HTML characters escaped.
pub(crate) fn json(tree: &Value) -> String {
    tree.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
