//! Readiness of objects, and the reasons that controllers and pods report.

use serde_json::Value;

/// Readiness of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The object is ready, or its kind has no readiness.
    Ready,
    /// The object is not ready, for this reason.
    Waiting(String),
}

/// Groups and kinds whose objects may not be ready right after they are written.
const WAITED_FOR: &[(&str, &str)] = &[
    ("apps", "Deployment"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("", "Namespace"),
];

/// Whether the objects of this kind must be waited for.
pub(super) fn is_waited_for(group: &str, kind: &str) -> bool {
    WAITED_FOR.contains(&(group, kind))
}

/// Returns the readiness of a live object.
#[must_use]
pub fn readiness(kind: &str, object: &Value) -> Readiness {
    let reason = match kind {
        "Deployment" => deployment_reason(object),
        "DaemonSet" => daemon_set_reason(object),
        "StatefulSet" => stateful_set_reason(object),
        "CustomResourceDefinition" => definition_reason(object),
        "Namespace" => namespace_reason(object),
        _ => None,
    };
    reason.map_or(Readiness::Ready, Readiness::Waiting)
}

fn number(object: &Value, at: &str) -> i64 {
    object.pointer(at).and_then(Value::as_i64).unwrap_or_default()
}

fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the controller has not observed the current spec.
fn is_stale(object: &Value) -> bool {
    number(object, "/status/observedGeneration") < number(object, "/metadata/generation")
}

const NOT_OBSERVED: &str = "its controller has not observed it yet";

fn deployment_reason(object: &Value) -> Option<String> {
    let wanted = object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let [updated, all, available] = ["updatedReplicas", "replicas", "availableReplicas"]
        .map(|name| number(object, &format!("/status/{name}")));
    if is_stale(object) {
        Some(NOT_OBSERVED.to_owned())
    } else if updated < wanted {
        Some(format!("{updated} of {wanted} replicas updated"))
    } else if all > updated {
        Some(format!("{} old replicas terminating", all - updated))
    } else if available < wanted {
        Some(format!("{available} of {wanted} replicas available"))
    } else {
        None
    }
}

/// Returns why a `DaemonSet` is not ready. One that selects no node is ready.
fn daemon_set_reason(object: &Value) -> Option<String> {
    let [wanted, updated, available] = [
        "desiredNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
    ]
    .map(|name| number(object, &format!("/status/{name}")));
    if is_stale(object) {
        Some(NOT_OBSERVED.to_owned())
    } else if updated < wanted && text(object, "/spec/updateStrategy/type") != "OnDelete" {
        Some(format!("{updated} of {wanted} pods updated"))
    } else if available < wanted {
        Some(format!("{available} of {wanted} pods available"))
    } else {
        None
    }
}

fn stateful_set_reason(object: &Value) -> Option<String> {
    let replicas = object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let wanted = replicas - number(object, "/spec/updateStrategy/rollingUpdate/partition");
    let [updated, ready] =
        ["updatedReplicas", "readyReplicas"].map(|name| number(object, &format!("/status/{name}")));
    if is_stale(object) {
        Some(NOT_OBSERVED.to_owned())
    } else if updated < wanted && text(object, "/spec/updateStrategy/type") != "OnDelete" {
        Some(format!("{updated} of {wanted} replicas updated"))
    } else if ready < replicas {
        Some(format!("{ready} of {replicas} replicas ready"))
    } else {
        None
    }
}

fn definition_reason(object: &Value) -> Option<String> {
    let established = condition(object, "Established");
    if established.is_some_and(|condition| text(condition, "/status") == "True") {
        return None;
    }
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let rejected = conditions
        .into_iter()
        .flatten()
        .find(|one| text(one, "/status") == "False");
    Some(rejected.map_or_else(
        || "not established yet".to_owned(),
        |one| text(one, "/message").to_owned(),
    ))
}

fn namespace_reason(object: &Value) -> Option<String> {
    let phase = text(object, "/status/phase");
    (phase != "Active").then(|| format!("phase {phase:?}"))
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .find(|one| text(one, "/type") == kind)
}

/// Returns why a workload has too few or no ready pods: the reason of its newest failing pod, or else
/// that of its controller.
pub(super) fn failure_reason(workload: &Value, pods: &[Value]) -> Option<String> {
    let mut pods: Vec<&Value> = pods.iter().collect();
    pods.sort_by(|a, b| {
        let created = |pod: &Value| text(pod, "/metadata/creationTimestamp").to_owned();
        created(b).cmp(&created(a))
    });
    pods.into_iter()
        .find_map(pod_reason)
        .or_else(|| controller_reason(workload))
}

fn pod_reason(pod: &Value) -> Option<String> {
    let name = text(pod, "/metadata/name");
    let reason = container_reason(pod).or_else(|| condition_reason(pod, "PodScheduled"));
    let reason = reason.or_else(|| condition_reason(pod, "Ready"))?;
    Some(format!("pod {name}: {reason}"))
}

/// Returns the state of the first container that failed or waits.
fn container_reason(pod: &Value) -> Option<String> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let lists = lists
        .iter()
        .filter_map(|list| pod.pointer(&format!("/status/{list}"))?.as_array());
    lists.flatten().find_map(|container| {
        let waiting = container
            .pointer("/state/waiting")
            .filter(|it| text(it, "/reason") != "PodInitializing");
        let state = waiting.or_else(|| {
            container
                .pointer("/state/terminated")
                .filter(|it| number(it, "/exitCode") != 0)
        })?;
        let reason = join_reason(text(state, "/reason"), text(state, "/message"));
        Some(format!("container {}: {reason}", text(container, "/name")))
    })
}

