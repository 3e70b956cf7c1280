//! Checks that a schema is structural. Errors are sorted by text, as in the real server.

use serde_json::{Map, Value, json};

use crate::crd::pattern;
use crate::crd::schema::text;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

/// Returns the error for the first keyword that structural schemas do not support.
pub(super) fn unsupported_keyword(schema: &Value) -> Option<String> {
    let has = |key: &str| {
        schema.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        })
    };
    let keywords = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    if let Some((_, name)) = keywords.iter().find(|(key, _)| has(key)) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if schema.get(PRESERVE).is_some_and(|flag| flag == false) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".into(),
        );
    }
    if schema
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|items| !items.is_empty())
    {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    super::warnings::subschemas(schema)
        .into_iter()
        .find_map(unsupported_keyword)
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Returns the violations of the requirements for structural schemas.
pub(super) fn check(schema: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    check_node(schema, Level::Root, path, &mut errors);
    check_completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort();
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|flag| flag == true)
}

fn map<'v>(schema: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    schema.get(key).and_then(Value::as_object)
}

fn list<'v>(schema: &'v Value, key: &str) -> &'v [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Checks a node of the structure.
fn check_node(schema: &Value, level: Level, path: &Path, errors: &mut FieldErrors) {
    let kind = text(schema, "type");
    let items = schema.get("items").filter(|items| items.is_object());
    if kind == "array" && items.is_none() {
        errors.required(&path.child("items"), "must be specified");
    }
    if let Some(items) = items {
        check_node(items, Level::Item, &path.child("items"), errors);
    }
    let properties = map(schema, "properties");
    for (name, property) in properties.into_iter().flatten() {
        check_node(
            property,
            Level::Field,
            &path.child("properties").key(name),
            errors,
        );
    }
    let additional = schema
        .get("additionalProperties")
        .filter(|value| !value.is_null());
    if let Some(values) = additional {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.forbidden(&path, "must not be used at the root");
        }
        if values.is_object() {
            check_node(values, Level::Field, &path, errors);
        }
        if flag(schema, EMBEDDED) {
            errors.forbidden(&path, "must not be used if x-kubernetes-embedded-resource is set");
        }
    }
    check_extensions(schema, path, errors);
    check_value_validations(schema, level, path, errors);
    check_type(schema, kind, level, path, errors);
    let has_metadata = level == Level::Root || flag(schema, EMBEDDED);
    if let Some(properties) = properties {
        check_metadata(properties, has_metadata, level, path, errors);
    }
    let has_no_properties = properties.is_none_or(Map::is_empty);
    if flag(schema, EMBEDDED) && !flag(schema, PRESERVE) && has_no_properties {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.required(&path.child("properties"), detail);
    }
}

fn check_extensions(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in [PRESERVE, EMBEDDED] {
        if flag(schema, INT_OR_STRING) && flag(schema, key) {
            errors.invalid(
                &path.child(key),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
    }
}

fn check_type(schema: &Value, kind: &str, level: Level, path: &Path, errors: &mut FieldErrors) {
    let path = path.child("type");
    let detail = "must be object if x-kubernetes-embedded-resource is true";
    if flag(schema, EMBEDDED) && kind != "object" {
        if kind.is_empty() {
            errors.required(&path, detail);
        } else {
            errors.invalid(&path, kind, detail);
        }
    } else if kind.is_empty() && !flag(schema, INT_OR_STRING) && !flag(schema, PRESERVE) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.required(&path, detail);
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.invalid(&path, kind, "must be object at the root");
    }
}

fn check_metadata(
    properties: &Map<String, Value>,
    has_metadata: bool,
    level: Level,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let location = |key: &str| path.child("properties").key(key);
    for key in ["kind", "apiVersion"] {
        if let Some(schema) = properties.get(key).filter(|_| has_metadata)
            && text(schema, "type") != "string"
        {
            errors.invalid(
                &location(key).child("type"),
                text(schema, "type"),
                "must be string",
            );
        }
    }
    let Some(metadata) = properties.get("metadata") else {
        return;
    };
    if has_metadata && text(metadata, "type") != "object" {
        errors.invalid(
            &location("metadata").child("type"),
            text(metadata, "type"),
            "must be object",
        );
    }
    if level != Level::Root {
        return;
    }
    let has_only_names = |properties: &Value| {
        let keys = properties
            .as_object()
            .map(|map| map.keys().all(|key| key == "name" || key == "generateName"));
        keys.unwrap_or(true)
    };
    let is_allowed = metadata
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| match key.as_str() {
            "type" | "default" => true,
            "properties" => has_only_names(value),
            _ => {
                value.is_null()
                    || *value == false
                    || *value == ""
                    || value.as_array().is_some_and(Vec::is_empty)
            }
        });
    if !is_allowed {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(&location("metadata"), detail);
    }
}

/// Returns whether the branches are those of `x-kubernetes-int-or-string`, the only `anyOf` that may contain
/// types.
fn is_int_or_string(branches: &[Value]) -> bool {
    branches == [json!({"type": "integer"}), json!({"type": "string"})]
}

