//! Validates the metadata of any object.

use std::collections::BTreeSet;

use serde_json::Value;

use super::names::{self, NameRule};
use crate::field::{FieldErrors, Path};
use crate::finalizers::{FOREGROUND, ORPHAN, is_standard_finalizer};
use crate::tree;

/// Maximum total size of annotations in bytes.
pub(crate) const MAX_ANNOTATIONS_SIZE: usize = 256 << 10;

/// Validates `metadata` of an object that is created or replaced.
#[must_use]
pub fn object_meta(object: &Value, namespaced: bool, rule: NameRule) -> FieldErrors {
    object_meta_at(object, namespaced, rule, &Path::new("metadata"))
}

/// Validates `metadata` of an object that is embedded in another object at `path`.
#[must_use]
pub fn object_meta_at(object: &Value, namespaced: bool, rule: NameRule, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_names(object, rule, path, &mut errors);
    validate_namespace(object, namespaced, path, &mut errors);
    if let Some(generation) =
        tree::int(object, &["metadata", "generation"]).filter(|generation| *generation < 0)
    {
        errors.invalid(
            &path.child("generation"),
            generation,
            "must be greater than or equal to 0",
        );
    }
    labels(
        tree::get(object, &["metadata", "labels"]),
        &path.child("labels"),
        &mut errors,
    );
    validate_annotations(object, &path.child("annotations"), &mut errors);
    validate_owners(object, &path.child("ownerReferences"), &mut errors);
    validate_finalizers(object, &path.child("finalizers"), &mut errors);
    errors
}

/// Validates changes of `metadata`.
#[must_use]
pub fn object_meta_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = Path::new("metadata");
    if tree::get(old, &["metadata", "deletionTimestamp"]).is_some() {
        reject_new_finalizers(new, old, &path.child("finalizers"), &mut errors);
    }
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in fixed {
        let (now, then) = (
            tree::get(new, &["metadata", field]),
            tree::get(old, &["metadata", field]),
        );
        if now != then {
            errors.invalid(&path.child(field), now.cloned().unwrap_or(Value::Null), IMMUTABLE);
        }
    }
    labels(
        tree::get(new, &["metadata", "labels"]),
        &path.child("labels"),
        &mut errors,
    );
    validate_annotations(new, &path.child("annotations"), &mut errors);
    validate_owners(new, &path.child("ownerReferences"), &mut errors);
    errors
}

/// Message of the API server for an immutable field.
pub const IMMUTABLE: &str = "field is immutable";

fn validate_names(object: &Value, rule: NameRule, path: &Path, errors: &mut FieldErrors) {
    let (name, generate) = (
        tree::text(object, &["metadata", "name"]),
        tree::text(object, &["metadata", "generateName"]),
    );
    if !generate.is_empty() {
        for wrong in rule(generate, true) {
            errors.invalid(&path.child("generateName"), generate, wrong);
        }
    }
    if name.is_empty() {
        errors.required(&path.child("name"), "name or generateName is required");
        return;
    }
    for wrong in rule(name, false) {
        errors.invalid(&path.child("name"), name, wrong);
    }
}

fn validate_namespace(object: &Value, namespaced: bool, path: &Path, errors: &mut FieldErrors) {
    let (namespace, path) = (
        tree::text(object, &["metadata", "namespace"]),
        path.child("namespace"),
    );
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.required(&path, ""),
        (true, false) => {
            for wrong in names::label(namespace, false) {
                errors.invalid(&path, namespace, wrong);
            }
        }
        (false, false) => errors.forbidden(&path, "not allowed on this type"),
        (false, true) => {}
    }
}

/// Validates a map of labels.
pub fn labels(labels: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        for wrong in names::qualified(key) {
            errors.invalid(path, key.as_str(), wrong);
        }
        let value = value.as_str().unwrap_or("");
        for wrong in names::label_value(value) {
            errors.invalid(path, value, wrong);
        }
    }
}

fn validate_annotations(object: &Value, path: &Path, errors: &mut FieldErrors) {
    let annotations = tree::map(object, &["metadata", "annotations"]);
    for key in annotations.into_iter().flat_map(serde_json::Map::keys) {
        for wrong in names::qualified(&key.to_lowercase()) {
            errors.invalid(path, key.as_str(), wrong);
        }
    }
    if annotations_size(object) > MAX_ANNOTATIONS_SIZE {
        errors.too_long(path, MAX_ANNOTATIONS_SIZE);
    }
}

/// Returns the total size of an object's annotations in bytes.
pub(crate) fn annotations_size(object: &Value) -> usize {
    let annotations = tree::map(object, &["metadata", "annotations"]);
    let sizes = annotations.into_iter().flatten();
    sizes
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

fn validate_owners(object: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut first_controller: Option<String> = None;
    let all = tree::list(object, &["metadata", "ownerReferences"]);
    for owner in all {
        for (field, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if tree::text(owner, &[field]).is_empty() {
                errors.invalid(&path.child(field), "", detail);
            }
        }
        if tree::text(owner, &["kind"]) == "Event" && tree::text(owner, &["apiVersion"]) == "v1" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.invalid_shown(path, format_go_owner(owner), detail);
        }
        if tree::flag(owner, &["controller"]) {
            let shown = format!(
                "{}/{}",
                tree::text(owner, &["kind"]),
                tree::text(owner, &["name"])
            );
            if let Some(first) = &first_controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {shown}"
                );
                let shown: Vec<String> = all.iter().map(format_go_owner).collect();
                errors.invalid_shown(path, format!("[{}]", shown.join(",")), detail);
            } else {
                first_controller = Some(shown);
            }
        }
    }
}

/// Formats an owner reference with its fields in the order of the Go type.
fn format_go_owner(owner: &Value) -> String {
    let fields = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let shown: Vec<String> = fields
        .iter()
        .filter_map(|field| owner.get(field).map(|value| format!("{field:?}:{value}")))
        .collect();
    format!("{{{}}}", shown.join(","))
}

fn validate_finalizers(object: &Value, path: &Path, errors: &mut FieldErrors) {
    let all = tree::list(object, &["metadata", "finalizers"]);
    let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    for text in &texts {
        for wrong in names::qualified(text) {
            errors.invalid(path, *text, wrong);
        }
    }
    if texts.contains(&ORPHAN) && texts.contains(&FOREGROUND) {
        errors.invalid(
            path,
            all.to_vec(),
            "finalizer orphan and foregroundDeletion cannot be both set",
        );
    }
}

fn reject_new_finalizers(new: &Value, old: &Value, path: &Path, errors: &mut FieldErrors) {
    let set = |object| -> BTreeSet<String> {
        tree::list(object, &["metadata", "finalizers"])
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let extra: Vec<String> = set(new)
        .difference(&set(old))
        .map(|one| format!("{one:?}"))
        .collect();
    if !extra.is_empty() {
        let shown = extra.join(", ");
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        );
        errors.forbidden(path, detail);
    }
}

/// Checks that finalizers have a domain or are standard finalizers. Only builtin kinds require this.
pub fn standard_finalizers(object: &Value, errors: &mut FieldErrors) {
    let path = Path::new("metadata").child("finalizers");
    for (at, finalizer) in tree::list(object, &["metadata", "finalizers"]).iter().enumerate() {
        let text = finalizer.as_str().unwrap_or("");
        if !text.contains('/') && !is_standard_finalizer(text) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path.index(at), text, detail);
        }
    }
}
