//! Kubernetes objects and their order of installation.

use std::cmp::Ordering;

use mainstay_chart::ObjectIdentity;
use mainstay_yaml::{Map, Value};

use crate::merge::text_at;

/// A Kubernetes object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(pub Value);

impl Object {
    fn map(&self) -> Option<&Map> {
        self.0.as_map()
    }

    fn text(&self, keys: &[&str]) -> String {
        self.map().map(|map| text_at(map, keys)).unwrap_or_default()
    }

    /// Returns `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.text(&["apiVersion"])
    }

    /// Returns the API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> String {
        let version = self.api_version();
        version
            .split_once('/')
            .map_or_else(String::new, |(group, _)| group.to_owned())
    }

    /// Returns `kind`.
    #[must_use]
    pub fn kind(&self) -> String {
        self.text(&["kind"])
    }

    /// Returns `metadata.name`.
    #[must_use]
    pub fn name(&self) -> String {
        self.text(&["metadata", "name"])
    }

    /// Returns `metadata.namespace`; empty if there is none.
    #[must_use]
    pub fn namespace(&self) -> String {
        self.text(&["metadata", "namespace"])
    }

    /// Returns API version, kind, namespace and name.
    #[must_use]
    pub fn identity(&self) -> ObjectIdentity {
        ObjectIdentity {
            api_version: self.api_version(),
            kind: self.kind(),
            namespace: self.namespace(),
            name: self.name(),
        }
    }

    fn rank(&self) -> i32 {
        let (group, kind) = (self.group(), self.kind());
        let row = RANKS.iter().find(|row| row.0 == group && row.1 == kind);
        row.map_or(DEFAULT_RANK, |row| row.2)
    }
}

const DEFAULT_RANK: i32 = 1000;

/// Group, kind and rank. Objects with lower ranks are installed first.
const RANKS: &[(&str, &str, i32)] = &[
    ("apiextensions.k8s.io", "CustomResourceDefinition", -1000),
    ("", "ServiceAccount", 1),
    ("rbac.authorization.k8s.io", "ClusterRole", 1),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", 2),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        3,
    ),
    ("", "ConfigMap", 100),
    ("", "Secret", 100),
    ("apps", "Deployment", DEFAULT_RANK),
    ("autoscaling", "HorizontalPodAutoscaler", 1001),
    ("", "Service", 10000),
];

/// Compares two objects in order of installation: rank, group, kind, name, namespace.
#[must_use]
pub fn compare_objects(a: &Object, b: &Object) -> Ordering {
    a.rank()
        .cmp(&b.rank())
        .then_with(|| a.group().cmp(&b.group()))
        .then_with(|| a.kind().cmp(&b.kind()))
        .then_with(|| a.name().cmp(&b.name()))
        .then_with(|| a.namespace().cmp(&b.namespace()))
}
