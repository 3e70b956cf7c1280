//! Validation of policies and bindings, including the compilation of their expressions.

use serde_json::Value;

use super::compiled::Expression;
use crate::field::{FieldErrors, Path};
use crate::tree;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Validates a `ValidatingAdmissionPolicy`.
pub fn check_policy(value: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let path = Path::new("spec");
    match tree::text(value, &["spec", "failurePolicy"]) {
        "Fail" | "Ignore" => {}
        other => errors.not_supported(&path.child("failurePolicy"), other, &["Fail", "Ignore"]),
    }
    let constraints =
        tree::get(value, &["spec", "matchConstraints"]).filter(|constraints| constraints.is_object());
    match constraints {
        None => errors.required(&path.child("matchConstraints"), ""),
        Some(constraints) if tree::list(constraints, &["resourceRules"]).is_empty() => {
            errors.required(&path.child("matchConstraints").child("resourceRules"), "");
        }
        Some(_) => {}
    }
    for (list, key) in [("matchConditions", "expression"), ("variables", "expression")] {
        for (at, one) in tree::list(value, &["spec", list]).iter().enumerate() {
            let source = tree::text(one, &[key]);
            check_expression(source, &path.child(list).index(at).child(key), errors);
        }
    }
    let validations = tree::list(value, &["spec", "validations"]);
    if validations.is_empty() && tree::list(value, &["spec", "auditAnnotations"]).is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.required(&path.child("validations"), detail);
        errors.required(&path.child("auditAnnotations"), detail);
    }
    for (at, one) in validations.iter().enumerate() {
        check_validation(one, &path.child("validations").index(at), errors);
    }
}

fn check_validation(value: &Value, path: &Path, errors: &mut FieldErrors) {
    let source = tree::text(value, &["expression"]);
    if source.trim().is_empty() {
        errors.required(&path.child("expression"), "expression is not specified");
    } else {
        check_expression(source, &path.child("expression"), errors);
    }
    let (message, computed) = (
        tree::text(value, &["message"]),
        tree::text(value, &["messageExpression"]),
    );
    if !computed.trim().is_empty() {
        check_expression(computed, &path.child("messageExpression"), errors);
    }
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&path.child("message"), message, "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(&path.child("message"), message, "must not contain line breaks");
    }
    if let Some(reason) = value.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        errors.not_supported(&path.child("reason"), reason, &REASONS);
    }
}

/// Reports an expression that does not compile.
fn check_expression(source: &str, path: &Path, errors: &mut FieldErrors) {
    if let Err(error) = Expression::new(source).program {
        errors.invalid(path, source, format!("compilation failed: {error}"));
    }
}

/// Validates a `ValidatingAdmissionPolicyBinding`.
pub fn check_binding(value: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let path = Path::new("spec");
    if tree::text(value, &["spec", "policyName"]).is_empty() {
        errors.required(&path.child("policyName"), "");
    }
    let actions = tree::list(value, &["spec", "validationActions"]);
    let actions_path = path.child("validationActions");
    if actions.is_empty() {
        errors.required(&actions_path, "at least one validation action is required");
    }
    let has = |name: &str| actions.iter().any(|action| action == name);
    for (at, action) in actions.iter().enumerate() {
        let text = action.as_str().unwrap_or("");
        if !matches!(text, "Deny" | "Warn" | "Audit") {
            errors.not_supported(&actions_path.index(at), text, &["Audit", "Deny", "Warn"]);
        }
        if actions.iter().take(at).any(|earlier| earlier == action) {
            errors.duplicate(&actions_path.index(at), text);
        }
    }
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid(&actions_path, actions.to_vec(), detail);
    }
}
