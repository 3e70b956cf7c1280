//! Validates the defaults of a structural schema against the schema.

use serde_json::Value;

use crate::crd::rules::{Findings, RuleInput, Rules};
use crate::crd::schema::Node;
use crate::crd::{embedded, lists, prune, validate};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

pub(super) fn check(schema: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    check_node(schema, path, true, &mut errors);
    errors
}

fn check_node(schema: &Value, path: &Path, root: bool, errors: &mut FieldErrors) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        check_default(schema, default, &path.child("default"), errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_node(items, &path.child("items"), false, errors);
    }
    let embedded = root
        || schema
            .get("x-kubernetes-embedded-resource")
            .is_some_and(|flag| flag == true);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        // The metadata of embedded objects is validated elsewhere.
        if !embedded || !matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            check_node(property, &path.child("properties").key(name), false, errors);
        }
    }
}

fn check_default(schema: &Value, default: &Value, path: &Path, errors: &mut FieldErrors) {
    let node = Node::compile(schema);
    let mut pruned = default.clone();
    prune::prune_part(&mut pruned, &node);
    if pruned != *default {
        let shown = Some(show::value(default));
        errors.push_shown(ErrorType::Invalid, path, shown, "must not have unknown fields");
    }
    let mut default_errors = FieldErrors::new();
    embedded::validate(default, &node, path, &mut default_errors);
    if default_errors.is_empty() {
        validate::validate(default, &node, None, path, &mut default_errors);
    }
    if default_errors.is_empty() {
        lists::validate(default, &node, path, &mut default_errors);
    }
    if default_errors.is_empty()
        && let Some(rules) = Rules::compile(schema, &node, false)
    {
        check_rules(&rules, &node, default, path, &mut default_errors);
    }
    errors.append(default_errors);
}

/// Validates a default with the rules, both as an unchanged value and as a new value.
fn check_rules(rules: &Rules, node: &Node, default: &Value, path: &Path, errors: &mut FieldErrors) {
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
