//! Order in which kinds are uninstalled, as in Helm.

/// Kinds in the order of Helm's `UninstallOrder`.
const UNINSTALL_ORDER: &[&str] = &[
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBinding",
    "Role",
    "ClusterRoleBinding",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

/// Returns the sort key of a kind for uninstalling. Kinds that Helm does not list come last, sorted by
/// name.
pub(super) fn uninstall_key(kind: &str) -> (usize, String) {
    let position = UNINSTALL_ORDER.iter().position(|known| *known == kind);
    match position {
        Some(position) => (position, String::new()),
        None => (UNINSTALL_ORDER.len(), kind.to_owned()),
    }
}
