//! The whole loop on the simulator: an Istio becomes a healthy control plane, and then there is nothing left to do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests"
)]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstay_operator::{Observer, Options, Outcome, Report};
use serde_json::json;

use stage::{Stage, istio};

async fn until_healthy(stage: &Stage) {
    stage
        .until(60, "healthy", |stage| {
            stage.state("istios", "default") == "Healthy"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_istio_becomes_a_healthy_control_plane_and_then_there_is_nothing_to_do() {
    let stage = Stage::new().await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let operator = stage.start("mainstay");
    until_healthy(&stage).await;

    assert!(
        stage
            .exists("/apis/apps/v1/namespaces/istio-system/deployments/istiod")
            .await
    );
    assert!(
        stage
            .exists("/apis/sailoperator.io/v1/istiorevisions/default")
            .await
    );
    assert!(
        stage
            .exists("/api/v1/namespaces/istio-system/configmaps/istio")
            .await
    );

    stage.pass(30).await;
    let before = stage.calls("mainstay");
    stage.pass(3600).await;
    let after = stage.calls("mainstay");
    assert_eq!(
        after.writes,
        before.writes,
        "an hour at rest:\n{}",
        stage.writes_since(before.writes)
    );
    assert_eq!(
        after.requests - after.watches,
        before.requests - before.watches,
        "nothing is read at rest"
    );
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_nothing_to_do_writes_nothing_and_reads_nothing() {
    let stage = Stage::new().await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let operator = stage.start("first");
    until_healthy(&stage).await;
    stage.pass(30).await;
    operator.stop().await;

    let operator = stage.start("second");
    stage.pass(60).await;
    let calls = stage.calls("second");
    assert_eq!(calls.writes, 0, "{}", stage.trace_of("second"));
    assert_eq!(
        calls.requests,
        calls.watches,
        "nothing is read beside watches:\n{}",
        stage.trace_of("second")
    );
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_istio_leaves_nothing_behind() {
    let stage = Stage::new().await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let operator = stage.start("mainstay");
    until_healthy(&stage).await;
    stage.delete("/apis/sailoperator.io/v1/istios/default").await;
    stage.pass(60).await;
    for gone in [
        "/apis/sailoperator.io/v1/istios/default",
        "/apis/sailoperator.io/v1/istiorevisions/default",
        "/apis/apps/v1/namespaces/istio-system/deployments/istiod",
        "/api/v1/namespaces/istio-system/configmaps/istio",
    ] {
        assert!(
            !stage.exists(gone).await,
            "{gone} is still there\n{}",
            stage.trace_of("mainstay")
        );
    }
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_is_put_right_and_what_somebody_deletes_comes_back() {
    let stage = Stage::new().await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let operator = stage.start("mainstay");
    until_healthy(&stage).await;
    stage.pass(5).await;

    let config = "/api/v1/namespaces/istio-system/configmaps/istio";
    let right = stage.get(config).await.unwrap()["data"].clone();
    stage.merge(config, &json!({"data": {"mesh": "nonsense"}})).await;
    stage.pass(5).await;
    assert_eq!(stage.get(config).await.unwrap()["data"], right);

    stage.delete(config).await;
    stage.pass(5).await;
    assert_eq!(stage.get(config).await.unwrap()["data"], right);
    operator.stop().await;
}

/// Panics in the middle of a step, once, and counts what the loop makes of it.
#[derive(Default)]
struct Clumsy {
    statuses: AtomicUsize,
    caught: AtomicUsize,
}

impl Observer for Clumsy {
    fn report(&self, report: &Report<'_>) {
        match report {
            Report::Written { action: "status", .. } => {
                assert_ne!(self.statuses.fetch_add(1, Ordering::Relaxed), 0, "on purpose");
            }
            Report::Reconciled {
                outcome: Outcome::Panicked,
                ..
            } => {
                self.caught.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_step_is_caught_counted_and_made_up_for() {
    let stage = Stage::new().await;
    let clumsy = Arc::new(Clumsy::default());
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let options = Options {
        leader_elect: false,
        observer: clumsy.clone(),
        ..Options::default()
    };
    let operator = stage.start_with("mainstay", options);
    until_healthy(&stage).await;
    assert_eq!(clumsy.caught.load(Ordering::Relaxed), 1);
    operator.stop().await;
}
