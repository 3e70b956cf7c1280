//! Formats decoded JSON values in messages like Go.

use serde_json::{Map, Number, Value};

/// Formats a string like `%q`.
pub(crate) fn quoted(text: &str) -> String {
    mainstay_gostd::quote::quote(text)
}

/// Formats a float like `%v`.
pub(crate) fn float(value: f64) -> String {
    mainstay_gostd::float::format_float(value, 'g', None)
}

/// Formats a number like `%v`. Numbers that are no `int64` are floats, as in Kubernetes' JSON decoder.
pub(crate) fn number(number: &Number) -> String {
    number.as_i64().map_or_else(
        || float(number.as_f64().unwrap_or_default()),
        |int| int.to_string(),
    )
}

/// Formats the value of a field error, like `field.Error`: scalars like `%v` but strings like `%q`, other
/// values as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(found) => number(found),
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

/// Returns the Go type of a value, like `%T`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value like `%v`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(found) => number(found),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => plain_map(map),
    }
}

/// Formats a map like `%v`.
pub(crate) fn plain_map(map: &Map<String, Value>) -> String {
    let pairs: Vec<_> = map
        .iter()
        .map(|(key, value)| format!("{key}:{}", plain(value)))
        .collect();
    format!("map[{}]", pairs.join(" "))
}

/// Formats the value of an `interface {}` field like `%#v`.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(found) => number(found),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(syntax).collect();
            format!("{}{{{}}}", type_name(value), items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), syntax(value)))
                .collect();
            format!("{}{{{}}}", type_name(value), fields.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Compares the field value, `%v`, `%#v` and `%T` of a value with those that Go prints.
    fn check(given: &Value, expected: [&str; 4]) {
        let shown = [value(given), plain(given), syntax(given), type_name(given).into()];
        assert_eq!(shown, expected, "{given}");
    }

    #[test]
    fn values_are_formatted_like_go() {
        check(&json!(null), ["null", "<nil>", "interface {}(nil)", "<nil>"]);
        check(&json!(true), ["true", "true", "true", "bool"]);
        check(&json!(7), ["7", "7", "7", "int64"]);
        check(&json!(10_000_000), ["10000000", "10000000", "10000000", "int64"]);
        check(&json!(1.5), ["1.5", "1.5", "1.5", "float64"]);
        check(&json!(1.0), ["1", "1", "1", "float64"]);
        check(
            &json!(5_000_000.5),
            ["5.0000005e+06", "5.0000005e+06", "5.0000005e+06", "float64"],
        );
        check(&json!(0.000_01), ["1e-05", "1e-05", "1e-05", "float64"]);
        let big = "1.8446744073709552e+19";
        check(&json!(u64::MAX), [big, big, big, "float64"]);
        check(
            &json!("a\u{1}<"),
            [r#""a\x01<""#, "a\u{1}<", r#""a\x01<""#, "string"],
        );
        check(
            &json!([1, "<a>", null]),
            [
                r#"[1,"\u003ca\u003e",null]"#,
                "[1 <a> <nil>]",
                r#"[]interface {}{1, "<a>", interface {}(nil)}"#,
                "[]interface {}",
            ],
        );
        check(
            &json!({"b": {"c": 1_234_567.5}, "a\u{1}": []}),
            [
                r#"{"a\u0001":[],"b":{"c":1234567.5}}"#,
                "map[a\u{1}:[] b:map[c:1.2345675e+06]]",
                r#"map[string]interface {}{"a\x01":[]interface {}{}, "b":map[string]interface {}{"c":1.2345675e+06}}"#,
                "map[string]interface {}",
            ],
        );
    }
}
