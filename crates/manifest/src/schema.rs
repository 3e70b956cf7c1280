//! Strict decoding: checks a tree against types, which are defined as data.
//!
//! ```text
//! Name                  a type
//!   field TYPE          one of its fields; attributes after the type are ignored
//! Name = A|B|C          an enumeration
//! ```
//!
//! A TYPE is `string`, `bool`, `int32`, `int64`, `number`, `quantity`, `int-or-string`, `date-time`,
//! `object`, `any`, the name of another type, `A|B` (an enumeration), `[TYPE]` (a list) or `{TYPE}` (a
//! map).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mainstay_yaml::Value;

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use crate::path::{Path, describe_kind, scalar_text};

const TEXTS: [&str; 2] = [
    include_str!("schema/operator.txt"),
    include_str!("schema/upstream.txt"),
];

/// Prefixes of types that accept field names in snake case, as protobuf does.
const PROTOBUF: [&str; 2] = ["mesh.", "net."];

/// A type.
#[derive(Debug)]
enum Type {
    Fields(Vec<(&'static str, &'static str)>),
    Enumeration(Vec<&'static str>),
}

fn types() -> &'static BTreeMap<&'static str, Type> {
    static TYPES: OnceLock<BTreeMap<&'static str, Type>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types = BTreeMap::new();
        let mut current = "";
        let lines = TEXTS.iter().flat_map(|text| text.lines());
        for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if line.starts_with(' ') {
                let mut words = line.split_whitespace();
                let row = (words.next().unwrap_or_default(), words.next().unwrap_or("any"));
                if let (Some(Type::Fields(fields)), true) = (types.get_mut(current), row.0 != "oneof") {
                    fields.push(row);
                }
                continue;
            }
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let kind = match rest.strip_prefix("= ") {
                Some(names) => Type::Enumeration(names.split('|').collect()),
                None => Type::Fields(Vec::new()),
            };
            types.insert(name, kind);
            current = name;
        }
        types
    })
}

/// Reports every unknown field and every value of a wrong type in `value`.
pub(crate) fn check_type(value: &Value, expression: &str, path: &Path, diagnostics: &mut Diagnostics) {
    if value.is_null() {
        return;
    }
    if let Some(inner) = strip_brackets(expression, '[', ']') {
        return check_list(value, inner, path, diagnostics);
    }
    if let Some(inner) = strip_brackets(expression, '{', '}') {
        return check_map(value, inner, path, diagnostics);
    }
    match types().get(expression) {
        Some(Type::Fields(fields)) => check_fields(value, expression, fields, path, diagnostics),
        Some(Type::Enumeration(names)) => check_enumeration(value, names, path, diagnostics),
        None if expression.contains('|') => {
            let names: Vec<&str> = expression.split('|').collect();
            check_enumeration(value, &names, path, diagnostics);
        }
        None if !is_scalar_of(value, expression) => {
            diagnostics.push(wrong_kind(value, describe_type(expression), path));
        }
        None => {}
    }
}

