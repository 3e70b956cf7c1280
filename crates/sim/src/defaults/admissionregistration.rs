//! Defaults of webhook configurations and admission policies.

use serde_json::{Value, json};

use crate::tree;

/// Applies the defaults of a `ValidatingWebhookConfiguration`.
pub(super) fn validating(value: &mut Value) {
    for webhook in tree::list_mut(value, &["webhooks"]).into_iter().flatten() {
        default_webhook(webhook);
    }
}

/// Applies the defaults of a `MutatingWebhookConfiguration`.
pub(super) fn mutating(value: &mut Value) {
    for webhook in tree::list_mut(value, &["webhooks"]).into_iter().flatten() {
        default_webhook(webhook);
        tree::set_default(webhook, &["reinvocationPolicy"], "Never");
    }
}

fn default_webhook(webhook: &mut Value) {
    tree::set_default(webhook, &["failurePolicy"], "Fail");
    default_matching(webhook);
    tree::set_default(webhook, &["timeoutSeconds"], 10);
    if tree::get(webhook, &["clientConfig", "service"]).is_some_and(Value::is_object) {
        tree::set_default(webhook, &["clientConfig", "service", "port"], 443);
    }
    default_scopes(webhook, &["rules"]);
}

fn default_matching(value: &mut Value) {
    tree::set_default(value, &["matchPolicy"], "Equivalent");
    tree::set_default(value, &["namespaceSelector"], json!({}));
    tree::set_default(value, &["objectSelector"], json!({}));
}

fn default_scopes(value: &mut Value, path: &[&str]) {
    for rule in tree::list_mut(value, path).into_iter().flatten() {
        tree::set_default(rule, &["scope"], "*");
    }
}

/// Applies the defaults of a `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy`.
pub(super) fn policy(value: &mut Value) {
    tree::set_default(value, &["spec", "failurePolicy"], "Fail");
    default_match_resources(value, &["spec", "matchConstraints"]);
}

/// Applies the defaults of a `ValidatingAdmissionPolicyBinding`.
pub(super) fn binding(value: &mut Value) {
    default_match_resources(value, &["spec", "matchResources"]);
}

fn default_match_resources(value: &mut Value, path: &[&str]) {
    if let Some(constraints) = tree::get_mut(value, path).filter(|constraints| constraints.is_object()) {
        default_matching(constraints);
        default_scopes(constraints, &["resourceRules"]);
        default_scopes(constraints, &["excludeResourceRules"]);
    }
}
