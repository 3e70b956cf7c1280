//! Reads types from the published Kubernetes `OpenAPI`, keyed by `k8s.` and their last name segment.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Definitions, Type};

/// Reads the schemas of a file.
pub(crate) fn read(path: &Path, definitions: &mut Definitions) -> Result<()> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    let document: Value = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object)
        .context("no schemas")?;
    for (name, schema) in schemas {
        definitions
            .types
            .entry(short(name))
            .or_insert_with(|| kind(schema));
    }
    Ok(())
}

fn short(name: &str) -> String {
    format!("k8s.{}", name.rsplit(['.', '/']).next().unwrap_or(name))
}

fn kind(schema: &Value) -> Type {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let is_required = required.contains(&name.as_str());
            (name.clone(), type_of(field), attributes(field, is_required))
        });
    let attributes = text(schema, "x-kubernetes-map-type").map(|map| format!("map={map}"));
    Type {
        attributes: attributes.unwrap_or_default(),
        fields: fields.collect(),
        one_of: Vec::new(),
    }
}

fn type_of(schema: &Value) -> String {
    let target =
        text(schema, "$ref").or_else(|| text(schema.pointer("/allOf/0").unwrap_or(&Value::Null), "$ref"));
    if let Some(target) = target {
        return match short(target).as_str() {
            "k8s.Quantity" => "quantity".into(),
            "k8s.IntOrString" => "int-or-string".into(),
            "k8s.Time" => "date-time".into(),
            "k8s.FieldsV1" => "object".into(),
            name => name.into(),
        };
    }
    match (text(schema, "type").unwrap_or("any"), text(schema, "format")) {
        ("array", _) => format!("[{}]", type_of(&schema["items"])),
        ("object", _) if schema.get("additionalProperties").is_some() => {
            format!("{{{}}}", type_of(&schema["additionalProperties"]))
        }
        ("boolean", _) => "bool".into(),
        ("integer", Some("int64")) => "int64".into(),
        ("integer", _) => "int32".into(),
        ("string", Some("date-time")) => "date-time".into(),
        (other, _) => other.into(),
    }
}

/// Returns the attributes of a field. Omits a zero default of a required field, which must be set anyway.
fn attributes(schema: &Value, is_required: bool) -> String {
    let mut out = Vec::new();
    if is_required {
        out.push("required".to_owned());
    }
    let default = schema.get("default").filter(|value| {
        let is_zero = value.as_str() == Some("") || value.as_i64() == Some(0);
        value.as_object().is_none_or(|map| !map.is_empty()) && !(is_zero && is_required)
    });
    out.extend(default.map(|value| format!("default={value}")));
    let keys: Vec<&str> = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    out.extend(text(schema, "x-kubernetes-list-type").map(|list| match list {
        "map" => format!("list=map:{}", keys.join(",")),
        other => format!("list={other}"),
    }));
    out.extend(text(schema, "x-kubernetes-map-type").map(|map| format!("map={map}")));
    out.join(" ")
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}
