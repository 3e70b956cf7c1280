//! Validates one version of a definition: schema, subresources, columns and selectable fields.

use serde_json::Value;

use super::{defaults, internal, openapi, structural};
use crate::crd::paths;
use crate::crd::schema::Node;
use crate::crd::show;
use crate::field::{ErrorType, FieldErrors, Path};
use crate::tree;

/// The schema of a version.
pub(super) fn schema(version: &Value) -> Option<&Value> {
    tree::get(version, &["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null())
}

/// Which parts all versions share.
pub(super) struct Parts {
    shared: Vec<&'static str>,
    top: Option<Value>,
}

const PARTS: [&str; 4] = [
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

impl Parts {
    pub(super) fn new(versions: &[Value]) -> Self {
        let first = versions.first();
        let part = |version: &Value, key: &str| version.get(key).filter(|part| !is_empty(part)).cloned();
        let same = |key: &str| {
            let wanted = first.and_then(|first| part(first, key));
            versions.iter().all(|version| part(version, key) == wanted)
        };
        Self {
            shared: PARTS.into_iter().filter(|key| same(key)).collect(),
            top: first.cloned(),
        }
    }

    pub(super) fn is_shared(&self, key: &str) -> bool {
        self.shared.contains(&key)
    }

    /// Returns whether all versions share a schema.
    pub(super) fn has_top_schema(&self) -> bool {
        self.is_shared("schema") && self.top.as_ref().is_some_and(|top| schema(top).is_some())
    }

    /// Validates the parts that are specific to a version.
    pub(super) fn own(&self, version: &Value, path: &Path, errors: &mut FieldErrors) {
        let has_status = has_status(version);
        if !self.is_shared("schema")
            && let Some(schema) = schema(version)
        {
            check_schema(
                schema,
                has_status,
                &path.child("schema").child("openAPIV3Schema"),
                errors,
            );
        }
        if !self.is_shared("subresources") {
            subresources(version, &path.child("subresources"), errors);
        }
        if !self.is_shared("additionalPrinterColumns") {
            columns(version, &path.child("additionalPrinterColumns"), errors);
        }
        if !self.is_shared("selectableFields") {
            selectable(version, &path.child("selectableFields"), errors);
        }
    }

    /// Validates the parts that all versions share.
    pub(super) fn shared(&self, versions: &[Value], path: &Path, errors: &mut FieldErrors) {
        let Some(top) = &self.top else { return };
        if self.is_shared("schema")
            && let Some(schema) = schema(top)
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
            subresources(top, &path.child("subresources"), errors);
        }
        if self.is_shared("additionalPrinterColumns") {
            columns(top, &path.child("additionalPrinterColumns"), errors);
        }
        if self.is_shared("selectableFields") {
            selectable(top, &path.child("selectableFields"), errors);
        }
    }
}

fn is_empty(part: &Value) -> bool {
    part.is_null() || part.as_array().is_some_and(Vec::is_empty)
}

fn has_status(version: &Value) -> bool {
    tree::get(version, &["subresources", "status"]).is_some_and(|status| !status.is_null())
}

/// Fields of a root schema that may be combined with a status subresource, as Go names them.
const ALLOWED: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Fields that may not, in Go's order, around `type`.
const FORBIDDEN: [&str; 22] = [
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

fn root_beside_status(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in FORBIDDEN {
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
            "only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.push_shown(ErrorType::Invalid, path, Some(internal::schema(schema)), detail);
        return;
    }
}

fn check_schema(schema: &Value, has_status: bool, path: &Path, errors: &mut FieldErrors) {
    let mut found = FieldErrors::new();
    if has_status {
        root_beside_status(schema, path, &mut found);
    }
    if schema.get("nullable").is_some_and(|flag| flag == true) {
        found.forbidden(&path.child("nullable"), "nullable cannot be true at the root");
    }
    let unsupported = structural::unsupported(schema);
    let mut rules = false;
    if unsupported.is_none() {
        let broken = structural::check(schema, path);
        if broken.is_empty() {
            let wrong = defaults::check(schema, path);
            rules = wrong.is_empty();
            found.append(wrong);
        } else {
            found.append(broken);
        }
    }
    found.append(openapi::check(schema, path, rules));
    if let Some(detail) = unsupported.filter(|_| found.is_empty()) {
        found.push_shown(ErrorType::Invalid, path, Some("\"\"".into()), detail);
    }
    errors.append(found);
}

/// Validates the deprecation warning of a version.
pub(super) fn deprecation(version: &Value, path: &Path, errors: &mut FieldErrors) {
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
    let odd = text
        .char_indices()
        .find(|(_, c)| c.is_control() || c.is_whitespace() && *c != ' ');
    if let Some((at, _)) = odd {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn simple_path(text: &str, path: &Path, errors: &mut FieldErrors) -> bool {
    if text.starts_with('.') {
        return true;
    }
    errors.invalid(path, text, "must be a simple json path starting with .");
    false
}

fn subresources(version: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(scale) = tree::get(version, &["subresources", "scale"]).filter(|scale| !scale.is_null()) else {
        return;
    };
    for (key, below) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (text, location) = (tree::text(scale, &[key]), path.child(&format!("scale.{key}")));
        if text.is_empty() {
            errors.required(&location, "");
        } else if simple_path(text, &location, errors) && !text.starts_with(&format!("{below}.")) {
            errors.invalid(&location, text, format!("should be a json path under {below}"));
        }
    }
    let (text, location) = (
        tree::text(scale, &["labelSelectorPath"]),
        path.child("scale.labelSelectorPath"),
    );
    if !text.is_empty()
        && simple_path(text, &location, errors)
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

fn columns(version: &Value, path: &Path, errors: &mut FieldErrors) {
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
            text => drop(simple_path(text, &path.child("JSONPath"), errors)),
        }
    }
}

/// Maximum number of selectable fields.
const MAX_SELECTABLE_FIELDS: usize = 8;

fn selectable(version: &Value, path: &Path, errors: &mut FieldErrors) {
    let fields = tree::list(version, &["selectableFields"]);
    if fields.is_empty() {
        return;
    }
    let Some(schema) = schema(version) else { return };
    let node = Node::compile(schema);
    let mut seen: Vec<String> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let (text, location) = (tree::text(field, &["jsonPath"]), path.index(at).child("jsonPath"));
        if text.is_empty() {
            errors.required(&location, "");
            continue;
        }
        let found = match paths::find(text, &node, false) {
            Ok(found) => found,
            Err(detail) => {
                errors.invalid(&location, text, format!("is an invalid path: {detail}"));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.invalid(&location, text, "must not point to fields in metadata");
        }
        let scalar = |node: &Node| matches!(node.kind.as_str(), "string" | "boolean" | "integer");
        if !found.node.is_some_and(scalar) {
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
