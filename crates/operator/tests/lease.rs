//! Tests leader election: one of several operators is the leader, and another one takes over when it stops
//! or crashes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "test code; each program uses a part of the helpers"
)]

mod common;

use common::{create_istio, failure, new_cluster, requests, sleep, start_with, wait_until_healthy};
use mainstay_harness::SimulatedCluster;
use mainstay_operator::{OperatorError, Options};
use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::json;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/sail-operator/leases/sail-operator-lock";

async fn holder(cluster: &SimulatedCluster) -> String {
    let lease = cluster.get(LEASE).await.unwrap().unwrap_or_default();
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_second_operator_takes_over_at_once_when_the_first_stops() {
    let cluster = new_cluster().await;
    let first = start_with(&cluster, "first", Options::default());
    sleep(&cluster, 5).await;
    let second = start_with(&cluster, "second", Options::default());
    create_istio(&cluster).await;
    wait_until_healthy(&cluster, 60).await;
    assert_eq!(holder(&cluster).await, "first");
    assert_eq!(requests(&cluster, "second").writes, 0);
    first.stop().await.unwrap();
    assert_eq!(holder(&cluster).await, "");
    sleep(&cluster, 5).await;
    assert_eq!(holder(&cluster).await, "second");
    assert_eq!(
        cluster.get(LEASE).await.unwrap().unwrap()["spec"]["leaseTransitions"],
        1
    );
    second.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_second_operator_takes_over_when_the_lease_expires() {
    let cluster = new_cluster().await;
    let first = start_with(&cluster, "first", Options::default());
    sleep(&cluster, 5).await;
    let second = start_with(&cluster, "second", Options::default());
    sleep(&cluster, 5).await;
    first.kill();
    sleep(&cluster, 10).await;
    assert_eq!(holder(&cluster).await, "first", "the Lease has not expired yet");
    sleep(&cluster, 10).await;
    assert_eq!(holder(&cluster).await, "second");
    second.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_cannot_renew_the_lease_stops() {
    let cluster = new_cluster().await;
    let operator = start_with(&cluster, "first", Options::default());
    sleep(&cluster, 5).await;
    cluster.sim().add_fault(Rule {
        client: Some("first".into()),
        trigger: Trigger::Matching("leases/".into()),
        times: 1000,
        fault: Fault::internal(),
    });
    let start_time = tokio::time::Instant::now();
    let error = failure(operator).await;
    assert!(matches!(error, OperatorError::LeaseLost));
    assert_eq!(
        start_time.elapsed().as_secs(),
        9,
        "the operator stops before another one can acquire the Lease"
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_sees_another_holder_stops_at_once() {
    let cluster = new_cluster().await;
    let operator = start_with(&cluster, "first", Options::default());
    sleep(&cluster, 5).await;
    cluster
        .merge_patch(LEASE, &json!({"spec": {"holderIdentity": "another"}}))
        .await
        .unwrap();
    create_istio(&cluster).await;
    let error = failure(operator).await;
    assert!(matches!(error, OperatorError::LeaseLost));
    assert_eq!(holder(&cluster).await, "another");
}
