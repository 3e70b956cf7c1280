//! Tests the complete operator on the simulator: installation, idle time, restart, deletion, drift, and a
//! panic.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "test code; each program uses a part of the helpers"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{
    ISTIO, create_istio, exists, last_writes, new_cluster, requests, sleep, start, start_with, trace_of,
    wait_until_healthy,
};
use mainstay_operator::{Observer, Options, Outcome, Report};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_control_plane_becomes_healthy_and_the_operator_idle() {
    let cluster = new_cluster().await;
    create_istio(&cluster).await;
    let operator = start(&cluster, "mainstay");
    wait_until_healthy(&cluster, 60).await;

    assert!(
        exists(
            &cluster,
            "/apis/apps/v1/namespaces/istio-system/deployments/istiod"
        )
        .await
    );
    assert!(exists(&cluster, "/apis/sailoperator.io/v1/istiorevisions/default").await);
    assert!(exists(&cluster, "/api/v1/namespaces/istio-system/configmaps/istio").await);

    sleep(&cluster, 30).await;
    let before = requests(&cluster, "mainstay");
    sleep(&cluster, 3600).await;
    let after = requests(&cluster, "mainstay");
    assert_eq!(
        after.writes,
        before.writes,
        "calls in an idle hour:\n{}",
        last_writes(&cluster)
    );
    assert_eq!(
        after.requests - after.watches,
        before.requests - before.watches,
        "nothing is read while idle"
    );
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_changes_reads_and_writes_nothing() {
    let cluster = new_cluster().await;
    create_istio(&cluster).await;
    let operator = start(&cluster, "first");
    wait_until_healthy(&cluster, 60).await;
    sleep(&cluster, 30).await;
    operator.stop().await.unwrap();

    let operator = start(&cluster, "second");
    sleep(&cluster, 60).await;
    let calls = requests(&cluster, "second");
    assert_eq!(calls.writes, 0, "{}", trace_of(&cluster, "second"));
    assert_eq!(
        calls.requests,
        calls.watches,
        "no reads except watches:\n{}",
        trace_of(&cluster, "second")
    );
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_istio_leaves_no_objects() {
    let cluster = new_cluster().await;
    create_istio(&cluster).await;
    let operator = start(&cluster, "mainstay");
    wait_until_healthy(&cluster, 60).await;
    cluster.delete(ISTIO).await.unwrap();
    sleep(&cluster, 60).await;
    for path in [
        ISTIO,
        "/apis/sailoperator.io/v1/istiorevisions/default",
        "/apis/apps/v1/namespaces/istio-system/deployments/istiod",
        "/api/v1/namespaces/istio-system/configmaps/istio",
    ] {
        assert!(
            !exists(&cluster, path).await,
            "{path} still exists\n{}",
            trace_of(&cluster, "mainstay")
        );
    }
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn changed_objects_are_reverted_and_deleted_objects_are_recreated() {
    let cluster = new_cluster().await;
    create_istio(&cluster).await;
    let operator = start(&cluster, "mainstay");
    wait_until_healthy(&cluster, 60).await;
    sleep(&cluster, 5).await;

    let config = "/api/v1/namespaces/istio-system/configmaps/istio";
    let expected = cluster.get(config).await.unwrap().unwrap()["data"].clone();
    cluster
        .merge_patch(config, &json!({"data": {"mesh": "invalid"}}))
        .await
        .unwrap();
    sleep(&cluster, 5).await;
    assert_eq!(cluster.get(config).await.unwrap().unwrap()["data"], expected);

    cluster.delete(config).await.unwrap();
    sleep(&cluster, 5).await;
    assert_eq!(cluster.get(config).await.unwrap().unwrap()["data"], expected);
    operator.stop().await.unwrap();
}

/// An observer that panics once during a step, and counts the panics that the loop reports.
#[derive(Default)]
struct PanickingObserver {
    statuses: AtomicUsize,
    caught: AtomicUsize,
}

impl Observer for PanickingObserver {
    fn report(&self, report: &Report<'_>) {
        match report {
            Report::Written { action: "status", .. } => {
                assert_ne!(
                    self.statuses.fetch_add(1, Ordering::Relaxed),
                    0,
                    "intentional panic"
                );
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
async fn a_panic_in_a_step_is_caught_and_counted_and_the_step_is_repeated() {
    let cluster = new_cluster().await;
    let observer = Arc::new(PanickingObserver::default());
    create_istio(&cluster).await;
    let options = Options {
        leader_elect: false,
        observer: observer.clone(),
        ..Options::default()
    };
    let operator = start_with(&cluster, "mainstay", options);
    wait_until_healthy(&cluster, 60).await;
    assert_eq!(observer.caught.load(Ordering::Relaxed), 1);
    operator.stop().await.unwrap();
}
