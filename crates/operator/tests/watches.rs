//! Tests watches that end, miss events or are not supported. The operator recovers in time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "test code; each program uses a part of the helpers"
)]

mod common;

use common::{
    ISTIO, create_istio, is_healthy, istio, new_cluster, requests, sleep, start, state, wait_until_healthy,
};
use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_sim::status::Status;
use serde_json::json;

const ISTIOS: &str = "GET /apis/sailoperator.io/v1/istios";

fn fault_on_path(path: &str, times: u64, fault: Fault) -> Rule {
    Rule {
        client: Some("mainstay".into()),
        trigger: Trigger::Matching(path.into()),
        times,
        fault,
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_in_pages() {
    let cluster = new_cluster().await;
    for watch in 0..27 {
        let rejection = Fault::Reject(Status::new(
            422,
            "Invalid",
            "sendInitialEvents is forbidden for watch",
        ));
        cluster
            .sim()
            .add_fault(Rule::once("mainstay", Trigger::Watch(watch), rejection));
    }
    create_istio(&cluster).await;
    let operator = start(&cluster, "mainstay");
    wait_until_healthy(&cluster, 60).await;
    let counts = requests(&cluster, "mainstay");
    assert!(
        counts.requests - counts.watches - counts.writes >= 27,
        "{counts:?}"
    );
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missed_event_is_recovered_by_the_next_list() {
    let cluster = new_cluster().await;
    // Event 0 is the bookmark that ends the list; event 1 is the creation of the Istio.
    cluster
        .sim()
        .add_fault(fault_on_path(ISTIOS, 1, Fault::SkipEvent(1)));
    let operator = start(&cluster, "mainstay");
    sleep(&cluster, 5).await;
    create_istio(&cluster).await;
    sleep(&cluster, 30).await;
    assert_eq!(
        state(&cluster, "istios", "default"),
        "",
        "the operator has not observed the Istio"
    );
    wait_until_healthy(&cluster, 500).await;
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_or_expire_after_every_event_do_not_change_the_result() {
    for fault in [
        Fault::DropWatch(1),
        Fault::ExpireWatch(1),
        Fault::DropWatch(3),
        Fault::RepeatEvent(1),
    ] {
        let cluster = new_cluster().await;
        cluster
            .sim()
            .add_fault(fault_on_path("GET /apis/sailoperator.io", 12, fault.clone()));
        cluster
            .sim()
            .add_fault(fault_on_path("GET /apis/apps", 6, fault.clone()));
        create_istio(&cluster).await;
        let operator = start(&cluster, "mainstay");
        // The operator recovers within this time, even if a source was reported as failing.
        sleep(&cluster, 1200).await;
        assert!(is_healthy(&cluster), "{fault:?}");
        operator.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_not_pruned_when_the_event_of_its_last_referrer_was_missed() {
    let cluster = new_cluster().await;
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 30, "revisionTags": []});
    let spec = |version: &str| json!({"version": version, "updateStrategy": strategy});
    cluster.create(&istio(spec("v1.28.2"))).await.unwrap();
    // The first events are those of the list, followed by the bookmark that ends it.
    let namespaces = cluster.get("/api/v1/namespaces").await.unwrap().unwrap();
    let listed = namespaces["items"].as_array().unwrap().len();
    let missed = Fault::SkipEvent(listed as u64 + 1);
    cluster
        .sim()
        .add_fault(fault_on_path("GET /api/v1/namespaces", 1, missed));
    let operator = start(&cluster, "mainstay");
    wait_until_healthy(&cluster, 60).await;
    let labels = json!({"istio.io/rev": "default-v1-28-2"});
    cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unseen", "labels": labels}})).await.unwrap();
    let upgrade = json!({"spec": {"version": "v1.29.1"}});
    cluster.merge_patch(ISTIO, &upgrade).await.unwrap();
    sleep(&cluster, 100).await;
    assert_eq!(state(&cluster, "istiorevisions", "default-v1-29-1"), "Healthy");
    assert_eq!(
        state(&cluster, "istiorevisions", "default-v1-28-2"),
        "Healthy",
        "still in use"
    );
    operator.stop().await.unwrap();
}
