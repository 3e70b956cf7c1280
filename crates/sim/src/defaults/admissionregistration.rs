//! Defaults of webhook configurations and admission policies.

use serde_json::{Value, json};

use crate::tree;

/// `ValidatingWebhookConfiguration`.
pub(super) fn validating(value: &mut Value) {
    for webhook in tree::list_mut(value, &["webhooks"]).into_iter().flatten() {
        common(webhook);
    }
}

/// `MutatingWebhookConfiguration`.
pub(super) fn mutating(value: &mut Value) {
    for webhook in tree::list_mut(value, &["webhooks"]).into_iter().flatten() {
        common(webhook);
        tree::set_default(webhook, &["reinvocationPolicy"], "Never");
    }
}

fn common(webhook: &mut Value) {
    tree::set_default(webhook, &["failurePolicy"], "Fail");
    matching(webhook);
    tree::set_default(webhook, &["timeoutSeconds"], 10);
    if tree::get(webhook, &["clientConfig", "service"]).is_some_and(Value::is_object) {
        tree::set_default(webhook, &["clientConfig", "service", "port"], 443);
    }
    scopes(webhook, &["rules"]);
}

fn matching(value: &mut Value) {
    tree::set_default(value, &["matchPolicy"], "Equivalent");
    tree::set_default(value, &["namespaceSelector"], json!({}));
    tree::set_default(value, &["objectSelector"], json!({}));
}

fn scopes(value: &mut Value, path: &[&str]) {
    for rule in tree::list_mut(value, path).into_iter().flatten() {
        tree::set_default(rule, &["scope"], "*");
    }
}

/// `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`.
pub(super) fn policy(value: &mut Value) {
    tree::set_default(value, &["spec", "failurePolicy"], "Fail");
    resources(value, &["spec", "matchConstraints"]);
}

/// `ValidatingAdmissionPolicyBinding`.
pub(super) fn binding(value: &mut Value) {
    resources(value, &["spec", "matchResources"]);
}

fn resources(value: &mut Value, path: &[&str]) {
    if let Some(constraints) = tree::get_mut(value, path).filter(|there| there.is_object()) {
        matching(constraints);
        scopes(constraints, &["resourceRules"]);
        scopes(constraints, &["excludeResourceRules"]);
    }
}
