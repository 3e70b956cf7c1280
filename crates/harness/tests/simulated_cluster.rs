//! Tests the harness: the operator migrates workloads, every revision injects, and virtual time is
//! deterministic.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::Arc;
use std::time::Duration;

use mainstay_catalog::Catalog;
use mainstay_harness::SimulatedCluster;
use mainstay_harness::{ClusterOptions, HarnessError, Speed};
use mainstay_mesh::Settings;
use mainstay_operator::Options;
use serde_json::{Value, json};

const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

async fn create_mesh(cluster: &SimulatedCluster) -> Result<(), HarnessError> {
    cluster.create_namespace("istio-system", json!({})).await?;
    let spec = json!({"version": "v1.28.2", "namespace": "istio-system", "updateStrategy": {
        "type": "RevisionBased", "workloadMigration": {"strategy": "Batched",
            "batched": {"batchSize": 1, "delayBetweenBatches": "10s"}}}});
    let istio = json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"}, "spec": spec});
    cluster.create(&istio).await.map(|_| ())
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    })
}

fn migrated_workloads(cluster: &SimulatedCluster) -> i64 {
    let istio = cluster
        .stored_object("istios.sailoperator.io", "", "default")
        .unwrap();
    istio["status"]["workloadMigration"]["migratedWorkloads"]
        .as_i64()
        .unwrap_or(0)
}

fn is_healthy(cluster: &SimulatedCluster) -> bool {
    let istio = cluster
        .stored_object("istios.sailoperator.io", "", "default")
        .unwrap();
    istio["status"]["state"] == "Healthy"
}

async fn upgrade(cluster: SimulatedCluster) -> Result<Vec<String>, HarnessError> {
    let mut log = Vec::new();
    create_mesh(&cluster).await?;
    let operator = cluster.start_operator(Settings::default(), Options::default());
    let (minute, step) = (Duration::from_mins(1), Duration::from_millis(50));
    assert!(cluster.wait_until(minute, step, is_healthy).await);
    cluster
        .create_namespace("shop", json!({"istio.io/rev": "default-v1-28-2"}))
        .await?;
    for name in ["cart", "web"] {
        cluster.create(&deployment("shop", name)).await?;
    }
    cluster.sleep(minute).await;
    cluster
        .merge_patch(ISTIO, &json!({"spec": {"version": "v1.29.1"}}))
        .await?;
    let start = cluster.now();
    for expected in 1..=2 {
        assert!(
            cluster
                .wait_until(minute, step, |cluster| migrated_workloads(cluster) == expected)
                .await
        );
        log.push(format!(
            "{expected} after {}",
            cluster.now().duration_since(start).as_millis()
        ));
    }
    let is_pruned = |cluster: &SimulatedCluster| {
        cluster
            .stored_object("deployments.apps", "istio-system", "istiod-default-v1-28-2")
            .is_none()
    };
    assert!(cluster.wait_until(minute, step, is_pruned).await);
    operator.stop().await?;
    Ok(log)
}

#[test]
fn an_upgrade_migrates_workloads_at_the_same_times_in_every_run() {
    let run = || SimulatedCluster::run(catalog(), &ClusterOptions::default(), upgrade).unwrap();
    let first = run();
    assert_eq!(first, run());
}

#[test]
fn a_speed_factor_ties_virtual_time_to_the_wall_clock() {
    let options = ClusterOptions {
        speed: Speed::Factor(100.0),
        ..ClusterOptions::default()
    };
    let start = std::time::Instant::now();
    SimulatedCluster::run(catalog(), &options, async |cluster| {
        cluster.sleep(Duration::from_secs(30)).await;
        Ok::<(), HarnessError>(())
    })
    .unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn rejected_requests_return_the_reason() {
    let errors = SimulatedCluster::run(catalog(), &ClusterOptions::default(), async |cluster| {
        let unknown_kind = json!({"apiVersion": "v1", "kind": "Strange", "metadata": {"name": "x"}});
        let unknown = cluster.create(&unknown_kind).await.unwrap_err();
        let rejected = cluster.create(&deployment("nowhere", "x")).await.unwrap_err();
        Ok::<_, HarnessError>([unknown.to_string(), rejected.to_string()])
    })
    .unwrap();
    assert_eq!(errors[0], "the embedded cluster does not serve v1 Strange");
    assert_eq!(
        errors[1],
        "POST /apis/apps/v1/namespaces/nowhere/deployments: namespaces \"nowhere\" not found"
    );
}
