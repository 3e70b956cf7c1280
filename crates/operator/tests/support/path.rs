//! API paths of objects, from a table of the kinds that scenarios use.

use std::fmt;

use serde_json::Value;

/// Path of an object, or of a collection if the name is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPath {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// Kind, API root, plural, and whether the kind is namespaced.
const KINDS: &[(&str, &str, &str, bool)] = &[
    ("Istio", "apis/sailoperator.io/v1", "istios", false),
    (
        "IstioRevision",
        "apis/sailoperator.io/v1",
        "istiorevisions",
        false,
    ),
    (
        "IstioRevisionTag",
        "apis/sailoperator.io/v1",
        "istiorevisiontags",
        false,
    ),
    ("IstioCNI", "apis/sailoperator.io/v1", "istiocnis", false),
    ("ZTunnel", "apis/sailoperator.io/v1", "ztunnels", false),
    ("Namespace", "api/v1", "namespaces", false),
    ("Pod", "api/v1", "pods", true),
    ("ConfigMap", "api/v1", "configmaps", true),
    ("Secret", "api/v1", "secrets", true),
    ("Service", "api/v1", "services", true),
    ("ServiceAccount", "api/v1", "serviceaccounts", true),
    ("ResourceQuota", "api/v1", "resourcequotas", true),
    ("Deployment", "apis/apps/v1", "deployments", true),
    ("ReplicaSet", "apis/apps/v1", "replicasets", true),
    ("StatefulSet", "apis/apps/v1", "statefulsets", true),
    ("DaemonSet", "apis/apps/v1", "daemonsets", true),
    (
        "HorizontalPodAutoscaler",
        "apis/autoscaling/v2",
        "horizontalpodautoscalers",
        true,
    ),
    (
        "PodDisruptionBudget",
        "apis/policy/v1",
        "poddisruptionbudgets",
        true,
    ),
    (
        "NetworkPolicy",
        "apis/networking.k8s.io/v1",
        "networkpolicies",
        true,
    ),
    (
        "EndpointSlice",
        "apis/discovery.k8s.io/v1",
        "endpointslices",
        true,
    ),
    ("Role", "apis/rbac.authorization.k8s.io/v1", "roles", true),
    (
        "RoleBinding",
        "apis/rbac.authorization.k8s.io/v1",
        "rolebindings",
        true,
    ),
    (
        "ClusterRole",
        "apis/rbac.authorization.k8s.io/v1",
        "clusterroles",
        false,
    ),
    (
        "ClusterRoleBinding",
        "apis/rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        false,
    ),
    (
        "MutatingWebhookConfiguration",
        "apis/admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "ValidatingWebhookConfiguration",
        "apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        false,
    ),
    (
        "ValidatingAdmissionPolicy",
        "apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        false,
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        "apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        false,
    ),
    (
        "CustomResourceDefinition",
        "apis/apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        false,
    ),
    ("Lease", "apis/coordination.k8s.io/v1", "leases", true),
    ("Event", "apis/events.k8s.io/v1", "events", true),
];

/// Our kinds in the order of deletion by a user, with referring objects first.
pub const MESH_KINDS: [&str; 5] = [
    "Istio",
    "IstioRevisionTag",
    "IstioRevision",
    "IstioCNI",
    "ZTunnel",
];

/// Kinds that charts of the mesh may contain.
pub const INSTALLED_KINDS: [&str; 16] = [
    "ConfigMap",
    "Service",
    "ServiceAccount",
    "ResourceQuota",
    "Deployment",
    "DaemonSet",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "EndpointSlice",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

fn kind_row(kind: &str) -> &'static (&'static str, &'static str, &'static str, bool) {
    KINDS
        .iter()
        .find(|row| row.0 == kind)
        .unwrap_or_else(|| panic!("no kind {kind}"))
}

impl ObjectPath {
    /// Returns the path of a cluster-scoped object.
    pub fn cluster_scoped(kind: &str, name: &str) -> Self {
        Self::namespaced(kind, "", name)
    }

    /// Returns the path of a namespaced object.
    pub fn namespaced(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the path of a JSON object.
    pub fn from_object(object: &Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        Self::namespaced(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }

    /// Returns the path of the collection, within the namespace if there is one.
    pub fn collection(&self) -> String {
        let (_, api, plural, namespaced) = kind_row(&self.kind);
        if *namespaced && !self.namespace.is_empty() {
            format!("/{api}/namespaces/{}/{plural}", self.namespace)
        } else {
            format!("/{api}/{plural}")
        }
    }

    /// Returns the path of the object.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

pub fn istio(name: &str) -> ObjectPath {
    ObjectPath::cluster_scoped("Istio", name)
}

pub fn revision(name: &str) -> ObjectPath {
    ObjectPath::cluster_scoped("IstioRevision", name)
}

pub fn tag(name: &str) -> ObjectPath {
    ObjectPath::cluster_scoped("IstioRevisionTag", name)
}

pub fn cni() -> ObjectPath {
    ObjectPath::cluster_scoped("IstioCNI", "default")
}

pub fn ztunnel() -> ObjectPath {
    ObjectPath::cluster_scoped("ZTunnel", "default")
}

pub fn injector(name: &str) -> ObjectPath {
    ObjectPath::cluster_scoped("MutatingWebhookConfiguration", name)
}

pub fn validator(name: &str) -> ObjectPath {
    ObjectPath::cluster_scoped("ValidatingWebhookConfiguration", name)
}
