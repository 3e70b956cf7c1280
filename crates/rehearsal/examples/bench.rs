//! How long a rehearsal of many workloads takes, and how much memory: `bench [WORKLOADS [embedded]]` prints
//! `rehearse 10000 workloads: 1.23 s, 456 MiB`. Making the objects is not counted, reading them into an input is told on a line of its own.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is what an example does"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use mainstay_catalog::Catalog;
use mainstay_rehearsal::report::{Method, Outcome};
use mainstay_rehearsal::{Input, Wish, rehearse};
use serde_json::{Value, json};

const OLD: &str = "default-v1-28-2";
/// Workloads of one namespace.
const EACH: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let count = args.next().map_or(Ok(10_000), |count| count.parse())?;
    let method = args.next().map(|_| Method::Embedded);
    let catalog = Arc::new(Catalog::embedded()?);
    let objects = objects(count);
    let begun = Instant::now();
    let input = Input::of_objects("a bench".into(), objects)?;
    println!(
        "read {} objects: {:.2} s",
        input.objects.len(),
        begun.elapsed().as_secs_f64()
    );
    let wish = Wish {
        to: Some("v1.29.1".into()),
        method,
        ..Wish::default()
    };
    let (begun, busy) = (Instant::now(), busy_seconds());
    let report = rehearse(&catalog, &input, &wish)?;
    let took = begun.elapsed();
    if report.outcome != Outcome::Completed || report.totals.migrated != count {
        return Err(format!("not as it should be: {:?} {:?}", report.outcome, report.totals).into());
    }
    println!(
        "rehearsed {} of virtual time, {} batches, {:?}",
        report.totals.duration, report.totals.batches, report.method
    );
    println!("of the processor's time: {:.2} s", busy_seconds() - busy);
    println!(
        "rehearse {count} workloads: {:.2} s, {} MiB",
        took.as_secs_f64(),
        peak_mebibytes()
    );
    Ok(())
}

/// How long the main thread has been running: what it took, whoever else used the machine.
fn busy_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// The most memory this process ever held.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) / 1024
}

fn objects(count: usize) -> Vec<Value> {
    let mut objects = vec![
        json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"}, "spec": {
            "version": "v1.28.2", "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased",
                "workloadMigration": {"strategy": "Batched", "batched": {"batchSize": 10, "delayBetweenBatches": "30s"}}}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}}),
    ];
    for number in 0..count {
        let namespace = format!("space-{:04}", number / EACH);
        if number % EACH == 0 {
            let labels = json!({"istio.io/rev": OLD, "kubernetes.io/metadata.name": namespace});
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}));
        }
        objects.extend(workload(&namespace, &format!("app-{number:05}")));
    }
    objects
}

/// A Deployment as a cluster holds it, with its replica set, two pods and a Service.
fn workload(namespace: &str, name: &str) -> Vec<Value> {
    let (hash, labels) = ("5d4f8c7b6", json!({"app": name}));
    let hashed = json!({"app": name, "pod-template-hash": hash});
    let set = format!("{name}-{hash}");
    let spec = json!({"containers": [{"name": "c", "image": "registry.example/app:1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "schedulerName": "default-scheduler"});
    let born = "2026-01-01T00:00:00Z";
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("{kind}-{name}"), "controller": true}]);
    let meta = |name: &str, kind: &str| json!({"name": name, "namespace": namespace, "uid": format!("{kind}-{name}"), "generation": 1, "creationTimestamp": born});
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
