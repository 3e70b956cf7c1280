//! How Go writes strings and values in messages: takes them, gives what `%q`, `%v`, `%t` and `%T` print.

use std::fmt::Write;

use mainstay_yaml::Value;

/// `%q`: double quotes, Go's escapes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        escape(c, &mut out);
    }
    out.push('"');
    out
}

/// `%q` of a rune: single quotes, Go's escapes.
pub(crate) fn quote_char(c: char) -> String {
    let mut out = String::from("'");
    match c {
        '\'' => out.push_str("\\'"),
        '"' => out.push('"'),
        _ => escape(c, &mut out),
    }
    out.push('\'');
    out
}

/// `%T`.
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

/// `%v`.
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

/// `%v` of a float.
pub(crate) fn print_float(value: f64) -> String {
    mainstay_yaml::format_float(value, 'g', None)
}

/// `%t`, which only booleans satisfy: everything else is printed as a mistake.
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

fn escape(c: char, out: &mut String) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        _ if is_print(c) => return out.push(c),
        _ => "",
    };
    out.push_str(short);
    if short.is_empty() {
        // Writing to a string cannot fail.
        let _ = match u32::from(c) {
            code @ ..=0x7f => write!(out, "\\x{code:02x}"),
            code @ ..=0xffff => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    }
}

/// Go's `unicode.IsPrint`: everything but controls, formats, separators other than the space, and unassigned codes.
/// The standard library knows that set only through its own escaping, which spares a character that is not first.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let mut text = String::with_capacity(8);
    text.push('a');
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        let check = |text: &str, expected: &str| assert_eq!(quote(text), expected);
        check("a\"b\\", r#""a\"b\\""#);
        check("\n\t\x01\x7f", r#""\n\t\x01\x7f""#);
        check(
            "é\u{301}日\u{200b}\u{a0}\u{10ffff}",
            "\"é\u{301}日\\u200b\\u00a0\\U0010ffff\"",
        );
    }
}
