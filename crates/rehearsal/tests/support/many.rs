//! Generates the objects of a cluster with many workloads.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "helpers of tests, not all used by each"
)]

use serde_json::{Value, json};

const OLD: &str = "default-v1-28-2";
/// Number of workloads per namespace.
const WORKLOADS_PER_NAMESPACE: usize = 10;

/// Returns an Istio and workloads, each with its `ReplicaSet`, two pods and a Service.
pub(crate) fn many(count: usize) -> Vec<Value> {
    let mut objects = vec![
        json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"}, "spec": {
            "version": "v1.28.2", "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased",
                "workloadMigration": {"strategy": "Batched", "batched": {"batchSize": 10, "delayBetweenBatches": "30s"}}}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}}),
    ];
    for number in 0..count {
        let namespace = format!("space-{:04}", number / WORKLOADS_PER_NAMESPACE);
        if number % WORKLOADS_PER_NAMESPACE == 0 {
            let labels = json!({"istio.io/rev": OLD, "kubernetes.io/metadata.name": namespace});
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}));
        }
        objects.extend(workload(&namespace, &format!("app-{number:05}")));
    }
    objects
}

/// Returns a Deployment with its `ReplicaSet`, two pods and a Service.
fn workload(namespace: &str, name: &str) -> Vec<Value> {
    let (hash, labels) = ("5d4f8c7b6", json!({"app": name}));
    let hashed = json!({"app": name, "pod-template-hash": hash});
    let set = format!("{name}-{hash}");
    let spec = json!({"containers": [{"name": "c", "image": "registry.example/app:1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "schedulerName": "default-scheduler"});
    let created = "2026-01-01T00:00:00Z";
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("{kind}-{name}"), "controller": true}]);
    let meta = |name: &str, kind: &str| json!({"name": name, "namespace": namespace, "uid": format!("{kind}-{name}"), "generation": 1, "creationTimestamp": created});
    let mut deployment = meta(name, "Deployment");
    set_field(
        &mut deployment,
        "annotations",
        json!({"deployment.kubernetes.io/revision": "1"}),
    );
    let mut replica_set = meta(&set, "ReplicaSet");
    set_field(&mut replica_set, "labels", hashed.clone());
    set_field(&mut replica_set, "ownerReferences", owner("Deployment", name));
    set_field(
        &mut replica_set,
        "annotations",
        json!({"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "3"}),
    );
    let mut objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment, "status": status, "spec": {"replicas": 2,
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": replica_set, "status": status, "spec": {"replicas": 2,
            "selector": {"matchLabels": hashed}, "template": {"metadata": {"labels": hashed}, "spec": spec}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": labels, "ports": [{"port": 80}]}}),
    ];
    for end in ["k2j72", "sxfp8"] {
        let pod = format!("{set}-{end}");
        let mut metadata = meta(&pod, "Pod");
        set_field(&mut metadata, "labels", hashed.clone());
        set_field(&mut metadata, "annotations", json!({"istio.io/rev": OLD}));
        set_field(&mut metadata, "ownerReferences", owner("ReplicaSet", &set));
        objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}]}}));
    }
    objects
}

fn set_field(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}

/// Sets the time at which a pod became ready to this many seconds after its creation.
pub(crate) fn observed_at(pod: &mut Value, seconds: u32) {
    let ready = pod.pointer_mut("/status/conditions/0/lastTransitionTime");
    *ready.unwrap() = json!(format!("2026-01-01T00:00:{seconds:02}Z"));
}
