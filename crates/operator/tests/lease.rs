//! Several operators at one cluster: one of them works, and another takes over when it is gone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests"
)]

mod stage;

use mainstay_operator::{OperatorError, Options};
use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::json;

use stage::{Stage, istio};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/sail-operator/leases/sail-operator-lock";

async fn holder(stage: &Stage) -> String {
    let lease = stage.get(LEASE).await.unwrap_or_default();
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_one_works_and_the_other_takes_over_at_once_when_it_stops() {
    let stage = Stage::new().await;
    let first = stage.start_with("first", Options::default());
    stage.pass(5).await;
    let second = stage.start_with("second", Options::default());
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    stage
        .until(60, "healthy", |stage| {
            stage.state("istios", "default") == "Healthy"
        })
        .await;
    assert_eq!(holder(&stage).await, "first");
    assert_eq!(stage.calls("second").writes, 0);
    first.stop().await;
    assert_eq!(holder(&stage).await, "");
    stage.pass(5).await;
    assert_eq!(holder(&stage).await, "second");
    assert_eq!(stage.get(LEASE).await.unwrap()["spec"]["leaseTransitions"], 1);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_other_takes_over_when_the_lease_has_run_out() {
    let stage = Stage::new().await;
    let first = stage.start_with("first", Options::default());
    stage.pass(5).await;
    let second = stage.start_with("second", Options::default());
    stage.pass(5).await;
    first.kill();
    stage.pass(10).await;
    assert_eq!(holder(&stage).await, "first", "not before its time");
    stage.pass(10).await;
    assert_eq!(holder(&stage).await, "second");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_renew_the_lease_gives_up() {
    let stage = Stage::new().await;
    let operator = stage.start_with("first", Options::default());
    stage.pass(5).await;
    stage.cluster.add_fault(Rule {
        client: Some("first".into()),
        trigger: Trigger::Matching("leases/".into()),
        times: 1000,
        fault: Fault::internal(),
    });
    let begun = tokio::time::Instant::now();
    let error = operator.failure().await;
    assert!(matches!(error, OperatorError::LeaseLost));
    assert_eq!(begun.elapsed().as_secs(), 9, "before others may take it");
}

#[tokio::test(start_paused = true)]
async fn whoever_sees_another_holder_gives_up_at_once() {
    let stage = Stage::new().await;
    let operator = stage.start_with("first", Options::default());
    stage.pass(5).await;
    stage
        .merge(LEASE, &json!({"spec": {"holderIdentity": "somebody"}}))
        .await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let error = operator.failure().await;
    assert!(matches!(error, OperatorError::LeaseLost));
    assert_eq!(holder(&stage).await, "somebody");
}
