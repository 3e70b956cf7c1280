//! How fast and how large: 10,000 Deployments and 30,000 Pods in one cluster, then reads and writes per second on one core.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "an example that talks")]

use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt;
use http::Method;
use mainstay_sim::api::{Call, Query};
use mainstay_sim::auth::User;
use mainstay_sim::{Cluster, Connection, Options};
use serde_json::{Value, json};

const DEPLOYMENTS: usize = 10_000;
const PODS: usize = 30_000;
const READS: usize = 200_000;
const WRITES: usize = 40_000;

fn main() {
    let cluster = Cluster::new(Options {
        trace: false,
        automatic: false,
        ..Options::default()
    });
    let connection = cluster.connect("bench");
    let started = begin();
    for number in 0..DEPLOYMENTS {
        post(
            &connection,
            "/apis/apps/v1/namespaces/default/deployments",
            &deployment(number),
        );
    }
    for number in 0..PODS {
        post(&connection, "/api/v1/namespaces/default/pods", &pod(number));
    }
    report("creates", DEPLOYMENTS + PODS, started);
    println!("resident memory: {} MiB", resident_mib());

    let started = begin();
    for number in 0..READS {
        let path = format!("/api/v1/namespaces/default/pods/pod-{}", number % PODS);
        send(&connection, Method::GET, &path, "", Bytes::new());
    }
    report("reads", READS, started);

    let started = begin();
    for number in 0..WRITES {
        let path = format!("/api/v1/namespaces/default/pods/pod-{}/status", number % PODS);
        let change = json!({"status": {"phase": "Running", "podIP": format!("10.1.0.{}", number % 250), "message": number.to_string()}});
        send(
            &connection,
            Method::PATCH,
            &path,
            "application/merge-patch+json",
            change.to_string().into(),
        );
    }
    report("status patches", WRITES, started);

    let started = begin();
    for number in 0..WRITES / 4 {
        let path = format!(
            "/apis/apps/v1/namespaces/default/deployments/deployment-{}",
            number % DEPLOYMENTS
        );
        let change =
            json!({"spec": {"template": {"metadata": {"annotations": {"restartedAt": number.to_string()}}}}});
        send(
            &connection,
            Method::PATCH,
            &path,
            "application/strategic-merge-patch+json",
            change.to_string().into(),
        );
    }
    report("strategic patches of deployments", WRITES / 4, started);

    let started = begin();
    for _ in 0..10 {
        send(&connection, Method::GET, "/api/v1/pods", "", Bytes::new());
    }
    report("lists of all pods", 10, started);
    println!("resident memory: {} MiB", resident_mib());
}

fn post(connection: &Connection, path: &str, value: &Value) {
    send(
        connection,
        Method::POST,
        path,
        "application/json",
        value.to_string().into(),
    );
}

fn send(connection: &Connection, method: Method, path: &str, content_type: &str, body: Bytes) {
    let call = Call {
        client: "bench".into(),
        user: User::admin(),
        impersonation: None,
        method,
        path: path.to_owned(),
        query: Query::default(),
        accept: "application/json".into(),
        content_type: content_type.to_owned(),
        user_agent: "bench/1".into(),
        body,
        answers: Vec::new(),
    };
    let response = connection
        .send(call)
        .now_or_never()
        .expect("nothing to wait for")
        .expect("no faults");
    assert!(response.status().is_success(), "{path}: {}", response.status());
}

/// Counts in seconds of processor time, so that a busy machine does not matter; the wall's seconds are shown too.
fn report(what: &str, count: usize, (wall, processor): (Instant, f64)) {
    let (wall, processor) = (wall.elapsed().as_secs_f64(), processor_seconds() - processor);
    let rate = count as f64 / processor;
    println!("{what}: {count} in {processor:.2} s on one core ({wall:.2} s passed), {rate:.0} per second");
}

fn begin() -> (Instant, f64) {
    (Instant::now(), processor_seconds())
}

/// What this process has used so far, from `/proc/self/stat` (in hundredths of a second).
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or("");
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn pod_spec() -> Value {
    json!({
        "serviceAccountName": "default",
        "containers": [
            {
                "name": "app", "image": "registry.example/app:1.2.3",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "A", "value": "1"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
            },
            {
                "name": "proxy", "image": "registry.example/proxy:1.30.3",
                "args": ["proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--log_output_level=default:info"],
                "ports": [{"name": "envoy-prom", "containerPort": 15090}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            },
        ],
        "volumes": [{"name": "config", "configMap": {"name": "app"}}],
    })
}

fn deployment(number: usize) -> Value {
    let labels = json!({"app": format!("app-{number}"), "version": "v1"});
    json!({
        "metadata": {"name": format!("deployment-{number}"), "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec()}},
    })
}

fn pod(number: usize) -> Value {
    let labels =
        json!({"app": format!("app-{}", number / 3), "version": "v1", "pod-template-hash": "abcdef"});
    json!({"metadata": {"name": format!("pod-{number}"), "labels": labels}, "spec": pod_spec()})
}