/// Checks the value validations of a node.
fn check_value_validations(schema: &Value, level: Level, path: &Path, errors: &mut FieldErrors) {
    let all = list(schema, "allOf");
    let first_is_int_or_string = all
        .first()
        .is_some_and(|first| is_int_or_string(list(first, "anyOf")));
    check_branches(
        schema,
        is_int_or_string(list(schema, "anyOf")),
        first_is_int_or_string,
        level,
        path,
        errors,
    );
}

fn check_branches(
    schema: &Value,
    skip_any_of: bool,
    skip_first: bool,
    level: Level,
    path: &Path,
    errors: &mut FieldErrors,
) {
    if !skip_any_of {
        for (at, branch) in list(schema, "anyOf").iter().enumerate() {
            check_branch(branch, false, level, &path.child("anyOf").index(at), errors);
        }
    }
    for (at, branch) in list(schema, "allOf").iter().enumerate() {
        check_branch(
            branch,
            skip_first && at == 0,
            level,
            &path.child("allOf").index(at),
            errors,
        );
    }
    for (at, branch) in list(schema, "oneOf").iter().enumerate() {
        check_branch(branch, false, level, &path.child("oneOf").index(at), errors);
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        check_branch(not, false, level, &path.child("not"), errors);
    }
    let expression = text(schema, "pattern");
    if !expression.is_empty()
        && let Err(detail) = pattern::compile(expression)
    {
        let detail = format!("must be a valid regular expression, but isn't: {detail}");
        errors.push_shown(
            ErrorType::Invalid,
            &path.child("pattern"),
            Some(show::quoted(expression)),
            detail,
        );
    }
}

/// Checks a branch of a value validation. It may restrict values, but not add structure.
fn check_branch(branch: &Value, skip_any_of: bool, level: Level, path: &Path, errors: &mut FieldErrors) {
    check_branches(branch, skip_any_of, false, level, path, errors);
    if let Some(items) = branch.get("items").filter(|items| items.is_object()) {
        check_branch(items, false, level, &path.child("items"), errors);
    }
    let properties = map(branch, "properties");
    for (name, property) in properties.into_iter().flatten() {
        check_branch(
            property,
            false,
            Level::Field,
            &path.child("properties").key(name),
            errors,
        );
    }
    for (key, detail) in [
        ("type", "must be empty to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
    ] {
        if !text(branch, key).is_empty() {
            errors.forbidden(&path.child(key), detail);
        }
    }
    let additional = branch.get("additionalProperties");
    if additional.is_some_and(|value| value.is_object() || *value == true) {
        errors.forbidden(
            &path.child("additionalProperties"),
            "must be undefined to be structural",
        );
    }
    for key in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if branch.get(key).is_some_and(|value| !value.is_null()) {
            errors.forbidden(&path.child(key), "must be undefined to be structural");
        }
    }
    for key in ["nullable", PRESERVE, EMBEDDED, INT_OR_STRING] {
        if flag(branch, key) {
            errors.forbidden(&path.child(key), "must be false to be structural");
        }
    }
    for key in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if !list(branch, key).is_empty() {
            errors.forbidden(&path.child(key), "must be empty to be structural");
        }
    }
    if properties.is_some_and(|properties| properties.contains_key("metadata")) {
        let detail = "must not be specified in a nested context";
        errors.forbidden(&path.child("properties").key("metadata"), detail);
    }
}

/// Checks that all items and properties in value validations are part of the structure.
fn check_completeness(
    branch: &Value,
    structure: Option<&Value>,
    at: &Path,
    from: &Path,
    errors: &mut FieldErrors,
) {
    let mut check =
        |branch: &Value, from: &Path| check_nested_completeness(branch, structure, at, from, errors);
    if let Some(not) = branch.get("not").filter(|not| not.is_object()) {
        check(not, &from.child("not"));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, branch) in list(branch, key).iter().enumerate() {
            check(branch, &from.child(key).index(index));
        }
    }
}

fn check_nested_completeness(
    branch: &Value,
    structure: Option<&Value>,
    at: &Path,
    from: &Path,
    errors: &mut FieldErrors,
) {
    let Some(structure) = structure else {
        errors.required(at, format!("because it is defined in {from}"));
        return;
    };
    check_completeness(branch, Some(structure), at, from, errors);
    if let Some(items) = branch.get("items").filter(|items| items.is_object()) {
        let item_structure = structure.get("items").filter(|items| items.is_object());
        check_nested_completeness(
            items,
            item_structure,
            &at.child("items"),
            &from.child("items"),
            errors,
        );
    }
    for (name, property) in map(branch, "properties").into_iter().flatten() {
        let location = |path: &Path| path.child("properties").key(name);
        let property_structure = map(structure, "properties").and_then(|properties| properties.get(name));
        check_nested_completeness(
            property,
            property_structure,
            &location(at),
            &location(from),
            errors,
        );
    }
}
