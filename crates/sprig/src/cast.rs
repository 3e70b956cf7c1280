//! Conversion of any value to a number, as in Go's `cast` package. Values that cannot be converted are
//! zero.

use mainstay_gostd::number::{parse_float, parse_int};
use mainstay_template::Value;

/// Converts to an integer (`cast.ToInt64`, which equals `cast.ToInt` on a 64-bit machine).
pub(crate) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(value, _) => *value,
        Value::Uint(value, ..) => *value as i64,
        Value::Float(value) => truncate_to_int(*value),
        Value::Bool(value) => i64::from(*value),
        Value::String(text) => parse_int(without_zero_fraction(text), 0).unwrap_or(0),
        Value::Object(object) if is_calendar(&object.type_name()) => to_int(&object.plain()),
        _ => 0,
    }
}

/// Converts to a float (`cast.ToFloat64`).
pub(crate) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(value, _) => *value as f64,
        Value::Uint(value, ..) => *value as f64,
        Value::Float(value) => *value,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::String(text) => parse_float(text).unwrap_or(0.0),
        Value::Object(object) if is_calendar(&object.type_name()) => to_float(&object.plain()),
        _ => 0.0,
    }
}

/// Whether this is one of the two named number types that `cast` supports.
fn is_calendar(type_name: &str) -> bool {
    matches!(type_name, "time.Month" | "time.Weekday")
}

/// Converts to an integer as Go does on amd64: values out of range become the smallest integer.
fn truncate_to_int(value: f64) -> i64 {
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    if (-EDGE..EDGE).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Removes a fraction of zeros, as in `1.00`.
fn without_zero_fraction(text: &[u8]) -> &[u8] {
    let zeros = text.iter().rev().take_while(|byte| **byte == b'0').count();
    let head = text.get(..text.len() - zeros).unwrap_or_default();
    head.strip_suffix(b".").filter(|_| zeros > 0).unwrap_or(text)
}
