//! Applies defaults to decoded objects. The submodules contain one function per kind.

use serde_json::Value;

use crate::resource::{Resource, Shape};
use crate::state::State;
use crate::status::Result;

mod admissionregistration;
mod apps;
mod core;
mod other;
mod pod;

pub use pod::{pod, pod_spec};

type Defaulter = fn(&mut Value);

/// Group, resource and defaulting function of each kind.
const TABLE: &[(&str, &str, Defaulter)] = &[
    ("", "configmaps", core::no_defaults),
    ("", "endpoints", core::endpoints),
    ("", "limitranges", core::limit_range),
    ("", "namespaces", core::namespace),
    ("", "nodes", core::node),
    ("", "persistentvolumeclaims", core::persistent_volume_claim),
    ("", "persistentvolumes", core::persistent_volume),
    ("", "pods", pod::pod),
    ("", "podtemplates", core::pod_template),
    ("", "replicationcontrollers", core::replication_controller),
    ("", "secrets", core::secret),
    ("", "services", core::service),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        admissionregistration::mutating,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        admissionregistration::validating,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        admissionregistration::policy,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        admissionregistration::binding,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        admissionregistration::policy,
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        crate::crd::defaults,
    ),
    ("apps", "daemonsets", apps::daemon_set),
    ("apps", "deployments", apps::deployment),
    ("apps", "replicasets", apps::replica_set),
    ("apps", "statefulsets", apps::stateful_set),
    ("autoscaling", "horizontalpodautoscalers", other::autoscaler),
    ("batch", "cronjobs", apps::cron_job),
    ("batch", "jobs", apps::job),
    ("discovery.k8s.io", "endpointslices", other::endpoint_slice),
    ("networking.k8s.io", "ingressclasses", other::ingress_class),
    ("networking.k8s.io", "networkpolicies", other::network_policy),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        other::role_binding,
    ),
    ("rbac.authorization.k8s.io", "rolebindings", other::role_binding),
    ("scheduling.k8s.io", "priorityclasses", other::priority_class),
    ("storage.k8s.io", "csidrivers", other::csi_driver),
    ("storage.k8s.io", "storageclasses", other::storage_class),
];

/// Applies the defaults to a new object. Fails if a custom object becomes too large to be stored.
pub fn apply(_state: &State, resource: &Resource, value: &mut Value) -> Result<()> {
    if let Shape::Custom(custom) = &resource.shape {
        return crate::crd::apply_defaults(custom, value);
    }
    let entry = TABLE.iter().find(|(group, plural, _)| resource.is(group, plural));
    if let Some((_, _, apply_defaults)) = entry {
        apply_defaults(value);
    }
    Ok(())
}

/// Applies the defaults to a changed object.
pub fn apply_update(state: &State, resource: &Resource, new: &mut Value, _old: &Value) -> Result<()> {
    apply(state, resource, new)
}
