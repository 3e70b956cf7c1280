//! The reference of custom resources: one page per kind, from the definitions that are installed.

use std::fmt::Write as _;

use serde_json::Value;

/// Fields whose contents are not listed: the values of Istio's charts.
const OMITTED: &[&str] = &["spec.values"];

/// A page of the reference.
pub(super) struct Page {
    pub(super) kind: String,
    pub(super) text: String,
}

/// Returns the page of one CRD.
pub(super) fn page(definition: &Value) -> Option<Page> {
    let spec = definition.get("spec")?;
    let kind = spec.pointer("/names/kind")?.as_str()?.to_owned();
    let version = spec.pointer("/versions/0")?;
    let schema = version.pointer("/schema/openAPIV3Schema")?;
    let mut text = format!("# {kind}\n\n{}\n\n", description(schema));
    let _ = writeln!(
        text,
        "`{}/{}`, scope {}.",
        spec.get("group")?.as_str()?,
        version.get("name")?.as_str()?,
        spec.get("scope")?.as_str()?
    );
    for part in ["spec", "status"] {
        if let Some(schema) = schema.pointer(&format!("/properties/{part}")) {
            let _ = writeln!(
                text,
                "\n## {part}\n\n| field | type | description |\n|---|---|---|"
            );
            add_fields(&mut text, part, schema);
        }
    }
    Some(Page { kind, text })
}

/// Adds a row per field, depth first.
fn add_fields(text: &mut String, path: &str, schema: &Value) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, field) in properties {
        let path = format!("{path}.{name}");
        let mark = if required.contains(&name.as_str()) {
            " (required)"
        } else {
            ""
        };
        let described = format!("{}{}", description(field), constraints(field));
        let _ = writeln!(text, "| `{path}`{mark} | {} | {described} |", type_name(field));
        if !OMITTED.contains(&path.as_str()) {
            add_nested(text, &path, field);
        }
    }
}

fn add_nested(text: &mut String, path: &str, field: &Value) {
    add_fields(text, path, field);
    if let Some(items) = field.get("items") {
        add_fields(text, &format!("{path}[]"), items);
    }
    if let Some(values) = field.get("additionalProperties") {
        add_fields(text, &format!("{path}.*"), values);
    }
}

fn description(schema: &Value) -> String {
    let text = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// Returns the default, the enumeration and the bounds of a field.
fn constraints(field: &Value) -> String {
    let mut parts = vec![String::new()];
    if let Some(default) = field.get("default") {
        parts.push(format!("Default: `{default}`."));
    }
    if let Some(values) = field
        .get("enum")
        .and_then(Value::as_array)
        .filter(|values| values.len() <= 20)
    {
        let values: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(|it| format!("`{it}`"))
            .collect();
        parts.push(format!("One of {}.", values.join(", ")));
    }
    for (key, word) in [
        ("minimum", "Minimum"),
        ("maximum", "Maximum"),
        ("pattern", "Pattern"),
    ] {
        if let Some(value) = field.get(key) {
            parts.push(format!("{word}: `{}`.", value.to_string().replace('|', "\\|")));
        }
    }
    parts.join(" ")
}

fn type_name(field: &Value) -> String {
    let own = field.get("type").and_then(Value::as_str);
    match own {
        Some("array") => {
            let items = field.get("items").map_or_else(|| "any".to_owned(), type_name);
            format!("list of {items}")
        }
        Some(name) => name.to_owned(),
        None if field.get("x-kubernetes-int-or-string").is_some() => "integer or string".to_owned(),
        None => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_listed_with_types_and_constraints() {
        let definition = json!({"spec": {
            "group": "g.example", "scope": "Cluster", "names": {"kind": "Thing"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                "description": "A thing.",
                "properties": {"spec": {"required": ["a"], "properties": {
                    "a": {"type": "array", "description": "Parts.", "items": {"type": "object", "properties": {
                        "b": {"type": "string", "enum": ["x", "y"], "default": "x"}}}},
                    "values": {"type": "object", "properties": {"hidden": {"type": "string"}}},
                }}},
            }}}],
        }});
        let page = page(&definition).unwrap();
        assert_eq!(page.kind, "Thing");
        let rows: Vec<&str> = page.text.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `spec.a` (required) | list of object | Parts. |",
                "| `spec.a[].b` | string |  Default: `\"x\"`. One of `x`, `y`. |",
                "| `spec.values` | object |  |",
            ]
        );
    }
}
