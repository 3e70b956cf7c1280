//! The order of installation: takes two kinds, says which goes first.

use std::cmp::Ordering;

use crate::dialect::Dialect;

/// What is installed before what; kinds that are not here come after all of these, by name.
const INSTALL: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// What Helm 4 adds at the end: admission must not stand in the way of what it guards.
const WEBHOOKS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Which of two kinds is installed first; equal kinds keep their order.
pub(super) fn by_kind(a: &str, b: &str, dialect: Dialect) -> Ordering {
    match (rank(a, dialect), rank(b, dialect)) {
        (None, None) => a.cmp(b),
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}

fn rank(kind: &str, dialect: Dialect) -> Option<usize> {
    let webhooks = if dialect == Dialect::Helm4 { WEBHOOKS } else { &[] };
    INSTALL.iter().chain(webhooks).position(|known| *known == kind)
}
