//! Decoding, conversion and validation of custom objects.

use serde_json::{Number, Value};

use super::correlate::OldValue;
use super::rules::{Findings, RuleInput};
use super::schema::Node;
use super::{Custom, embedded, lists, prune};
use crate::context::Context;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::finalizers::is_standard_finalizer;
use crate::schema::Decoded;
use crate::show;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::validation::names;

/// Maximum nesting of an object. The limit protects functions that recurse to the leaves.
const MAX_DEPTH: usize = 256;

/// Decodes a custom object. Unknown fields are removed and returned as paths.
pub fn decode(state: &State, custom: &Custom, kind: &str, version: &str, value: Value) -> Result<Decoded> {
    let reject = |detail: &str| {
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {detail}"
        ))
    };
    let mut value = value;
    if exceeds_depth(&value, MAX_DEPTH) {
        return Err(reject("exceeded max depth"));
    }
    normalize_whole_numbers(&mut value);
    let mut unknown = Vec::new();
    if let Some(metadata) = value.get_mut("metadata")
        && let Some(id) = state.schema.find_struct("meta/v1.ObjectMeta")
    {
        let decoded = state
            .schema
            .decode(id, metadata.take())
            .map_err(|error| reject(&error.to_string()))?;
        unknown.extend(decoded.unknown.iter().map(|name| format!("metadata.{name}")));
        *metadata = decoded.value;
        remove_empty_fields(metadata);
    }
    unknown.extend(prune::prune(&mut value, &custom.node));
    prune::drop_nulls(&mut value, &custom.node);
    let mut embedded_unknown = Vec::new();
    embedded::decode_metadata(
        state.schema,
        &mut value,
        &custom.node,
        &Path::default(),
        &mut embedded_unknown,
    )
    .map_err(|errors| reject(&errors.aggregate()))?;
    embedded_unknown.sort();
    unknown.append(&mut embedded_unknown);
    Ok(Decoded { value, unknown })
}

/// Removes empty fields of metadata. Metadata has a Go type, in which empty fields are not encoded.
pub(crate) fn remove_empty_fields(metadata: &mut Value) {
    if let Value::Object(fields) = metadata {
        fields.retain(|_, field| match field {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        });
    }
}

fn exceeds_depth(value: &Value, max_depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if max_depth == 0 => true,
        Value::Array(items) => items.iter().any(|item| exceeds_depth(item, max_depth - 1)),
        Value::Object(map) => map.values().any(|child| exceeds_depth(child, max_depth - 1)),
        _ => false,
    }
}

/// Replaces floats without a fraction by integers, as the real server does: `1.0` becomes `1`.
fn normalize_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e18)
            {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_whole_numbers),
        Value::Object(map) => map.values_mut().for_each(normalize_whole_numbers),
        _ => {}
    }
}

/// Applies the defaults of the schema. Fails if the object becomes too large to be stored.
pub fn apply_defaults(custom: &Custom, value: &mut Value) -> Result<()> {
    if prune::apply_defaults(value, &custom.node) {
        Ok(())
    } else {
        Err(crate::write::too_large())
    }
}

/// Converts a stored object to the requested version: applies the defaults of the stored version, then
/// removes fields that the requested version does not contain.
pub(crate) fn from_stored(custom: &Custom, value: &mut Value) {
    prune::prune(value, &custom.stored);
    prune::drop_nulls(value, &custom.stored);
    // An object that has become too large to be stored is returned with only some of its defaults.
    let _ = prune::apply_defaults(value, &custom.stored);
    if !std::sync::Arc::ptr_eq(&custom.node, &custom.stored) {
        prune::prune(value, &custom.node);
        prune::drop_nulls(value, &custom.node);
    }
}

/// Converts an object to the stored form.
pub(crate) fn to_stored(custom: &Custom, value: &mut Value) {
    if !std::sync::Arc::ptr_eq(&custom.node, &custom.stored) {
        prune::prune(value, &custom.stored);
        prune::drop_nulls(value, &custom.stored);
    }
}

