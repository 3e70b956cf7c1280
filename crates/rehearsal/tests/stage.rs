//! The stage itself: an operator on it moves workloads, injectors answer for every revision, and time is exact.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::Arc;
use std::time::Duration;

use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::Options;
use mainstay_rehearsal::Stage;
use mainstay_rehearsal::stage::{Pace, StageError, StageOptions};
use serde_json::{Value, json};

const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

async fn mesh(stage: &Stage) -> Result<(), StageError> {
    stage.create_namespace("istio-system", json!({})).await?;
    let spec = json!({"version": "v1.28.2", "namespace": "istio-system", "updateStrategy": {
        "type": "RevisionBased", "workloadMigration": {"strategy": "Batched",
            "batched": {"batchSize": 1, "delayBetweenBatches": "10s"}}}});
    let istio = json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"}, "spec": spec});
    stage.create(&istio).await.map(|_| ())
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    })
}

fn migrated(stage: &Stage) -> i64 {
    let istio = stage.peek("istios.sailoperator.io", "", "default").unwrap();
    istio["status"]["workloadMigration"]["migratedWorkloads"]
        .as_i64()
        .unwrap_or(0)
}

fn is_healthy(stage: &Stage) -> bool {
    let istio = stage.peek("istios.sailoperator.io", "", "default").unwrap();
    istio["status"]["state"] == "Healthy"
}

async fn upgrade(stage: Stage) -> Result<Vec<String>, StageError> {
    let mut log = Vec::new();
    mesh(&stage).await?;
    let operator = stage.start_operator(Settings::default(), Options::default());
    let (minute, step) = (Duration::from_mins(1), Duration::from_millis(50));
    assert!(stage.until(minute, step, is_healthy).await);
    stage
        .create_namespace("shop", json!({"istio.io/rev": "default-v1-28-2"}))
        .await?;
    for name in ["cart", "web"] {
        stage.create(&deployment("shop", name)).await?;
    }
    stage.pass(minute).await;
    stage
        .merge(ISTIO, &json!({"spec": {"version": "v1.29.1"}}))
        .await?;
    let began = stage.now();
    for wanted in 1..=2 {
        assert!(stage.until(minute, step, |stage| migrated(stage) == wanted).await);
        log.push(format!(
            "{wanted} after {}",
            stage.now().duration_since(began).as_millis()
        ));
    }
    let gone = |stage: &Stage| {
        stage
            .peek("deployments.apps", "istio-system", "istiod-default-v1-28-2")
            .is_none()
    };
    assert!(stage.until(minute, step, gone).await);
    operator.stop().await?;
    Ok(log)
}

#[test]
fn an_upgrade_moves_workloads_at_exact_moments_and_every_time_alike() {
    let run = || Stage::play(catalog(), &StageOptions::default(), upgrade).unwrap();
    let first = run();
    assert_eq!(first, run());
}

#[test]
fn a_stage_keeps_pace_with_the_wall_clock() {
    let options = StageOptions {
        pace: Pace::Times(100.0),
        ..StageOptions::default()
    };
    let begun = std::time::Instant::now();
    Stage::play(catalog(), &options, async |stage| {
        stage.pass(Duration::from_secs(30)).await;
        Ok::<(), StageError>(())
    })
    .unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn what_is_refused_is_told() {
    let told = Stage::play(catalog(), &StageOptions::default(), async |stage| {
        let strange = json!({"apiVersion": "v1", "kind": "Strange", "metadata": {"name": "x"}});
        let unknown = stage.create(&strange).await.unwrap_err();
        let refused = stage.create(&deployment("nowhere", "x")).await.unwrap_err();
        Ok::<_, StageError>([unknown.to_string(), refused.to_string()])
    })
    .unwrap();
    assert_eq!(told[0], "the embedded cluster does not serve v1 Strange");
    assert_eq!(
        told[1],
        "POST /apis/apps/v1/namespaces/nowhere/deployments: namespaces \"nowhere\" not found"
    );
}
