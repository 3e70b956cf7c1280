//! Uninstall order of kinds: Helm's table.

const REMOVED_FIRST: &[&str] = &[
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

/// Uninstall position of a kind; kinds unknown to Helm go last, sorted by name.
pub(super) fn uninstall(kind: &str) -> (usize, String) {
    let place = REMOVED_FIRST.iter().position(|known| *known == kind);
    match place {
        Some(place) => (place, String::new()),
        None => (REMOVED_FIRST.len(), kind.to_owned()),
    }
}
