//! Helpers for tests with one or several operators on a simulated cluster.

use std::sync::Arc;
use std::time::Duration;

use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, HarnessError, RunningOperator, SimulatedCluster};
use mainstay_mesh::Settings;
use mainstay_operator::{OperatorError, Options};
use mainstay_sim::fault::RequestCounts;
use serde_json::{Value, json};

pub(crate) const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

/// Creates a cluster with the namespaces of a mesh. Its webhooks admit all objects.
pub(crate) async fn new_cluster() -> SimulatedCluster {
    // The log is printed when a test fails, or with --nocapture.
    let _ = tracing_subscriber::fmt()
        .with_test_writer()
        .with_ansi(false)
        .without_time()
        .try_init();
    let options = ClusterOptions {
        nodes: 2,
        trace: true,
        inject: false,
        admit_unserved: true,
        ..ClusterOptions::default()
    };
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let cluster = SimulatedCluster::new(catalog, &options).await.unwrap();
    for name in ["istio-system", "istio-cni", "ztunnel"] {
        cluster.create_namespace(name, json!({})).await.unwrap();
    }
    cluster
}

/// Returns the Istio `default` in `istio-system` with these additional fields in its spec.
pub(crate) fn istio(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"},
        "spec": {"namespace": "istio-system"},
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut object["spec"], spec) {
        all.extend(more);
    }
    object
}

pub(crate) async fn create_istio(cluster: &SimulatedCluster) {
    cluster
        .create(&istio(json!({"version": "v1.29.1"})))
        .await
        .unwrap();
}

/// Starts an operator without leader election. `name` identifies it in faults and traces.
pub(crate) fn start(cluster: &SimulatedCluster, name: &str) -> RunningOperator {
    let options = Options {
        leader_elect: false,
        ..Options::default()
    };
    start_with(cluster, name, options)
}

/// Starts an operator whose plans are checked.
pub(crate) fn start_with(cluster: &SimulatedCluster, name: &str, options: Options) -> RunningOperator {
    let options = Options {
        identity: name.to_owned(),
        inspect: Some(Arc::new(|snapshot, plan| {
            let violations = mainstay_check::check(snapshot, plan);
            assert!(violations.is_empty(), "{violations:?}");
        })),
        ..options
    };
    cluster.start_operator_with(cluster.client(name), Settings::default(), options)
}

/// Waits until the operator ends by itself, and returns its error.
pub(crate) async fn failure(operator: RunningOperator) -> OperatorError {
    match operator.ended().await {
        Err(HarnessError::Operator(error)) => error,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn sleep(cluster: &SimulatedCluster, seconds: u64) {
    cluster.sleep(Duration::from_secs(seconds)).await;
}

/// Waits until the Istio is healthy.
pub(crate) async fn wait_until_healthy(cluster: &SimulatedCluster, seconds: u64) {
    let (timeout, interval) = (Duration::from_secs(seconds), Duration::from_millis(100));
    let healthy = cluster.wait_until(timeout, interval, is_healthy).await;
    assert!(
        healthy,
        "not healthy after {seconds} s:\n{}",
        cluster.sim().trace()
    );
}

pub(crate) fn is_healthy(cluster: &SimulatedCluster) -> bool {
    state(cluster, "istios", "default") == "Healthy"
}

/// Returns `status.state` of one of our objects, or an empty string if it is not set.
pub(crate) fn state(cluster: &SimulatedCluster, plural: &str, name: &str) -> String {
    let object = cluster.stored_object(&format!("{plural}.sailoperator.io"), "", name);
    let state = object.and_then(|object| object.pointer("/status/state")?.as_str().map(ToOwned::to_owned));
    state.unwrap_or_default()
}

pub(crate) async fn exists(cluster: &SimulatedCluster, path: &str) -> bool {
    cluster.get(path).await.unwrap().is_some()
}

/// Returns the number of requests of a client.
pub(crate) fn requests(cluster: &SimulatedCluster, client: &str) -> RequestCounts {
    cluster.sim().with(|state| state.faults.counts(client))
}

/// Returns the trace lines of a client, except watches.
pub(crate) fn trace_of(cluster: &SimulatedCluster, client: &str) -> String {
    let trace = cluster.sim().trace();
    let lines = trace
        .lines()
        .filter(|line| line.contains(client) && !line.contains("watch"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the last writes of the trace.
pub(crate) fn last_writes(cluster: &SimulatedCluster) -> String {
    let trace = cluster.sim().trace();
    let verbs = ["POST", "PATCH", "PUT", "DELETE"];
    let lines: Vec<_> = trace
        .lines()
        .filter(|line| verbs.iter().any(|verb| line.contains(verb)))
        .collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
