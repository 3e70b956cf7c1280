//! What a rehearsal has no use for: takes an object, takes it away. A cluster's pods are most of its text, and how they are made is told by their
//! workloads' templates; of a pod itself it matters where it is, who made it, and how it is.

use serde_json::{Map, Value};

/// What a pod's containers are played without.
const OF_CONTAINERS: [&str; 13] = [
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

/// What a pod is played without.
const OF_PODS: [&str; 5] = [
    "affinity",
    "ephemeralContainers",
    "initContainers",
    "tolerations",
    "topologySpreadConstraints",
];

/// What its status is read without.
const OF_STATUSES: [&str; 4] = [
    "ephemeralContainerStatuses",
    "hostIPs",
    "initContainerStatuses",
    "podIPs",
];

/// Takes away what no rehearsal looks at.
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
        drop_all(spec, &OF_PODS);
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            drop_all(container, &OF_CONTAINERS);
        }
    }
    if let Some(status) = fields(pod, "status") {
        drop_all(status, &OF_STATUSES);
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
    fn of_pods_remains_what_is_played() {
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
    fn of_others_only_who_wrote_which_field_goes() {
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
