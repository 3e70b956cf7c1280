//! Formatting of values as in Go's messages, with `%v`, `%t` and `%T`.

use mainstay_gostd::float::format_float;
use mainstay_yaml::Value;

/// Returns the Go type, as `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
    }
}

/// Formats a value as `%v` does.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) => print_float(*value),
        Value::String(text) => text.clone(),
        Value::List(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(" ")),
        Value::Map(map) => {
            let entries: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", print(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// Formats a float as `%v` does.
pub(crate) fn print_float(value: f64) -> String {
    format_float(value, 'g', None)
}

/// Formats a value as `%t` does. Only booleans are valid for `%t`; other values are printed as formatting
/// errors.
pub(crate) fn print_as_bool(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Null => "%!t(<nil>)".into(),
        Value::List(items) => format!("[{}]", items.iter().map(bool_item).collect::<Vec<_>>().join(" ")),
        Value::Map(map) => {
            let entry = |(key, value): (&String, &Value)| format!("%!t(string={key}):{}", bool_item(value));
            format!("map[{}]", map.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        other => format!("%!t({}={})", type_name(other), print(other)),
    }
}

fn bool_item(value: &Value) -> String {
    if value.is_null() {
        "<nil>".into()
    } else {
        print_as_bool(value)
    }
}