fn strip_brackets(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

fn check_list(value: &Value, inner: &str, path: &Path, diagnostics: &mut Diagnostics) {
    let Some(items) = value.as_list() else {
        diagnostics.push(wrong_kind(value, "a list", path));
        return;
    };
    for (index, item) in items.iter().enumerate() {
        // Gateways are merged by name, so that an item may have another index in a file.
        let below = match item.get("name").and_then(Value::as_str) {
            Some(name) if inner == "GatewayComponent" => path.named("name", name),
            _ => path.index(index),
        };
        if item.is_null() && inner == "GatewayComponent" {
            diagnostics.push(wrong_kind(item, "a gateway", &below));
        }
        check_type(item, inner, &below, diagnostics);
    }
}

fn check_map(value: &Value, inner: &str, path: &Path, diagnostics: &mut Diagnostics) {
    let Some(map) = value.as_map() else {
        diagnostics.push(wrong_kind(value, "a map", path));
        return;
    };
    for (key, value) in map {
        check_type(value, inner, &path.key(key), diagnostics);
    }
}

fn check_fields(
    value: &Value,
    name: &str,
    fields: &[(&'static str, &'static str)],
    path: &Path,
    diagnostics: &mut Diagnostics,
) {
    let Some(map) = value.as_map() else {
        diagnostics.push(wrong_kind(value, "a map", path));
        return;
    };
    let has_snake_case = PROTOBUF.iter().any(|prefix| name.starts_with(prefix));
    for (key, value) in map {
        let camel = if has_snake_case {
            camel_case(key)
        } else {
            key.clone()
        };
        // Protobuf also accepts the name of a field in camel case.
        let is_named = |field: &str| field.contains('_') && camel_case(field) == *key;
        let found = fields
            .iter()
            .find(|(field, _)| field == key || *field == camel || is_named(field));
        match found {
            Some((_, kind)) => check_type(value, kind, &path.key(key), diagnostics),
            None => diagnostics.push(unknown_field(key, fields, path)),
        }
    }
}

fn unknown_field(key: &str, fields: &[(&'static str, &'static str)], path: &Path) -> Diagnostic {
    let result = Diagnostic::error(path.key(key), "unknown field");
    match did_you_mean(key, fields.iter().map(|(field, _)| *field)) {
        Some(hint) => result.hint(hint),
        None => result,
    }
}

fn check_enumeration(value: &Value, names: &[&str], path: &Path, diagnostics: &mut Diagnostics) {
    let is_known = match value {
        // An empty string counts as unset.
        Value::String(text) => text.is_empty() || names.contains(&text.as_str()),
        Value::Bool(_) | Value::List(_) | Value::Map(_) => false,
        // Protobuf also accepts the number of an enumeration value.
        _ => true,
    };
    if !is_known {
        let message = format!("expected one of {}", names.join(", "));
        let shown = scalar_text(value).unwrap_or_else(|| describe_kind(value).to_owned());
        let result = Diagnostic::error(path.clone(), message).value(&shown);
        diagnostics.push(match did_you_mean(&shown, names.iter().copied()) {
            Some(hint) => result.hint(hint),
            None => result,
        });
    }
}

fn is_scalar_of(value: &Value, kind: &str) -> bool {
    let is_number = matches!(value, Value::Int(_) | Value::Uint(_) | Value::Float(_));
    let is_whole = value.as_i64().is_some();
    let is_text = value.as_str().is_some();
    match kind {
        "string" | "date-time" => is_text,
        "bool" => value.as_bool().is_some(),
        "int32" | "int64" => is_whole || value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
        "number" => is_number,
        "quantity" | "int-or-string" => is_number || is_text,
        "object" => value.as_map().is_some(),
        _ => true,
    }
}

fn describe_type(kind: &str) -> &'static str {
    match kind {
        "string" | "date-time" => "a string",
        "bool" => "true or false",
        "int32" | "int64" => "an integer",
        "number" => "a number",
        "quantity" => "a quantity",
        "int-or-string" => "an integer or a string",
        _ => "a map",
    }
}

fn wrong_kind(value: &Value, expected: &str, path: &Path) -> Diagnostic {
    let message = format!("expected {expected}, found {}", describe_kind(value));
    let result = Diagnostic::error(path.clone(), message);
    let shown = scalar_text(value).filter(|_| !value.is_null());
    let result = match &shown {
        Some(text) => result.value(text),
        None => result,
    };
    match (expected, shown) {
        ("a string", Some(text)) => result.hint(format!("quote it: {text:?}")),
        ("true or false", Some(text)) if matches!(text.as_str(), "true" | "false") => {
            result.hint("remove the quotes")
        }
        _ => result,
    }
}

/// Converts a name from snake case, which protobuf also accepts in JSON.
pub(crate) fn camel_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_start = false;
    for c in text.chars() {
        if c == '_' {
            is_start = true;
        } else if is_start {
            out.extend(c.to_uppercase());
            is_start = false;
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, parse};

    use super::*;

    fn check(kind: &str, text: &str, expected: &[&str]) {
        let value = parse(text, &Budget::default()).unwrap();
        let mut found = Diagnostics::default();
        check_type(&value, kind, &Path::default(), &mut found);
        let found: Vec<String> = found.list().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_referenced_type_exists() {
        const SCALARS: [&str; 10] = [
            "string",
            "bool",
            "int32",
            "int64",
            "number",
            "quantity",
            "int-or-string",
            "any",
            "date-time",
            "object",
        ];
        for (name, kind) in types() {
            let Type::Fields(fields) = kind else { continue };
            for (field, kind) in fields {
                let inner = kind.trim_matches(['[', ']', '{', '}']);
                let is_known = SCALARS.contains(&inner) || inner.contains('|') || types().contains_key(inner);
                assert!(is_known, "{name}.{field}: {kind}");
            }
        }
    }

    #[test]
    fn unknown_fields_and_wrong_kinds_are_errors() {
        check("Component", "{enabled: true, k8s: {replicaCount: 2}}", &[]);
        check(
            "Component",
            "{enable: true}",
            &["error: enable: unknown field\n  hint: did you mean \"enabled\"?"],
        );
        check(
            "Component",
            "{enabled: 'true', namespace: 5}",
            &[
                "error: enabled: expected true or false, found a string (value \"true\")\n  hint: remove the quotes",
                "error: namespace: expected a string, found a number (value \"5\")\n  hint: quote it: \"5\"",
            ],
        );
        check(
            "Components",
            "{ingressGateways: {}}",
            &["error: ingressGateways: expected a list, found a map"],
        );
        check(
            "mesh.MeshConfig",
            "{access_log_file: x, accessLogEncoding: JSON}",
            &[],
        );
        check(
            "mesh.MeshConfig",
            "{accessLogEncoding: XML}",
            &["error: accessLogEncoding: expected one of TEXT, JSON (value \"XML\")"],
        );
    }
}
