//! Validates objects and updates. The submodules contain one function per kind, which the table in this
//! module assigns to the kinds.

use serde_json::Value;

use crate::context::Context;
use crate::field::FieldErrors;
use crate::resource::{Resource, Shape};

mod apps;
mod core;
mod cron;
pub mod meta;
pub mod names;
mod other;
mod pod;
mod small;

use names::NameRule;

/// Function that validates an object, against its old version if there is one, and adds its errors.
type Validator = fn(&Value, Option<&Value>, &mut FieldErrors);

/// Validators by group and plural.
const TABLE: &[(&str, &str, Validator)] = &[
    ("", "configmaps", core::config_map),
    ("", "events", small::event),
    ("", "pods", pod::pod),
    ("", "resourcequotas", small::quota),
    ("", "secrets", core::secret),
    ("", "services", core::service),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        other::webhooks,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        other::webhooks,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        crate::admission::policy::check_policy,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        crate::admission::policy::check_binding,
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        crate::crd::validate_definition,
    ),
    ("apps", "daemonsets", apps::daemon_set),
    ("apps", "deployments", apps::deployment),
    ("apps", "replicasets", apps::replica_set),
    ("apps", "statefulsets", apps::stateful_set),
    ("batch", "cronjobs", cron::cron_job),
    ("batch", "jobs", apps::job),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        small::certificate_request,
    ),
    ("coordination.k8s.io", "leases", other::lease),
    ("discovery.k8s.io", "endpointslices", other::endpoint_slice),
    ("networking.k8s.io", "ingresses", small::ingress),
    ("policy", "poddisruptionbudgets", other::disruption_budget),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        other::cluster_role_binding,
    ),
    ("rbac.authorization.k8s.io", "rolebindings", other::role_binding),
    ("scheduling.k8s.io", "priorityclasses", small::priority_class),
    ("storage.k8s.io", "storageclasses", small::storage_class),
];

/// Validates a new object.
#[must_use]
pub fn create(resource: &Resource, value: &Value, context: &mut Context) -> FieldErrors {
    let mut errors = meta::object_meta(value, resource.namespaced, name_rule(resource));
    match &resource.shape {
        Shape::Custom(custom) => errors.append(crate::crd::validate(custom, value, None, context)),
        Shape::Builtin(_) => {
            meta::standard_finalizers(value, &mut errors);
            validate_kind(resource, value, None, &mut errors);
        }
    }
    errors
}

/// Validates a changed object.
#[must_use]
pub fn update(resource: &Resource, new: &Value, old: &Value, context: &mut Context) -> FieldErrors {
    // The API server validates metadata several times during an update, so its errors contain the same cause
    // several times.
    let mut errors = meta::object_meta(new, resource.namespaced, names::path_segment);
    errors.append(meta::object_meta_update(new, old));
    match &resource.shape {
        Shape::Custom(custom) => {
            errors.append(meta::object_meta_update(new, old));
            errors.append(crate::crd::validate(custom, new, Some(old), context));
        }
        Shape::Builtin(_) => {
            errors.append(meta::object_meta_update(new, old));
            if checks_whole_object(resource) {
                errors.append(meta::object_meta(new, resource.namespaced, name_rule(resource)));
            }
            let is_pod_subresource = matches!(context.subresource.as_str(), "ephemeralcontainers" | "resize");
            if is_pod_subresource && resource.is("", "pods") {
                pod::validate_subresource(new, old, &mut errors);
            } else if context.subresource != "status" {
                validate_kind(resource, new, Some(old), &mut errors);
            } else if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
                crate::crd::definition::validate_status(new, &mut errors);
            }
        }
    }
    errors
}

/// Returns whether an update of this kind is also validated like a create.
fn checks_whole_object(resource: &Resource) -> bool {
    matches!(
        &*resource.plural,
        "configmaps" | "secrets" | "roles" | "clusterroles" | "rolebindings" | "clusterrolebindings"
    )
}

fn validate_kind(resource: &Resource, new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    if let Some((_, _, validate)) = TABLE.iter().find(|(group, plural, _)| resource.is(group, plural)) {
        validate(new, old, errors);
    }
}

/// Returns the name validation of a kind.
#[must_use]
pub fn name_rule(resource: &Resource) -> NameRule {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces" | "services") => names::label,
        ("apps", "statefulsets") => names::stateful_set,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::subdomain,
    }
}
