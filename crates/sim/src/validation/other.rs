//! Validates kinds of smaller groups.

use std::collections::BTreeSet;

use serde_json::Value;

use super::apps::{at_most_100_percent, int_or_percent, label_selector};
use super::names;
use crate::field::{FieldErrors, Path};
use crate::tree;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Validates a Lease.
pub(super) fn lease(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    if let Some(seconds) = tree::int(new, &["spec", "leaseDurationSeconds"]).filter(|seconds| *seconds <= 0) {
        errors.invalid(
            &spec.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    if let Some(count) = tree::int(new, &["spec", "leaseTransitions"]).filter(|count| *count < 0) {
        errors.invalid(
            &spec.child("leaseTransitions"),
            count,
            "must be greater than or equal to 0",
        );
    }
}

/// Validates a `PodDisruptionBudget`.
pub(super) fn disruption_budget(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let (min, max) = (
        tree::get(new, &["spec", "minAvailable"]),
        tree::get(new, &["spec", "maxUnavailable"]),
    );
    if min.is_some() && max.is_some() {
        let part = |field| tree::get(new, &["spec", field]).cloned().unwrap_or_default();
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            part("minAvailable"),
            part("selector"),
            part("maxUnavailable"),
            part("unhealthyPodEvictionPolicy")
        );
        errors.invalid_shown(&spec, shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for (value, field) in [(min, "minAvailable"), (max, "maxUnavailable")] {
        int_or_percent(value, &spec.child(field), errors);
        at_most_100_percent(value, &spec.child(field), errors);
    }
    if let Some(selector) = tree::get(new, &["spec", "selector"]) {
        label_selector(selector, &spec.child("selector"), errors);
    }
    let policy = tree::text(new, &["spec", "unhealthyPodEvictionPolicy"]);
    if !matches!(policy, "" | "AlwaysAllow" | "IfHealthyBudget") {
        let known = ["AlwaysAllow", "IfHealthyBudget"];
        errors.not_supported(&spec.child("unhealthyPodEvictionPolicy"), policy, &known);
    }
}

/// Validates a `RoleBinding`.
pub(super) fn role_binding(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    validate_binding(new, old, &["Role", "ClusterRole"], true, errors);
}

/// Validates a `ClusterRoleBinding`.
pub(super) fn cluster_role_binding(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    validate_binding(new, old, &["ClusterRole"], false, errors);
}

fn validate_binding(
    new: &Value,
    old: Option<&Value>,
    kinds: &[&str],
    namespaced: bool,
    errors: &mut FieldErrors,
) {
    let path = Path::new("roleRef");
    let text = |field| tree::text(new, &["roleRef", field]);
    if text("apiGroup") != RBAC {
        errors.not_supported(&path.child("apiGroup"), text("apiGroup"), &[RBAC]);
    }
    if !kinds.contains(&text("kind")) {
        errors.not_supported(&path.child("kind"), text("kind"), kinds);
    }
    if text("name").is_empty() {
        errors.required(&path.child("name"), "");
    }
    for (at, one) in tree::list(new, &["subjects"]).iter().enumerate() {
        validate_subject(one, namespaced, &Path::new("subjects").index(at), errors);
    }
    if old.is_some_and(|old| old.get("roleRef") != new.get("roleRef")) {
        let part = |field| Value::from(tree::text(new, &["roleRef", field]));
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            part("apiGroup"),
            part("kind"),
            part("name")
        );
        errors.invalid_shown(&path, shown, "cannot change roleRef");
    }
}

fn validate_subject(one: &Value, namespaced: bool, path: &Path, errors: &mut FieldErrors) {
    let text = |field| tree::text(one, &[field]);
    if text("name").is_empty() {
        errors.required(&path.child("name"), "");
    }
    match text("kind") {
        "ServiceAccount" => {
            if !text("name").is_empty() {
                for wrong in names::subdomain(text("name"), false) {
                    errors.invalid(&path.child("name"), text("name"), wrong);
                }
            }
            if !text("apiGroup").is_empty() {
                errors.not_supported(&path.child("apiGroup"), text("apiGroup"), &[""]);
            }
            if !namespaced && text("namespace").is_empty() {
                errors.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => {
            if text("apiGroup") != RBAC {
                errors.not_supported(&path.child("apiGroup"), text("apiGroup"), &[RBAC]);
            }
        }
        other => errors.not_supported(&path.child("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

/// Validates an `EndpointSlice`.
pub(super) fn endpoint_slice(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let (kind, path) = (tree::text(new, &["addressType"]), Path::new("addressType"));
    if kind.is_empty() {
        errors.required(&path, "");
    } else if !matches!(kind, "FQDN" | "IPv4" | "IPv6") {
        errors.not_supported(&path, kind, &["FQDN", "IPv4", "IPv6"]);
    }
    if old.is_some_and(|old| tree::text(old, &["addressType"]) != kind) {
        errors.invalid(&path, kind, super::meta::IMMUTABLE);
    }
}

/// Validates a `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
pub(super) fn webhooks(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (at, webhook) in tree::list(new, &["webhooks"]).iter().enumerate() {
        let path = Path::new("webhooks").index(at);
        let name = tree::text(webhook, &["name"]);
        validate_webhook_name(name, &path.child("name"), errors);
        if !seen.insert(name.to_owned()) {
            errors.duplicate(&path.child("name"), name);
        }
        validate_operations(webhook, &path.child("rules"), errors);
        let policy = tree::text(webhook, &["failurePolicy"]);
        if !matches!(policy, "Fail" | "Ignore") {
            errors.not_supported(&path.child("failurePolicy"), policy, &["Fail", "Ignore"]);
        }
        let effects = tree::text(webhook, &["sideEffects"]);
        if effects.is_empty() {
            errors.required(
                &path.child("sideEffects"),
                "must specify one of None, NoneOnDryRun",
            );
        } else if !matches!(effects, "None" | "NoneOnDryRun") {
            errors.not_supported(&path.child("sideEffects"), effects, &["None", "NoneOnDryRun"]);
        }
        if let Some(seconds) =
            tree::int(webhook, &["timeoutSeconds"]).filter(|seconds| !(1..=30).contains(seconds))
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.invalid(&path.child("timeoutSeconds"), seconds, detail);
        }
        validate_client_config(webhook, &path.child("clientConfig"), errors);
        validate_match_conditions(webhook, &path.child("matchConditions"), errors);
        let versions = tree::list(webhook, &["admissionReviewVersions"]);
        if versions.is_empty() {
            let detail = "must specify one of v1, v1beta1";
            errors.required(&path.child("admissionReviewVersions"), detail);
        } else if !versions
            .iter()
            .any(|version| *version == "v1" || *version == "v1beta1")
        {
            let detail = "must include at least one of v1, v1beta1";
            errors.invalid(&path.child("admissionReviewVersions"), versions.to_vec(), detail);
        }
    }
}

/// Validates match conditions, which must have unique names and valid expressions.
fn validate_match_conditions(webhook: &Value, path: &Path, errors: &mut FieldErrors) {
    let all = tree::list(webhook, &["matchConditions"]);
    if all.len() > MAX_MATCH_CONDITIONS {
        errors.too_many(path, all.len(), MAX_MATCH_CONDITIONS);
    }
    let mut seen = BTreeSet::new();
    for (at, condition) in all.iter().enumerate() {
        let path = path.index(at);
        let (name, expression) = (
            tree::text(condition, &["name"]),
            tree::text(condition, &["expression"]),
        );
        if expression.trim().is_empty() {
            errors.required(&path.child("expression"), "");
        } else if let Some(error) = crate::admission::condition_compile_error(expression) {
            errors.invalid(&path.child("expression"), expression, error);
        }
        if name.is_empty() {
            errors.required(&path.child("name"), "");
            continue;
        }
        for wrong in names::qualified(name) {
            errors.invalid(&path.child("name"), name, wrong);
        }
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

/// Maximum number of match conditions per webhook.
const MAX_MATCH_CONDITIONS: usize = 64;

fn validate_operations(webhook: &Value, path: &Path, errors: &mut FieldErrors) {
    for (at, rule) in tree::list(webhook, &["rules"]).iter().enumerate() {
        let all = tree::list(rule, &["operations"]);
        if all.len() > 1 && all.iter().any(|one| one == "*") {
            let detail = "if '*' is present, must not specify other operations";
            errors.invalid(&path.index(at).child("operations"), all.to_vec(), detail);
        }
    }
}

/// Validates the name of a webhook: a domain with at least three segments.
fn validate_webhook_name(name: &str, path: &Path, errors: &mut FieldErrors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let wrong = names::subdomain(name, false);
    if !wrong.is_empty() {
        errors.invalid(path, name, wrong.join(","));
        return;
    }
    if name.split('.').count() < 3 {
        errors.invalid(
            path,
            name,
            "should be a domain with at least three segments separated by dots",
        );
    }
}

fn validate_client_config(webhook: &Value, path: &Path, errors: &mut FieldErrors) {
    let url = tree::get(webhook, &["clientConfig", "url"]);
    let service = tree::get(webhook, &["clientConfig", "service"]);
    if url.is_some() == service.is_some() {
        errors.required(path, "exactly one of url or service is required");
    }
    let scheme = url.and_then(Value::as_str).and_then(|url| url.split_once("://"));
    if let Some((scheme, _)) = scheme.filter(|(scheme, _)| *scheme != "https") {
        let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        errors.invalid(&path.child("url"), scheme, detail);
    }
    let location = tree::text(webhook, &["clientConfig", "service", "path"]);
    if !location.is_empty() && !location.starts_with('/') {
        errors.invalid(
            &path.child("service").child("path"),
            location,
            "must start with a '/'",
        );
    }
    for field in ["name", "namespace"].iter().filter(|_| service.is_some()) {
        if tree::text(webhook, &["clientConfig", "service", field]).is_empty() {
            errors.required(
                &path.child("service").child(field),
                &format!("service {field} is required")[..],
            );
        }
    }
}
