//! Removes fields that a rehearsal does not read. Most of a snapshot's size are pods; their definition is
//! in the template of the workload, so that only location, owner and status of a pod are needed.

use serde_json::{Map, Value};

/// Fields removed from containers.
const UNUSED_CONTAINER_FIELDS: [&str; 13] = [
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "volumeDevices",
    "volumeMounts",
];

/// Fields removed from pod specs.
const UNUSED_POD_FIELDS: [&str; 5] = [
    "affinity",
    "ephemeralContainers",
    "initContainers",
    "tolerations",
    "topologySpreadConstraints",
];

/// Fields removed from pod statuses.
const UNUSED_STATUS_FIELDS: [&str; 4] = [
    "ephemeralContainerStatuses",
    "hostIPs",
    "initContainerStatuses",
    "podIPs",
];

/// Removes the fields that a rehearsal does not read.
pub(super) fn trim(object: &mut Value) {
    if let Some(metadata) = fields(object, "metadata") {
        metadata.remove("managedFields");
    }
    if object.get("kind").and_then(Value::as_str) == Some("Pod") {
        trim_pod(object);
    }
}

fn trim_pod(pod: &mut Value) {
    if let Some(spec) = fields(pod, "spec") {
        drop_all(spec, &UNUSED_POD_FIELDS);
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            drop_all(container, &UNUSED_CONTAINER_FIELDS);
        }
    }
    if let Some(status) = fields(pod, "status") {
        drop_all(status, &UNUSED_STATUS_FIELDS);
        let statuses = status.get_mut("containerStatuses").and_then(Value::as_array_mut);
        for status in statuses.into_iter().flatten().filter_map(Value::as_object_mut) {
            status.retain(|key, _| matches!(key.as_str(), "name" | "ready" | "restartCount"));
        }
    }
}

fn fields<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(key)?.as_object_mut()
}

fn drop_all(map: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        map.remove(*key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut object: Value, expected: &Value) {
        trim(&mut object);
        assert_eq!(object, *expected);
    }

    #[test]
    fn pods_keep_only_relevant_fields() {
        check(
            json!({"kind": "Pod", "metadata": {"name": "p", "managedFields": [{"manager": "x"}]},
                "spec": {"nodeName": "n", "tolerations": [{}], "volumes": [{"name": "v"}], "containers": [{"name": "c", "image": "i", "env": []}]},
                "status": {"phase": "Running", "podIPs": [{}], "containerStatuses": [{"name": "c", "restartCount": 2, "state": {}}]}}),
            &json!({"kind": "Pod", "metadata": {"name": "p"},
                "spec": {"nodeName": "n", "volumes": [{"name": "v"}], "containers": [{"name": "c", "image": "i"}]},
                "status": {"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 2}]}}),
        );
    }

    #[test]
    fn other_kinds_lose_managed_fields_only() {
        let template = json!({"spec": {"containers": [{"name": "c", "env": []}], "tolerations": []}});
        check(
            json!({"kind": "Deployment", "metadata": {"managedFields": []}, "spec": {"template": template}}),
            &json!({"kind": "Deployment", "metadata": {}, "spec": {"template": template}}),
        );
        for odd in [
            json!(null),
            json!("x"),
            json!({"kind": "Pod", "spec": 1, "status": []}),
        ] {
            check(odd.clone(), &odd);
        }
    }
}
