//! Validates one version of a definition: schema, subresources, columns and selectable fields.

use serde_json::Value;

use super::{defaults, internal, openapi, structural};
use crate::crd::paths;
use crate::crd::schema::Node;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;
use crate::tree;

/// Returns the schema of a version.
pub(super) fn root_schema(version: &Value) -> Option<&Value> {
    tree::get(version, &["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null())
}

/// Parts that all versions share.
pub(super) struct SharedParts {
    names: Vec<&'static str>,
    first_version: Option<Value>,
}

const PART_NAMES: [&str; 4] = [
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

impl SharedParts {
    pub(super) fn new(versions: &[Value]) -> Self {
        let first = versions.first();
        let part = |version: &Value, key: &str| version.get(key).filter(|part| !is_empty(part)).cloned();
        let is_equal = |key: &str| {
            let first_part = first.and_then(|first| part(first, key));
            versions.iter().all(|version| part(version, key) == first_part)
        };
        Self {
            names: PART_NAMES.into_iter().filter(|key| is_equal(key)).collect(),
            first_version: first.cloned(),
        }
    }

    pub(super) fn is_shared(&self, key: &str) -> bool {
        self.names.contains(&key)
    }

    /// Returns whether all versions share a schema.
    pub(super) fn has_top_schema(&self) -> bool {
        self.is_shared("schema")
            && self
                .first_version
                .as_ref()
                .is_some_and(|first| root_schema(first).is_some())
    }

    /// Validates the parts that are specific to a version.
    pub(super) fn check_version(&self, version: &Value, path: &Path, errors: &mut FieldErrors) {
        let has_status = has_status(version);
        if !self.is_shared("schema")
            && let Some(schema) = root_schema(version)
        {
            check_schema(
                schema,
                has_status,
                &path.child("schema").child("openAPIV3Schema"),
                errors,
            );
        }
        if !self.is_shared("subresources") {
            check_subresources(version, &path.child("subresources"), errors);
        }
        if !self.is_shared("additionalPrinterColumns") {
            check_columns(version, &path.child("additionalPrinterColumns"), errors);
        }
        if !self.is_shared("selectableFields") {
            check_selectable_fields(version, &path.child("selectableFields"), errors);
        }
    }

    /// Validates the parts that all versions share.
    pub(super) fn check_shared(&self, versions: &[Value], path: &Path, errors: &mut FieldErrors) {
        let Some(first) = &self.first_version else { return };
        if self.is_shared("schema")
            && let Some(schema) = root_schema(first)
        {
            let any_status = versions.iter().any(has_status);
            check_schema(
                schema,
                any_status,
                &path.child("validation").child("openAPIV3Schema"),
                errors,
            );
        }
        if self.is_shared("subresources") {
            check_subresources(first, &path.child("subresources"), errors);
        }
        if self.is_shared("additionalPrinterColumns") {
            check_columns(first, &path.child("additionalPrinterColumns"), errors);
        }
        if self.is_shared("selectableFields") {
            check_selectable_fields(first, &path.child("selectableFields"), errors);
        }
    }
}

fn is_empty(part: &Value) -> bool {
    part.is_null() || part.as_array().is_some_and(Vec::is_empty)
}

fn has_status(version: &Value) -> bool {
    tree::get(version, &["subresources", "status"]).is_some_and(|status| !status.is_null())
}

/// Go names of the fields of a root schema that may be combined with a status subresource.
const ALLOWED_ROOT_FIELDS: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Keywords of a root schema that must not be combined with a status subresource, in the order of the Go
/// fields. Only the `type` object is allowed.
const FORBIDDEN_ROOT_KEYWORDS: [&str; 22] = [
    "id",
    "$schema",
    "$ref",
    "type",
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

fn check_root_with_status(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in FORBIDDEN_ROOT_KEYWORDS {
        let Some(value) = schema
            .get(key)
            .filter(|value| !value.is_null() && **value != false)
        else {
            continue;
        };
        if key == "type" {
            if value == "object" {
                continue;
            }
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            errors.invalid(&path.child("type"), value.clone(), detail);
            return;
        }
        let detail = format!(
            "only {ALLOWED_ROOT_FIELDS} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.push_shown(
            ErrorType::Invalid,
            path,
            Some(internal::format_schema(schema)),
            detail,
        );
        return;
    }
}

fn check_schema(schema: &Value, has_status: bool, path: &Path, errors: &mut FieldErrors) {
    let mut found = FieldErrors::new();
    if has_status {
        check_root_with_status(schema, path, &mut found);
    }
    if schema.get("nullable").is_some_and(|flag| flag == true) {
        found.forbidden(&path.child("nullable"), "nullable cannot be true at the root");
    }
    let unsupported = structural::unsupported_keyword(schema);
    let mut compile_rules = false;
    if unsupported.is_none() {
        let broken = structural::check(schema, path);
        if broken.is_empty() {
            let wrong = defaults::check(schema, path);
            compile_rules = wrong.is_empty();
            found.append(wrong);
        } else {
            found.append(broken);
        }
    }
    found.append(openapi::check(schema, path, compile_rules));
    if let Some(detail) = unsupported.filter(|_| found.is_empty()) {
        found.push_shown(ErrorType::Invalid, path, Some("\"\"".into()), detail);
    }
    errors.append(found);
}

/// Validates the deprecation warning of a version.
pub(super) fn check_deprecation(version: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(text) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let path = path.child("deprecationWarning");
    let mut wrong =
        |detail: String| errors.push_shown(ErrorType::Invalid, &path, Some(show::quoted(text)), detail);
    if !tree::flag(version, &["deprecated"]) {
        return wrong("can only be set for deprecated versions".into());
    }
    if text.len() > 256 {
        wrong("must be <= 256 characters long".into());
    }
    if text.is_empty() {
        wrong("must not be an empty string".into());
    }
    let non_printable = text
        .char_indices()
        .find(|(_, c)| c.is_control() || c.is_whitespace() && *c != ' ');
    if let Some((at, _)) = non_printable {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

/// Reports a path without a leading dot. Returns whether it has one.
fn check_simple_path(text: &str, path: &Path, errors: &mut FieldErrors) -> bool {
    if text.starts_with('.') {
        return true;
    }
    errors.invalid(path, text, "must be a simple json path starting with .");
    false
}

fn check_subresources(version: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(scale) = tree::get(version, &["subresources", "scale"]).filter(|scale| !scale.is_null()) else {
        return;
    };
    for (key, below) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (text, location) = (tree::text(scale, &[key]), path.child(&format!("scale.{key}")));
        if text.is_empty() {
            errors.required(&location, "");
        } else if check_simple_path(text, &location, errors) && !text.starts_with(&format!("{below}.")) {
            errors.invalid(&location, text, format!("should be a json path under {below}"));
        }
    }
    let (text, location) = (
        tree::text(scale, &["labelSelectorPath"]),
        path.child("scale.labelSelectorPath"),
    );
    if !text.is_empty()
        && check_simple_path(text, &location, errors)
        && !text.starts_with(".spec.")
        && !text.starts_with(".status.")
    {
        errors.invalid(
            &location,
            text,
            "should be a json path under either .spec or .status",
        );
    }
}

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

fn check_columns(version: &Value, path: &Path, errors: &mut FieldErrors) {
    for (at, column) in tree::list(version, &["additionalPrinterColumns"])
        .iter()
        .enumerate()
    {
        let (path, text) = (path.index(at), |key| tree::text(column, &[key]));
        if text("name").is_empty() {
            errors.required(&path.child("name"), "");
        }
        let one_of = |values: &[&str]| format!("must be one of {}", values.join(","));
        match text("type") {
            "" => errors.required(&path.child("type"), one_of(&TYPES)),
            kind if !TYPES.contains(&kind) => errors.invalid(&path.child("type"), kind, one_of(&TYPES)),
            _ => {}
        }
        let format = text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.invalid(&path.child("format"), format, one_of(&FORMATS));
        }
        match text("jsonPath") {
            "" => errors.required(&path.child("JSONPath"), ""),
            text => drop(check_simple_path(text, &path.child("JSONPath"), errors)),
        }
    }
}

/// Maximum number of selectable fields.
const MAX_SELECTABLE_FIELDS: usize = 8;

fn check_selectable_fields(version: &Value, path: &Path, errors: &mut FieldErrors) {
    let fields = tree::list(version, &["selectableFields"]);
    if fields.is_empty() {
        return;
    }
    let Some(schema) = root_schema(version) else {
        return;
    };
    let node = Node::compile(schema);
    let mut seen: Vec<String> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let (text, location) = (tree::text(field, &["jsonPath"]), path.index(at).child("jsonPath"));
        if text.is_empty() {
            errors.required(&location, "");
            continue;
        }
        let found = match paths::resolve(text, &node, false) {
            Ok(found) => found,
            Err(detail) => {
                errors.invalid(&location, text, format!("is an invalid path: {detail}"));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.invalid(&location, text, "must not point to fields in metadata");
        }
        let is_scalar = |node: &Node| matches!(node.kind.as_str(), "string" | "boolean" | "integer");
        if !found.node.is_some_and(is_scalar) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.invalid(&location, text, detail);
        }
        let shown = found.path.to_string();
        if seen.contains(&shown) {
            errors.duplicate(&location, text);
        } else {
            seen.push(shown);
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        errors.too_many(path, seen.len(), MAX_SELECTABLE_FIELDS);
    }
}
