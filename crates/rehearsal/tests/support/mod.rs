//! A simulated mesh of 1.28.2 with mixed workloads; its objects are the input of rehearsals.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests, not all used by each"
)]

pub(crate) mod many;

use std::sync::Arc;
use std::time::Duration;

use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, HarnessError, RunningOperator, SimulatedCluster};
use mainstay_mesh::Settings;
use mainstay_operator::Options;
use mainstay_rehearsal::report::{FindingKind, Report};
use mainstay_rehearsal::{Input, RehearsalRequest, rehearse};
use mainstay_sim::snapshot::dump;
use serde_json::{Value, json};

pub(crate) const OLD: &str = "default-v1-28-2";
pub(crate) const NEW: &str = "default-v1-29-1";
pub(crate) const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

pub(crate) fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

/// Returns an Istio with this `migration`.
pub(crate) fn istio(migration: &Value) -> Value {
    json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"}, "spec": {
        "version": "v1.28.2", "namespace": "istio-system",
        "updateStrategy": {"type": "RevisionBased", "workloadMigration": migration}}})
}

pub(crate) fn batched(size: i64, delay: &str) -> Value {
    json!({"strategy": "Batched", "batched": {"batchSize": size, "delayBetweenBatches": delay}})
}

/// Returns a Deployment with one container. `more` is merged into it.
pub(crate) fn deployment(namespace: &str, name: &str, replicas: i64, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    merge(&mut object, more);
    object
}

pub(crate) fn service(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}})
}

fn merge(object: &mut Value, more: &Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                merge(object.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more.clone(),
    }
}

/// Returns namespaces that are selected by revision, by injection label and not at all, and various
/// workloads.
pub(crate) fn mixed_workloads() -> Vec<Value> {
    let namespace = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let none = json!({});
    let labeled = json!({"spec": {"template": {"metadata": {"labels": {"istio.io/rev": OLD}}}}});
    vec![
        namespace("front", json!({"istio-injection": "enabled"})),
        namespace("shop", json!({"istio.io/rev": OLD})),
        namespace("silent", json!({})),
        deployment("front", "web", 3, &none),
        service("front", "web"),
        deployment("shop", "cart", 2, &none),
        service("shop", "cart"),
        deployment("shop", "slow", 2, &none),
        deployment(
            "shop",
            "alone",
            1,
            &json!({"spec": {"strategy": {"type": "Recreate"}}}),
        ),
        service("shop", "alone"),
        deployment(
            "shop",
            "tight",
            2,
            &json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}),
        ),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "tight", "namespace": "shop"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "tight"}}}}),
        deployment(
            "shop",
            "billing",
            1,
            &json!({"metadata": {"annotations": {"sailoperator.io/skip-migration": "true"}}}),
        ),
        deployment("silent", "own", 1, &labeled),
        deployment("silent", "empty", 0, &labeled),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {
                "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    ]
}

/// Runs the old mesh until everything is ready, then calls `then`.
pub(crate) fn old_mesh<T, F: Future<Output = Result<T, HarnessError>>>(
    istio: &Value,
    mixed_workloads: Vec<Value>,
    then: impl FnOnce(SimulatedCluster, RunningOperator) -> F,
) -> T {
    let options = ClusterOptions {
        trace: true,
        // As in a rehearsal: the order of concurrent plans is not reproducible.
        max_concurrent: 1,
        ..ClusterOptions::default()
    };
    let result = SimulatedCluster::run(catalog(), &options, async |cluster| {
        cluster.create_namespace("istio-system", json!({})).await?;
        cluster.create(istio).await?;
        let operator = cluster.start_operator(Settings::default(), Options::default());
        cluster.sleep(Duration::from_secs(20)).await;
        for object in mixed_workloads {
            cluster.create(&object).await?;
        }
        cluster.sleep(Duration::from_secs(30)).await;
        then(cluster, operator).await
    });
    result.unwrap()
}

/// Returns the objects of a simulated cluster.
pub(crate) fn objects(cluster: &SimulatedCluster) -> Vec<Value> {
    cluster.sim().with(|state| dump(state))
}

/// Returns the objects of the old mesh once it is ready.
pub(crate) fn snapshot(istio: &Value, mixed_workloads: Vec<Value>) -> Vec<Value> {
    old_mesh(istio, mixed_workloads, async |cluster, operator| {
        let objects = objects(&cluster);
        operator.stop().await?;
        Ok(objects)
    })
}

/// Returns a request for an upgrade to 1.29.1.
pub(crate) fn upgrade() -> RehearsalRequest {
    RehearsalRequest {
        to: Some("v1.29.1".into()),
        ..RehearsalRequest::default()
    }
}

pub(crate) fn report(objects: &[Value], request: &RehearsalRequest) -> Report {
    let input = Input::from_objects("a test".into(), objects.to_vec()).unwrap();
    rehearse(&catalog(), input, request).unwrap()
}

/// Returns the findings of a kind, as `severity subject: what`.
pub(crate) fn found(report: &Report, kind: FindingKind) -> Vec<String> {
    let found = report.findings.iter().filter(|finding| finding.kind == kind);
    found
        .map(|finding| format!("{:?} {}: {}", finding.severity, finding.subject, finding.what))
        .collect()
}
