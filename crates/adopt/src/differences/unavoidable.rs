//! Table of the differences that no value avoids, with the reasons.

use ComponentKind::{Gateway, Istiod};

use crate::found::ComponentKind;

/// A difference that no value avoids.
struct Unavoidable {
    component: ComponentKind,
    /// Kind of the object; empty for all kinds.
    kind: &'static str,
    /// Prefix of the object's name.
    name: &'static str,
    /// Prefix of the field; empty for the whole object.
    field: &'static str,
    reason: &'static str,
}

const OWN_LABELS: &str = "every chart has its own labels";
const OWN_SELECTOR: &str = "the chart gateway selects pods by the labels app and istio";
const OWN_ACCOUNT: &str = "the account and role of the chart gateway have the name of the release";
const DEFAULT_ONLY: &str = "the operator installs it exactly for the revision or tag default";

const fn of_gateway(kind: &'static str, field: &'static str, reason: &'static str) -> Unavoidable {
    Unavoidable {
        component: Gateway,
        kind,
        name: "",
        field,
        reason,
    }
}

const fn of_base(kind: &'static str, name: &'static str) -> Unavoidable {
    Unavoidable {
        component: Istiod,
        kind,
        name,
        field: "",
        reason: DEFAULT_ONLY,
    }
}

/// Differences that no value avoids.
const UNAVOIDABLE: &[Unavoidable] = &[
    of_gateway("", ".metadata.labels", OWN_LABELS),
    of_gateway("Deployment", ".spec.template.metadata.labels", OWN_LABELS),
    of_gateway("Deployment", ".spec.selector", OWN_SELECTOR),
    of_gateway("Service", ".spec.selector", OWN_SELECTOR),
    of_gateway("PodDisruptionBudget", ".spec.selector", OWN_SELECTOR),
    of_gateway(
        "Deployment",
        ".spec.template.metadata.annotations",
        "annotations of the chart gateway request the injection of the proxy",
    ),
    of_gateway(
        "Deployment",
        ".spec.template.spec",
        "the chart gateway leaves the proxy to injection",
    ),
    of_gateway("ServiceAccount", "", OWN_ACCOUNT),
    of_gateway("Role", "", OWN_ACCOUNT),
    of_gateway("RoleBinding", "", OWN_ACCOUNT),
    of_base("ServiceAccount", "istio-reader-service-account"),
    of_base("ValidatingWebhookConfiguration", "istiod-default-validator"),
    of_base("ValidatingAdmissionPolicy", "stable-channel-default-policy"),
    of_base(
        "ValidatingAdmissionPolicyBinding",
        "stable-channel-default-policy",
    ),
];

/// Returns the reason why no value makes a field equal.
pub(super) fn unavoidable_reason(
    component: ComponentKind,
    kind: &str,
    name: &str,
    field: &str,
) -> Option<&'static str> {
    let row = UNAVOIDABLE.iter().find(|row| {
        row.component == component
            && (row.kind.is_empty() || row.kind == kind)
            && name.starts_with(row.name)
            && field.starts_with(row.field)
            && (field.is_empty() || !row.field.is_empty())
    });
    row.map(|row| row.reason)
}
