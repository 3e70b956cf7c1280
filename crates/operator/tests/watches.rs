//! Watches that break, miss something or are not to be had: the operator finds out in time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests"
)]

mod stage;

use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_sim::status::Status;
use serde_json::json;

use stage::{Stage, istio};

const ISTIOS: &str = "GET /apis/sailoperator.io/v1/istios";

fn on(path: &str, times: u64, fault: Fault) -> Rule {
    Rule {
        client: Some("mainstay".into()),
        trigger: Trigger::Matching(path.into()),
        times,
        fault,
    }
}

fn is_healthy(stage: &Stage) -> bool {
    stage.state("istios", "default") == "Healthy"
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_asked_for_pages() {
    let stage = Stage::new().await;
    for watch in 0..27 {
        let refusal = Fault::Reject(Status::new(
            422,
            "Invalid",
            "sendInitialEvents is forbidden for watch",
        ));
        stage
            .cluster
            .add_fault(Rule::once("mainstay", Trigger::Watch(watch), refusal));
    }
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    let operator = stage.start("mainstay");
    stage.until(60, "healthy", is_healthy).await;
    let counts = stage.calls("mainstay");
    assert!(
        counts.requests - counts.watches - counts.writes >= 27,
        "{counts:?}"
    );
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_missed_event_is_made_up_for_by_the_next_list() {
    let stage = Stage::new().await;
    // Event 0 is the mark that ends the list.
    stage.cluster.add_fault(on(ISTIOS, 1, Fault::SkipEvent(1)));
    let operator = stage.start("mainstay");
    stage.pass(5).await;
    stage
        .create(&istio("default", json!({"version": "v1.29.1"})))
        .await;
    stage.pass(30).await;
    assert_eq!(stage.state("istios", "default"), "", "nobody knows of it");
    stage.until(500, "healthy", is_healthy).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_or_expire_after_every_event_change_nothing_in_the_end() {
    for fault in [
        Fault::DropWatch(1),
        Fault::ExpireWatch(1),
        Fault::DropWatch(3),
        Fault::RepeatEvent(1),
    ] {
        let stage = Stage::new().await;
        stage
            .cluster
            .add_fault(on("GET /apis/sailoperator.io", 12, fault.clone()));
        stage.cluster.add_fault(on("GET /apis/apps", 6, fault.clone()));
        stage
            .create(&istio("default", json!({"version": "v1.29.1"})))
            .await;
        let operator = stage.start("mainstay");
        // What cannot be listed for long is told meanwhile.
        stage.pass(1200).await;
        assert!(is_healthy(&stage), "{fault:?}");
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_not_pruned_when_the_event_of_its_last_referrer_was_missed() {
    let stage = Stage::new().await;
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 30, "revisionTags": []});
    let spec = |version: &str| json!({"version": version, "updateStrategy": strategy});
    stage.create(&istio("default", spec("v1.28.2"))).await;
    // The list and the mark that ends it come first.
    let namespaces = stage.get("/api/v1/namespaces").await.unwrap();
    let listed = namespaces["items"].as_array().unwrap().len();
    let missed = Fault::SkipEvent(listed as u64 + 1);
    stage.cluster.add_fault(on("GET /api/v1/namespaces", 1, missed));
    let operator = stage.start("mainstay");
    stage.until(60, "healthy", is_healthy).await;
    let labels = json!({"istio.io/rev": "default-v1-28-2"});
    stage
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unseen", "labels": labels}}))
        .await;
    let upgrade = json!({"spec": {"version": "v1.29.1"}});
    stage
        .merge("/apis/sailoperator.io/v1/istios/default", &upgrade)
        .await;
    stage.pass(100).await;
    assert_eq!(stage.state("istiorevisions", "default-v1-29-1"), "Healthy");
    assert_eq!(
        stage.state("istiorevisions", "default-v1-28-2"),
        "Healthy",
        "it is still referred to"
    );
    operator.stop().await;
}