fn condition_reason(object: &Value, kind: &str) -> Option<String> {
    let condition = condition(object, kind)?;
    let reason = join_reason(text(condition, "/reason"), text(condition, "/message"));
    (text(condition, "/status") == "False").then_some(reason)
}

fn controller_reason(workload: &Value) -> Option<String> {
    let failure = condition(workload, "ReplicaFailure")?;
    let reason = join_reason(text(failure, "/reason"), text(failure, "/message"));
    (text(failure, "/status") == "True").then_some(reason)
}

fn join_reason(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "no reason given".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: &str, object: &Value, expected: Option<&str>) {
        let expected = expected.map_or(Readiness::Ready, |reason| Readiness::Waiting(reason.to_owned()));
        assert_eq!(readiness(kind, object), expected, "{object}");
    }

    #[test]
    fn workloads_are_ready_when_all_new_pods_are_available() {
        let deployment =
            |status: Value| json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status});
        check(
            "Deployment",
            &deployment(json!({"observedGeneration": 1})),
            Some(NOT_OBSERVED),
        );
        let status = json!({"observedGeneration": 2, "updatedReplicas": 1});
        check("Deployment", &deployment(status), Some("1 of 2 replicas updated"));
        let status = json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 3});
        check(
            "Deployment",
            &deployment(status),
            Some("1 old replicas terminating"),
        );
        let status = json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2});
        check(
            "Deployment",
            &deployment(status),
            Some("0 of 2 replicas available"),
        );
        let status =
            json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2});
        check("Deployment", &deployment(status), None);
        let daemons = |status: Value| json!({"metadata": {"generation": 1}, "status": status});
        check("DaemonSet", &daemons(json!({})), Some(NOT_OBSERVED));
        check("DaemonSet", &daemons(json!({"observedGeneration": 1})), None);
        let status = json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1});
        check("DaemonSet", &daemons(status), Some("1 of 3 pods available"));
        let set = json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": {"observedGeneration": 1, "updatedReplicas": 2}});
        check("StatefulSet", &set, Some("0 of 2 replicas ready"));
    }

    #[test]
    fn readiness_of_definitions_namespaces_and_other_kinds() {
        check(
            "CustomResourceDefinition",
            &json!({}),
            Some("not established yet"),
        );
        let rejected = json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "taken"}]}});
        check("CustomResourceDefinition", &rejected, Some("taken"));
        let good = json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}});
        check("CustomResourceDefinition", &good, None);
        check(
            "Namespace",
            &json!({"status": {"phase": "Terminating"}}),
            Some("phase \"Terminating\""),
        );
        check("ConfigMap", &json!({}), None);
    }

    #[test]
    fn the_reason_of_the_newest_failing_pod_is_reported() {
        let pod = |name: &str, time: &str, status: Value| json!({"metadata": {"name": name, "creationTimestamp": time}, "status": status});
        let waiting = json!({"containerStatuses": [
            {"name": "discovery", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]});
        let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}]});
        let pods = [
            pod("old", "2026-01-01T00:00:00Z", waiting.clone()),
            pod("new", "2026-01-02T00:00:00Z", unscheduled),
        ];
        assert_eq!(
            failure_reason(&json!({}), &pods).unwrap(),
            "pod new: Unschedulable: no nodes"
        );
        let pods = [pod("a", "2026-01-01T00:00:00Z", waiting)];
        assert_eq!(
            failure_reason(&json!({}), &pods).unwrap(),
            "pod a: container discovery: ImagePullBackOff: not found"
        );
        let workload = json!({"status": {"conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "forbidden"}]}});
        assert_eq!(failure_reason(&workload, &[]).unwrap(), "FailedCreate: forbidden");
        assert_eq!(failure_reason(&json!({}), &[]), None);
    }
}
