//! Validates kinds with few rules.

use serde_json::Value;

use super::meta::IMMUTABLE;
use crate::field::{FieldErrors, Path};
use crate::schema::quantity_millis;
use crate::tree;

/// Maximum priority of classes that users define. Higher priorities are reserved for the system.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;

/// Validates a `PriorityClass`.
pub(super) fn priority_class(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let (name, value) = (
        tree::text(new, &["metadata", "name"]),
        tree::int(new, &["value"]).unwrap_or(0),
    );
    let known = matches!(name, "system-cluster-critical" | "system-node-critical");
    if let Some(old) = old {
        if tree::int(old, &["value"]).unwrap_or(0) != value {
            errors.forbidden(&Path::new("value"), "may not be changed in an update.");
        }
        return;
    }
    if name.starts_with("system-") && !known {
        let detail = "priority class names with 'system-' prefix are reserved for system use only. error: ";
        let detail = format!("{detail}{name} is not a known system priority class");
        errors.forbidden(&Path::new("metadata").child("name"), detail);
    } else if value > MAX_USER_PRIORITY && !known {
        let detail = format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        errors.forbidden(&Path::new("value"), detail);
    }
}

/// Validates a `StorageClass`.
pub(super) fn storage_class(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let provisioner = tree::text(new, &["provisioner"]);
    if provisioner.is_empty() {
        errors.required(&Path::new("provisioner"), provisioner);
    }
    if old.is_some_and(|old| tree::text(old, &["provisioner"]) != provisioner) {
        errors.invalid(&Path::new("provisioner"), provisioner, IMMUTABLE);
    }
}

/// Validates a `CertificateSigningRequest`.
pub(super) fn certificate_request(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let conditions = tree::list(new, &["status", "conditions"]);
    let has = |kind: &str| conditions.iter().any(|one| tree::text(one, &["type"]) == kind);
    if has("Approved") && has("Denied") {
        let detail = "Approved and Denied conditions are mutually exclusive";
        let path = Path::new("status").child("conditions");
        errors.invalid(&path, "Denied", detail);
    }
}

/// Validates a `ResourceQuota`.
pub(super) fn quota(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    for (name, hard) in tree::map(new, &["spec", "hard"]).into_iter().flatten() {
        let hard = hard.as_str().unwrap_or("");
        if quantity_millis(hard).is_some_and(|millis| millis < 0) {
            let path = Path::new("spec").child("hard").key(name);
            errors.invalid(&path, hard, "must be greater than or equal to 0");
        }
    }
}

/// Validates an Ingress.
pub(super) fn ingress(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let has = |field| tree::get(new, &["spec", field]).is_some_and(|there| !there.is_null());
    if !has("defaultBackend") && tree::list(new, &["spec", "rules"]).is_empty() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(&Path::new("spec"), Value::Null, detail);
    }
}

/// Validates an Event.
pub(super) fn event(new: &Value, _old: Option<&Value>, errors: &mut FieldErrors) {
    let own = tree::text(new, &["metadata", "namespace"]);
    let about = tree::text(new, &["involvedObject", "namespace"]);
    let expected = if about.is_empty() { "default" } else { about };
    if own != expected {
        let path = Path::new("involvedObject").child("namespace");
        errors.invalid(&path, about, "does not match event.namespace");
    }
}
