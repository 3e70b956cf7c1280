//! Embedded objects (`x-kubernetes-embedded-resource`): coerces and validates their metadata.

use serde_json::Value;

use super::schema::{Additional, Node};
use super::show;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::schema::Schema;
use crate::tree;
use crate::validation::{meta, names};

/// Decodes the metadata of embedded objects; unknown fields are dropped and reported.
pub(crate) fn coerce(
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
                    metadata_of(types, metadata, &path.child("metadata"), unknown)?;
                }
            }
            for (key, below) in map.iter_mut() {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => coerce(types, below, node, &path.child(key), unknown)?,
                    (None, Some(Additional::Like(node))) => {
                        coerce(types, below, node, &path.key(key), unknown)?;
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &schema.items {
                for (at, item) in items.iter_mut().enumerate() {
                    coerce(types, item, node, &path.index(at), unknown)?;
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

fn metadata_of(
    types: &'static Schema,
    metadata: &mut Value,
    path: &Path,
    unknown: &mut Vec<String>,
) -> Result<(), FieldErrors> {
    let Some(id) = types.named("meta/v1.ObjectMeta") else {
        return Ok(());
    };
    let decoded = types
        .decode(id, metadata.clone())
        .map_err(|error| invalid(path, metadata, &error.to_string()))?;
    unknown.extend(decoded.unknown.iter().map(|name| format!("{path}.{name}")));
    *metadata = decoded.value;
    super::object::drop_empty(metadata);
    Ok(())
}

/// Validates embedded objects.
pub(crate) fn validate(value: &Value, schema: &Node, path: &Path, errors: &mut FieldErrors) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                object(value, path, errors);
            }
            for (key, below) in map {
                match (schema.properties.get(key), &schema.additional) {
                    (Some(node), _) => validate(below, node, &path.child(key), errors),
                    (None, Some(Additional::Like(node))) => validate(below, node, &path.key(key), errors),
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

fn object(value: &Value, path: &Path, errors: &mut FieldErrors) {
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
        // A name is optional here, but the metadata check requires one.
        let mut named = value.clone();
        tree::set_default_text(&mut named, &["metadata", "name"], "fakename");
        let namespaced = !tree::text(&named, &["metadata", "namespace"]).is_empty();
        let found = meta::object_meta_at(&named, namespaced, names::path_segment, &path.child("metadata"));
        errors.append(found);
    }
}
