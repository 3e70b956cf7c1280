//! Defaults of the core group, except pods.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::pod_spec;
use crate::tree;

/// Does nothing, for kinds without defaults.
pub(super) fn no_defaults(_: &mut Value) {}

/// Applies the defaults of a Namespace: a label with its name, and the phase.
pub(super) fn namespace(value: &mut Value) {
    let name = tree::text(value, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        tree::set(
            value,
            &["metadata", "labels", "kubernetes.io/metadata.name"],
            name,
        );
    }
    tree::set_default_text(value, &["status", "phase"], "Active");
}

/// Applies the defaults of a Node: `allocatable` defaults to `capacity`.
pub(super) fn node(value: &mut Value) {
    if let Some(capacity) = tree::get(value, &["status", "capacity"]).cloned() {
        tree::set_default(value, &["status", "allocatable"], capacity);
    }
}

/// Applies the defaults of a Secret.
pub(super) fn secret(value: &mut Value) {
    // `stringData` is write-only. Its entries replace those in `data`.
    if let Some(Value::Object(texts)) = tree::remove(value, &["stringData"]) {
        for (key, text) in texts {
            let encoded = STANDARD.encode(text.as_str().unwrap_or(""));
            tree::set(value, &["data", &key], encoded);
        }
    }
    tree::set_default_text(value, &["type"], "Opaque");
}

/// Applies the defaults of a Service.
pub(super) fn service(value: &mut Value) {
    tree::set_default_text(value, &["spec", "sessionAffinity"], "None");
    if tree::text(value, &["spec", "sessionAffinity"]) == "None" {
        tree::remove(value, &["spec", "sessionAffinityConfig"]);
    } else {
        tree::set_default(
            value,
            &["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"],
            10_800,
        );
    }
    tree::set_default_text(value, &["spec", "type"], "ClusterIP");
    for port in tree::list_mut(value, &["spec", "ports"]).into_iter().flatten() {
        tree::set_default_text(port, &["protocol"], "TCP");
        let is_unset = matches!(port.get("targetPort"), None | Some(Value::Null))
            || port["targetPort"] == json!(0)
            || port["targetPort"] == json!("");
        if is_unset {
            let number = tree::int(port, &["port"]).unwrap_or(0);
            tree::set(port, &["targetPort"], number);
        }
    }
    let kind = tree::text(value, &["spec", "type"]).to_owned();
    let is_external = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !tree::list(value, &["spec", "externalIPs"]).is_empty());
    if is_external {
        tree::set_default_text(value, &["spec", "externalTrafficPolicy"], "Cluster");
    }
    if kind != "ExternalName" {
        tree::set_default(value, &["spec", "internalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        tree::set_default(value, &["spec", "allocateLoadBalancerNodePorts"], true);
    }
}

/// Applies the defaults of Endpoints.
pub(super) fn endpoints(value: &mut Value) {
    for subset in tree::list_mut(value, &["subsets"]).into_iter().flatten() {
        for port in tree::list_mut(subset, &["ports"]).into_iter().flatten() {
            tree::set_default_text(port, &["protocol"], "TCP");
        }
    }
}

/// Applies the defaults of a `LimitRange`.
pub(super) fn limit_range(value: &mut Value) {
    for item in tree::list_mut(value, &["spec", "limits"]).into_iter().flatten() {
        if tree::text(item, &["type"]) == "Container" {
            for (from, to) in [
                ("max", "default"),
                ("default", "defaultRequest"),
                ("min", "defaultRequest"),
            ] {
                for (name, amount) in tree::map(item, &[from]).cloned().unwrap_or_default() {
                    tree::set_default(item, &[to, &name], amount);
                }
            }
        }
    }
}

/// Applies the defaults of a `PersistentVolume`.
pub(super) fn persistent_volume(value: &mut Value) {
    tree::set_default_text(value, &["status", "phase"], "Pending");
    tree::set_default_text(value, &["spec", "persistentVolumeReclaimPolicy"], "Retain");
    tree::set_default(value, &["spec", "volumeMode"], "Filesystem");
}

/// Applies the defaults of a `PersistentVolumeClaim`.
pub(super) fn persistent_volume_claim(value: &mut Value) {
    tree::set_default_text(value, &["status", "phase"], "Pending");
    tree::set_default(value, &["spec", "volumeMode"], "Filesystem");
}

/// Applies the defaults of a `PodTemplate`.
pub(super) fn pod_template(value: &mut Value) {
    if let Some(spec) = tree::get_mut(value, &["template", "spec"]) {
        pod_spec(spec);
    }
}

/// Applies the defaults of a `ReplicationController`.
pub(super) fn replication_controller(value: &mut Value) {
    if let Some(spec) = tree::get_mut(value, &["spec", "template", "spec"]) {
        pod_spec(spec);
    }
    tree::set_default(value, &["spec", "replicas"], 1);
    let labels = tree::get(value, &["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) = labels {
        tree::set_default(value, &["spec", "selector"], labels.clone());
        tree::set_default(value, &["metadata", "labels"], labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_is_encoded_with_padding() {
        for (text, encoded) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("hello!", "aGVsbG8h"),
            ("??>", "Pz8+"),
        ] {
            let mut object = json!({"stringData": {"key": text}});
            secret(&mut object);
            assert_eq!(object, json!({"data": {"key": encoded}, "type": "Opaque"}));
        }
    }
}
