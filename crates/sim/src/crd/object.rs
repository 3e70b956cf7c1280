//! Decodes, converts and validates custom objects.

use serde_json::{Number, Value};

use super::correlate::Old;
use super::rules::{Findings, RuleInput};
use super::schema::Node;
use super::{Custom, embedded, lists, prune};
use crate::context::Context;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::schema::Decoded;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::validation::names;

/// Maximum nesting of an object; the functions below recurse to its leaves.
const MAX_DEPTH: usize = 256;

/// Decodes a custom object; unknown fields are dropped and reported.
pub fn decode(state: &State, custom: &Custom, kind: &str, version: &str, value: Value) -> Result<Decoded> {
    let reject = |detail: &str| {
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {detail}"
        ))
    };
    let mut value = value;
    if too_deep(&value, MAX_DEPTH) {
        return Err(reject("exceeded max depth"));
    }
    whole_numbers(&mut value);
    let mut unknown = Vec::new();
    if let Some(metadata) = value.get_mut("metadata")
        && let Some(id) = state.schema.named("meta/v1.ObjectMeta")
    {
        let decoded = state
            .schema
            .decode(id, metadata.take())
            .map_err(|error| reject(&error.to_string()))?;
        unknown.extend(decoded.unknown.iter().map(|name| format!("metadata.{name}")));
        *metadata = decoded.value;
        drop_empty(metadata);
    }
    unknown.extend(prune::prune(&mut value, &custom.node));
    prune::drop_nulls(&mut value, &custom.node);
    let mut below = Vec::new();
    embedded::coerce(
        state.schema,
        &mut value,
        &custom.node,
        &Path::default(),
        &mut below,
    )
    .map_err(|errors| reject(&errors.aggregate()))?;
    below.sort();
    unknown.append(&mut below);
    Ok(Decoded { value, unknown })
}

/// Metadata is typed, so empty fields count as absent.
pub(crate) fn drop_empty(metadata: &mut Value) {
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

fn too_deep(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => true,
        Value::Array(items) => items.iter().any(|item| too_deep(item, left - 1)),
        Value::Object(map) => map.values().any(|below| too_deep(below, left - 1)),
        _ => false,
    }
}

/// `1.0` is written as `1` after decoding.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e18)
            {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Applies the schema's defaults. Fails if they make the object too large to be stored.
pub fn default(custom: &Custom, value: &mut Value) -> Result<()> {
    if prune::default(value, &custom.node) {
        Ok(())
    } else {
        Err(crate::write::too_large())
    }
}

/// Converts a stored object to the requested version: defaults of the stored version, then the fields of the
/// requested version.
pub(crate) fn from_stored(custom: &Custom, value: &mut Value) {
    prune::prune(value, &custom.stored);
    prune::drop_nulls(value, &custom.stored);
    // An object that can no longer be stored is returned with a part of its defaults.
    let _ = prune::default(value, &custom.stored);
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
    let status = context.subresource == "status";
    if status {
        status_part(custom, new, old, &mut errors);
    } else {
        let before = old.map(|value| Old { value, schema: node });
        super::validate::validate(new, node, before, &root, &mut errors);
        scale(custom, new, false, &mut errors);
    }
    scale(custom, new, true, &mut errors);
    if !status {
        embedded::validate(new, node, &root, &mut errors);
    }
    let repeated = |value: &Value| {
        let mut found = FieldErrors::new();
        lists::validate(value, node, &root, &mut found);
        found
    };
    if old.is_none_or(|old| repeated(old).is_empty()) {
        errors.append(repeated(new));
    }
    if let Some(rules) = &custom.rules {
        if errors.iter().any(|error| blocks(error.error_type())) {
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

/// For a write to the status, only the status is validated.
fn status_part(custom: &Custom, new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let (Some(status), Some(schema)) = (new.get("status"), custom.node.properties.get("status")) else {
        return;
    };
    let before = old.and_then(|old| old.get("status"));
    let before = before.map(|value| Old { value, schema });
    super::validate::validate(status, schema, before, &Path::new("status"), errors);
}

/// Errors after which rules are not evaluated.
fn blocks(fault: ErrorType) -> bool {
    matches!(
        fault,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}

/// Validates the replica counts of the scale subresource, in the status if `status` is set, else in the spec.
fn scale(custom: &Custom, value: &Value, status: bool, errors: &mut FieldErrors) {
    let Some(scale) = &custom.scale else { return };
    let path = tree::text(
        scale,
        &[if status {
            "statusReplicasPath"
        } else {
            "specReplicasPath"
        }],
    );
    match nested(value, path) {
        Err((steps, found)) => {
            let detail = format!("{steps} accessor error: {found}, expected int64");
            errors.invalid(&Path::new(path), 0, detail);
        }
        Ok(Some(Value::Number(number))) => {
            let count = number.as_i64().unwrap_or(-1);
            if count < 0 {
                errors.invalid(&Path::new(path), count, "should be a non-negative integer");
            } else if count > i64::from(i32::MAX) {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.invalid(&Path::new(path), count, detail);
            }
        }
        Ok(Some(other)) => {
            let detail = accessor(path, other, "int64");
            errors.invalid(&Path::new(path), 0, detail);
        }
        Ok(None) => {}
    }
    let selector = tree::text(scale, &["labelSelectorPath"]);
    if status
        && !selector.is_empty()
        && let Ok(Some(other)) = nested(value, selector)
        && !other.is_string()
    {
        errors.invalid(&Path::new(selector), "", accessor(selector, other, "string"));
    }
}

fn accessor(path: &str, value: &Value, wanted: &str) -> String {
    format!(
        "{path} accessor error: {} is of the type {}, expected {wanted}",
        go_value(value),
        go_type(value)
    )
}

/// Returns the value at a path of keys; `Err` if a parent is not a map.
fn nested<'v>(value: &'v Value, path: &str) -> std::result::Result<Option<&'v Value>, (String, String)> {
    let mut at = value;
    let mut steps = String::new();
    for key in path.trim_start_matches('.').split('.') {
        let Value::Object(map) = at else {
            let found = format!("{} is of the type {}", go_value(at), go_type(at));
            return Err((steps, format!("{found}, expected map[string]interface{{}}")));
        };
        steps.push('.');
        steps.push_str(key);
        match map.get(key) {
            Some(below) => at = below,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn go_type(value: &Value) -> &'static str {
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

fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        other => super::show::value(other),
    }
}

/// Warns about finalizers without a domain.
pub fn warn(new: &Value, old: Option<&Value>, context: &mut Context) {
    let known = |value: &Value| -> Vec<String> {
        let list = tree::list(value, &["metadata", "finalizers"]);
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(known).unwrap_or_default();
    let mut added: Vec<String> = known(new)
        .into_iter()
        .filter(|one| !before.contains(one))
        .collect();
    added.sort();
    added.dedup();
    for finalizer in added {
        let shown = super::show::quoted(&finalizer);
        for wrong in names::qualified(&finalizer) {
            context.warn(format!("metadata.finalizers: {shown}: {wrong}"));
        }
        if finalizer.contains('/')
            || matches!(finalizer.as_str(), "orphan" | "foregroundDeletion" | "kubernetes")
        {
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

/// A schema without fields: everything is dropped.
pub(crate) fn nothing() -> Node {
    Node::default()
}
