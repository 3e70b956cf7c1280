//! Defaults of the smaller groups.

use serde_json::{Value, json};

use crate::tree;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Applies the defaults of a `RoleBinding` or `ClusterRoleBinding`.
pub(super) fn role_binding(value: &mut Value) {
    tree::set_default_text(value, &["roleRef", "apiGroup"], RBAC);
    for subject in tree::list_mut(value, &["subjects"]).into_iter().flatten() {
        if matches!(tree::text(subject, &["kind"]), "User" | "Group") {
            tree::set_default_text(subject, &["apiGroup"], RBAC);
        }
    }
}

/// Applies the defaults of an `EndpointSlice`.
pub(super) fn endpoint_slice(value: &mut Value) {
    for port in tree::list_mut(value, &["ports"]).into_iter().flatten() {
        tree::set_default(port, &["name"], "");
        tree::set_default(port, &["protocol"], "TCP");
    }
}

/// Applies the defaults of a `NetworkPolicy`.
pub(super) fn network_policy(value: &mut Value) {
    for direction in ["ingress", "egress"] {
        for rule in tree::list_mut(value, &["spec", direction]).into_iter().flatten() {
            for port in tree::list_mut(rule, &["ports"]).into_iter().flatten() {
                tree::set_default(port, &["protocol"], "TCP");
            }
        }
    }
    if tree::list(value, &["spec", "policyTypes"]).is_empty() {
        let egress = !tree::list(value, &["spec", "egress"]).is_empty();
        let types = if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
        tree::set(value, &["spec", "policyTypes"], types);
    }
}

/// Applies the defaults of an `IngressClass`.
pub(super) fn ingress_class(value: &mut Value) {
    if tree::get(value, &["spec", "parameters"]).is_some_and(Value::is_object) {
        tree::set_default(value, &["spec", "parameters", "scope"], "Cluster");
    }
}

/// Applies the defaults of a `PriorityClass`.
pub(super) fn priority_class(value: &mut Value) {
    tree::set_default(value, &["preemptionPolicy"], "PreemptLowerPriority");
}

/// Applies the defaults of a `StorageClass`.
pub(super) fn storage_class(value: &mut Value) {
    tree::set_default(value, &["reclaimPolicy"], "Delete");
    tree::set_default(value, &["volumeBindingMode"], "Immediate");
}

/// Applies the defaults of a `CSIDriver`.
pub(super) fn csi_driver(value: &mut Value) {
    tree::set_default(value, &["spec", "attachRequired"], true);
    for field in [
        "podInfoOnMount",
        "storageCapacity",
        "requiresRepublish",
        "seLinuxMount",
    ] {
        tree::set_default(value, &["spec", field], false);
    }
    tree::set_default(value, &["spec", "fsGroupPolicy"], "ReadWriteOnceWithFSType");
    if tree::list(value, &["spec", "volumeLifecycleModes"]).is_empty() {
        tree::set(value, &["spec", "volumeLifecycleModes"], json!(["Persistent"]));
    }
}

/// Applies the defaults of a `HorizontalPodAutoscaler` in v2, the stored version.
pub(super) fn autoscaler(value: &mut Value) {
    tree::set_default(value, &["spec", "minReplicas"], 1);
    if tree::text(value, &["apiVersion"]) == "autoscaling/v2"
        && tree::list(value, &["spec", "metrics"]).is_empty()
    {
        let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        tree::set(value, &["spec", "metrics"], metric);
    }
}
