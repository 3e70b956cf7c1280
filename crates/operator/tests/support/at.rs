//! Where an object is served: takes kind, namespace and name, gives the path. A table of the kinds scenarios speak of.

use std::fmt;

use serde_json::Value;

/// One object, or all of a kind where the name is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// Kind, group and version, plural, whether it lives in a namespace.
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
        "CustomResourceDefinition",
        "apis/apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        false,
    ),
    ("Lease", "apis/coordination.k8s.io/v1", "leases", true),
    ("Event", "apis/events.k8s.io/v1", "events", true),
];

/// The kinds of the mesh, in the order in which a user takes them away: what points to others first.
pub const MESH_KINDS: [&str; 5] = [
    "Istio",
    "IstioRevisionTag",
    "IstioRevision",
    "IstioCNI",
    "ZTunnel",
];

/// Every kind that a chart of the mesh may bring.
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

fn row(kind: &str) -> &'static (&'static str, &'static str, &'static str, bool) {
    KINDS
        .iter()
        .find(|row| row.0 == kind)
        .unwrap_or_else(|| panic!("no kind {kind}"))
}

impl At {
    /// An object of the cluster.
    pub fn cluster(kind: &str, name: &str) -> Self {
        Self::inside(kind, "", name)
    }

    /// An object of a namespace.
    pub fn inside(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Where this object is.
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        Self::inside(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }

    /// All of its kind, in its namespace if it has one.
    pub fn collection(&self) -> String {
        let (_, api, plural, namespaced) = row(&self.kind);
        if *namespaced && !self.namespace.is_empty() {
            format!("/{api}/namespaces/{}/{plural}", self.namespace)
        } else {
            format!("/{api}/{plural}")
        }
    }

    /// The object itself.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

pub fn istio(name: &str) -> At {
    At::cluster("Istio", name)
}

pub fn revision(name: &str) -> At {
    At::cluster("IstioRevision", name)
}

pub fn tag(name: &str) -> At {
    At::cluster("IstioRevisionTag", name)
}

pub fn cni() -> At {
    At::cluster("IstioCNI", "default")
}

pub fn ztunnel() -> At {
    At::cluster("ZTunnel", "default")
}

pub fn injector(name: &str) -> At {
    At::cluster("MutatingWebhookConfiguration", name)
}

pub fn validator(name: &str) -> At {
    At::cluster("ValidatingWebhookConfiguration", name)
}
