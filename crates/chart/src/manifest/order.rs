//! Install order of kinds.

use std::cmp::Ordering;

use crate::dialect::Dialect;

/// Kinds in install order. Other kinds follow, sorted by name.
const KINDS: &[&str] = &[
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

/// Kinds that Helm 4 installs last; see [`Dialect::installs_webhooks_last`].
const WEBHOOKS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Install order of one Helm version.
pub(super) struct InstallOrder {
    webhooks: &'static [&'static str],
}

impl InstallOrder {
    pub(super) fn new(dialect: Dialect) -> Self {
        let webhooks = if dialect.installs_webhooks_last() {
            WEBHOOKS
        } else {
            &[]
        };
        Self { webhooks }
    }

    /// Compares two kinds in install order.
    pub(super) fn compare(&self, a: &str, b: &str) -> Ordering {
        match (self.rank(a), self.rank(b)) {
            (None, None) => a.cmp(b),
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.cmp(&b),
        }
    }

    fn rank(&self, kind: &str) -> Option<usize> {
        KINDS.iter().chain(self.webhooks).position(|known| *known == kind)
    }
}