/// Validates a custom object.
#[must_use]
pub fn validate(custom: &Custom, new: &Value, old: Option<&Value>, context: &mut Context) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (node, root) = (&*custom.node, Path::default());
    let is_status = context.subresource == "status";
    if is_status {
        validate_status(custom, new, old, &mut errors);
    } else {
        let before = old.map(|value| OldValue { value, schema: node });
        super::validate::validate(new, node, before, &root, &mut errors);
        validate_scale(custom, new, false, &mut errors);
    }
    validate_scale(custom, new, true, &mut errors);
    if !is_status {
        embedded::validate(new, node, &root, &mut errors);
    }
    let duplicates = |value: &Value| {
        let mut found = FieldErrors::new();
        lists::validate(value, node, &root, &mut found);
        found
    };
    if old.is_none_or(|old| duplicates(old).is_empty()) {
        errors.append(duplicates(new));
    }
    if let Some(rules) = &custom.rules {
        if errors.iter().any(|error| prevents_rules(error.error_type())) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push_shown(ErrorType::Invalid, &root, Some("null".into()), detail);
        } else {
            let mut findings = Findings {
                errors: &mut errors,
                warnings: &mut context.warnings,
            };
            let input = RuleInput {
                node,
                value: new,
                old,
                ratcheting: true,
            };
            rules.validate(&input, &root, &mut findings);
        }
    }
    errors
}

/// Validates the status, for a write to the status subresource.
fn validate_status(custom: &Custom, new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let (Some(status), Some(schema)) = (new.get("status"), custom.node.properties.get("status")) else {
        return;
    };
    let before = old.and_then(|old| old.get("status"));
    let before = before.map(|value| OldValue { value, schema });
    super::validate::validate(status, schema, before, &Path::new("status"), errors);
}

/// Returns whether rules are not evaluated after an error of this type.
fn prevents_rules(error_type: ErrorType) -> bool {
    matches!(
        error_type,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}

/// Validates the replica count of the scale subresource: in the status if `is_status`, otherwise in the spec.
fn validate_scale(custom: &Custom, value: &Value, is_status: bool, errors: &mut FieldErrors) {
    let Some(scale) = &custom.scale else { return };
    let path = tree::text(
        scale,
        &[if is_status {
            "statusReplicasPath"
        } else {
            "specReplicasPath"
        }],
    );
    match value_at_path(value, path) {
        Err(detail) => errors.invalid(&Path::new(path), 0, detail),
        Ok(Some(found)) => match found.as_i64() {
            None => errors.invalid(&Path::new(path), 0, accessor_error(path, found, "int64")),
            Some(count @ ..0) => {
                errors.invalid(&Path::new(path), count, "should be a non-negative integer");
            }
            Some(count) if count > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.invalid(&Path::new(path), count, detail);
            }
            Some(_) => {}
        },
        Ok(None) => {}
    }
    let selector = tree::text(scale, &["labelSelectorPath"]);
    if !is_status || selector.is_empty() {
        return;
    }
    let detail = match value_at_path(value, selector) {
        Ok(None | Some(Value::String(_))) => return,
        Ok(Some(other)) => accessor_error(selector, other, "string"),
        Err(detail) => detail,
    };
    errors.invalid(&Path::new(selector), "", detail);
}

/// Returns the error text of the accessors of Go's package `unstructured`.
fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    format!(
        "{path} accessor error: {} is of the type {}, expected {expected}",
        show::plain(value),
        show::type_name(value)
    )
}

/// Returns the value at a path of keys, or `None` if it does not exist. Fails with Go's error text if a
/// parent is not a map.
fn value_at_path<'v>(value: &'v Value, path: &str) -> std::result::Result<Option<&'v Value>, String> {
    let mut current = value;
    let mut steps = String::new();
    for key in path.trim_start_matches('.').split('.') {
        steps.push('.');
        steps.push_str(key);
        let child = match current {
            Value::Null => None,
            Value::Object(map) => map.get(key),
            other => return Err(accessor_error(&steps, other, "map[string]interface{}")),
        };
        match child {
            Some(child) => current = child,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

/// Warns about new finalizers that are invalid or have no domain.
pub fn warn(new: &Value, old: Option<&Value>, context: &mut Context) {
    let finalizers = |value: &Value| -> Vec<String> {
        let list = tree::list(value, &["metadata", "finalizers"]);
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(finalizers).unwrap_or_default();
    let mut added: Vec<String> = finalizers(new)
        .into_iter()
        .filter(|one| !before.contains(one))
        .collect();
    added.sort();
    added.dedup();
    for finalizer in added {
        let shown = show::quoted(&finalizer);
        for wrong in names::qualified(&finalizer) {
            context.warn(format!("metadata.finalizers: {shown}: {wrong}"));
        }
        if finalizer.contains('/') || is_standard_finalizer(&finalizer) {
            continue;
        }
        let including = if finalizer.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        context.warn(format!(
            "metadata.finalizers: {shown}: prefer a domain-qualified finalizer name{including} to avoid accidental conflicts with other finalizer writers"
        ));
    }
}

/// Returns a schema without fields, which removes all fields of an object.
pub(crate) fn empty_schema() -> Node {
    Node::default()
}
