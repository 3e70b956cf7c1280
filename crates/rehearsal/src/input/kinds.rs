//! Table of the kinds that a rehearsal reads.

use mainstay_harness::injector_revision;
use mainstay_sim::context::Destination;
use serde_json::Value;

use super::{at, text};

/// A kind that a rehearsal reads.
#[derive(Clone, Copy, Debug)]
pub struct InputKind {
    /// `apiVersion` of its objects.
    pub api_version: &'static str,
    /// `kind` of its objects.
    pub kind: &'static str,
    /// Plural in paths.
    pub plural: &'static str,
    /// Whether every cluster with a mesh has objects of this kind.
    pub expected: bool,
}

const fn kind(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    expected: bool,
) -> InputKind {
    InputKind {
        api_version,
        kind,
        plural,
        expected,
    }
}

pub(super) const WEBHOOKS: &str = "MutatingWebhookConfiguration";

/// Kinds, in the order in which they are loaded into the embedded cluster.
pub const KINDS: [InputKind; 15] = [
    kind("v1", "Namespace", "namespaces", true),
    kind("sailoperator.io/v1", "Istio", "istios", true),
    kind("sailoperator.io/v1", "IstioRevision", "istiorevisions", true),
    kind(
        "sailoperator.io/v1",
        "IstioRevisionTag",
        "istiorevisiontags",
        false,
    ),
    kind("sailoperator.io/v1", "IstioCNI", "istiocnis", false),
    kind("sailoperator.io/v1", "ZTunnel", "ztunnels", false),
    kind("v1", "ConfigMap", "configmaps", false),
    kind("v1", "Service", "services", true),
    kind("apps/v1", "Deployment", "deployments", true),
    kind("apps/v1", "ReplicaSet", "replicasets", true),
    kind("apps/v1", "StatefulSet", "statefulsets", false),
    kind("apps/v1", "DaemonSet", "daemonsets", false),
    kind("v1", "Pod", "pods", true),
    kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    kind(
        "admissionregistration.k8s.io/v1",
        WEBHOOKS,
        "mutatingwebhookconfigurations",
        true,
    ),
];

/// Returns the index of an object's kind in [`KINDS`], or `None` for other kinds.
pub(super) fn rank(object: &Value) -> Option<usize> {
    let (version, name) = (text(object, "/apiVersion"), text(object, "/kind"));
    KINDS
        .iter()
        .position(|kind| kind.kind == name && kind.api_version == version)
}

/// Whether an object affects the rehearsal. Of webhook configurations only injectors are relevant, of
/// `ConfigMaps` only those of Istio.
pub(super) fn is_relevant(object: &Value) -> bool {
    match text(object, "/kind") {
        WEBHOOKS => is_injector(object),
        "ConfigMap" => {
            let name = text(object, "/metadata/name");
            let marked = at(object, "/metadata/labels/managed-by").is_some();
            let is_values = name == "values" || name.starts_with("values-");
            marked || is_values || name == "istio" || name.starts_with("istio-")
        }
        _ => true,
    }
}

/// Whether any webhook of a configuration injects sidecars. This is determined by the webhook's Service, or
/// by the configuration's labels and owner if the webhook has a URL.
fn is_injector(object: &Value) -> bool {
    let hooks = object.get("webhooks").and_then(Value::as_array);
    let mut hooks = hooks.into_iter().flatten();
    hooks.any(|hook| {
        let destination = Destination::parse(hook.get("clientConfig").unwrap_or(&Value::Null));
        injector_revision(object, &destination).is_some()
    })
}
