//! Embedded objects (`x-kubernetes-embedded-resource`): decodes and validates their metadata.

use serde_json::Value;

use super::schema::{Additional, Node};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::schema::Schema;
use crate::show;
use crate::tree;
use crate::validation::{meta, names};

/// Decodes the metadata of embedded objects. Removes unknown fields and adds their paths to `unknown`.
pub(crate) fn decode_metadata(
    types: &'static Schema,
    value: &mut Value,
    schema: &Node,
    path: &Path,
    unknown: &mut Vec<String>,
) -> Result<(), FieldErrors> {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                for key in ["apiVersion", "kind"] {
                    if let Some(wrong) = map.get(key).filter(|value| !value.is_string()) {
                        return Err(invalid(&path.child(key), wrong, "must be a string"));
                    }
                }
                if let Some(metadata) = map.get_mut("metadata") {
                    decode_object_meta(types, metadata, &path.child("metadata"), unknown)?;
                }
            }
            for (key, child) in map.iter_mut() {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => decode_metadata(types, child, node, &path.child(key), unknown)?,
                    (None, Some(Additional::Schema(node))) => {
                        decode_metadata(types, child, node, &path.key(key), unknown)?;
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &schema.items {
                for (at, item) in items.iter_mut().enumerate() {
                    decode_metadata(types, item, node, &path.index(at), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn invalid(path: &Path, value: &Value, detail: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    errors.push_shown(ErrorType::Invalid, path, Some(show::value(value)), detail);
    errors
}

fn decode_object_meta(
    types: &'static Schema,
    metadata: &mut Value,
    path: &Path,
    unknown: &mut Vec<String>,
) -> Result<(), FieldErrors> {
    let Some(id) = types.find_struct("meta/v1.ObjectMeta") else {
        return Ok(());
    };
    let decoded = types
        .decode(id, metadata.clone())
        .map_err(|error| invalid(path, metadata, &error.to_string()))?;
    unknown.extend(decoded.unknown.iter().map(|name| format!("{path}.{name}")));
    *metadata = decoded.value;
    super::object::remove_empty_fields(metadata);
    Ok(())
}

/// Validates embedded objects.
pub(crate) fn validate(value: &Value, schema: &Node, path: &Path, errors: &mut FieldErrors) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                validate_object(value, path, errors);
            }
            for (key, child) in map {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => validate(child, node, &path.child(key), errors),
                    (None, Some(Additional::Schema(node))) => validate(child, node, &path.key(key), errors),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    validate(item, node, &path.index(at), errors);
                }
            }
        }
        _ => {}
    }
}

fn validate_object(value: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in ["apiVersion", "kind"] {
        if value.get(key).is_none() {
            errors.required(&path.child(key), "");
        }
    }
    match value.get("apiVersion") {
        Some(Value::String(version)) if version.is_empty() => {
            errors.invalid(&path.child("apiVersion"), "", "must not be empty");
        }
        Some(Value::String(version)) if version.matches('/').count() > 1 => {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.invalid(&path.child("apiVersion"), version.as_str(), detail);
        }
        Some(other) if !other.is_string() => {
            errors.push_shown(
                ErrorType::Invalid,
                &path.child("apiVersion"),
                Some(show::value(other)),
                "must be a string",
            );
        }
        _ => {}
    }
    match value.get("kind") {
        Some(Value::String(kind)) if kind.is_empty() => {
            errors.invalid(&path.child("kind"), "", "must not be empty");
        }
        Some(Value::String(kind)) => {
            let wrong = names::label_1035(&kind.to_lowercase(), false);
            if !wrong.is_empty() {
                let detail = format!(
                    "may have mixed case, but should otherwise match: {}",
                    wrong.join(",")
                );
                errors.invalid(&path.child("kind"), kind.as_str(), detail);
            }
        }
        Some(other) => {
            errors.push_shown(
                ErrorType::Invalid,
                &path.child("kind"),
                Some(show::value(other)),
                "must be a string",
            );
        }
        None => {}
    }
    if value.get("metadata").is_some() {
        // The name of an embedded object is optional, but the validation of metadata requires one.
        let mut named = value.clone();
        tree::set_default_text(&mut named, &["metadata", "name"], "fakename");
        let namespaced = !tree::text(&named, &["metadata", "namespace"]).is_empty();
        let found = meta::object_meta_at(&named, namespaced, names::path_segment, &path.child("metadata"));
        errors.append(found);
    }
}
