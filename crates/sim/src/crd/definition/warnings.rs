//! Warnings about new string formats that are not validated.

use serde_json::Value;

use crate::context::Context;
use crate::crd::schema::{supported_format, text};
use crate::tree;

/// Warns about formats that are new in the definition and not validated.
pub(crate) fn warn(new: &Value, old: Option<&Value>, context: &mut Context) {
    let known = old.map(unknown_formats).unwrap_or_default();
    for format in unknown_formats(new) {
        if !known.contains(&format) {
            context.warn(format!("unrecognized format {format:?}"));
        }
    }
}

fn unknown_formats(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for version in tree::list(definition, &["spec", "versions"]) {
        if let Some(schema) = tree::get(version, &["schema", "openAPIV3Schema"]) {
            collect_unknown_formats(schema, &mut found);
        }
    }
    found
}

fn collect_unknown_formats(schema: &Value, found: &mut Vec<String>) {
    let format = text(schema, "format");
    if !format.is_empty() && supported_format(schema).is_empty() {
        found.push(format.to_owned());
    }
    for subschema in subschemas(schema) {
        collect_unknown_formats(subschema, found);
    }
}

/// Returns the direct subschemas of a schema.
pub(super) fn subschemas(schema: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    for key in [
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "additionalProperties",
        "additionalItems",
    ] {
        match schema.get(key) {
            Some(Value::Array(list)) => all.extend(list),
            Some(subschema @ Value::Object(_)) => all.push(subschema),
            _ => {}
        }
    }
    for key in ["properties", "patternProperties", "definitions", "dependencies"] {
        if let Some(Value::Object(map)) = schema.get(key) {
            all.extend(map.values().filter(|subschema| subschema.is_object()));
        }
    }
    all
}
