//! Validates the defaults of a structural schema against the schema.

use serde_json::Value;

use crate::crd::rules::{Findings, RuleInput, Rules};
use crate::crd::schema::Node;
use crate::crd::{embedded, lists, prune, show, validate};
use crate::field::{ErrorType, FieldErrors, Path};

pub(super) fn check(schema: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(schema, path, true, &mut errors);
    errors
}

fn walk(schema: &Value, path: &Path, root: bool, errors: &mut FieldErrors) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        one(schema, default, &path.child("default"), errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        walk(items, &path.child("items"), false, errors);
    }
    let embedded = root
        || schema
            .get("x-kubernetes-embedded-resource")
            .is_some_and(|flag| flag == true);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, below) in properties.into_iter().flatten() {
        // Embedded metadata is validated as metadata.
        if !embedded || !matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            walk(below, &path.child("properties").key(name), false, errors);
        }
    }
}

fn one(schema: &Value, default: &Value, path: &Path, errors: &mut FieldErrors) {
    let node = Node::compile(schema);
    let mut pruned = default.clone();
    prune::prune_part(&mut pruned, &node);
    if pruned != *default {
        let shown = Some(show::value(default));
        errors.push_shown(ErrorType::Invalid, path, shown, "must not have unknown fields");
    }
    let mut wrong = FieldErrors::new();
    embedded::validate(default, &node, path, &mut wrong);
    if wrong.is_empty() {
        validate::validate(default, &node, None, path, &mut wrong);
    }
    if wrong.is_empty() {
        lists::validate(default, &node, path, &mut wrong);
    }
    if wrong.is_empty()
        && let Some(rules) = Rules::compile(schema, &node, false)
    {
        validate_default(&rules, &node, default, path, &mut wrong);
    }
    errors.append(wrong);
}

/// A default must be valid as an unchanged value and as a new one.
fn validate_default(rules: &Rules, node: &Node, default: &Value, path: &Path, errors: &mut FieldErrors) {
    for old in [Some(default), None] {
        let mut warnings = Vec::new();
        let mut findings = Findings {
            errors,
            warnings: &mut warnings,
        };
        let input = RuleInput {
            node,
            value: default,
            old,
            ratcheting: false,
        };
        rules.validate(&input, path, &mut findings);
        if !findings.errors.is_empty() {
            return;
        }
    }
}
