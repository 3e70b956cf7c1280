//! In which order kinds are removed: Helm's table. Takes a kind, gives its place.

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

/// The place of a kind when things are removed; kinds that Helm does not know go last, by name.
pub(super) fn uninstall(kind: &str) -> (usize, String) {
    let place = REMOVED_FIRST.iter().position(|known| *known == kind);
    match place {
        Some(place) => (place, String::new()),
        None => (REMOVED_FIRST.len(), kind.to_owned()),
    }
}
