//! Checks that injected faults affect only the requests that their rules select, and that the same seed
//! produces the same trace.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::time::Duration;

use futures::{FutureExt, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use mainstay_sim::fault::{ClockSkew, Fault, Rule, Trigger};
use mainstay_sim::{Cluster, Options};
use serde_json::json;

const CLIENT: &str = "victim";

fn cluster_with(trigger: Trigger, fault: Fault) -> (Cluster, Api<ConfigMap>) {
    let cluster = Cluster::default();
    cluster.add_fault(Rule::once(CLIENT, trigger, fault));
    let api = Api::default_namespaced(Client::new(cluster.connect(CLIENT), "default"));
    (cluster, api)
}

/// Returns a client without faults.
fn plain_client(cluster: &Cluster) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(cluster.connect("plain"), "default"))
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// Injects `fault` into a create and checks the result of the client and whether the object was created.
async fn check_create(fault: Fault, message: &str, is_created: bool) {
    let (cluster, api) = cluster_with(Trigger::Write(0), fault);
    let result = api.create(&PostParams::default(), &config_map("a")).await;
    let text = result.map_or_else(
        |error| error.to_string(),
        |created| format!("created {}", created.name_any()),
    );
    assert!(text.contains(message), "{text}");
    assert_eq!(
        plain_client(&cluster).get_opt("a").await.unwrap().is_some(),
        is_created,
        "{message}"
    );
}

#[tokio::test]
async fn write_faults_affect_the_response_and_the_stored_object() {
    check_create(Fault::LoseRequest, "connection reset", false).await;
    check_create(Fault::LoseResponse, "connection reset", true).await;
    check_create(Fault::CrashBefore, "has crashed", false).await;
    check_create(Fault::CrashAfter, "has crashed", true).await;
    check_create(Fault::conflict(), "modified", false).await;
    check_create(Fault::throttled(3), "Too many requests", false).await;
    check_create(Fault::internal(), "Internal error", false).await;
    check_create(Fault::unavailable(), "not ready", false).await;
    check_create(Fault::timeout(), "Timeout", false).await;
}

#[tokio::test]
async fn a_crashed_client_fails_until_it_is_restarted() {
    let (cluster, api) = cluster_with(Trigger::Write(0), Fault::CrashAfter);
    assert!(
        api.create(&PostParams::default(), &config_map("a"))
            .await
            .is_err()
    );
    assert!(api.get("a").await.is_err());
    cluster.with(|state| state.faults.restart_client(CLIENT));
    assert_eq!(api.get("a").await.unwrap().name_any(), "a");
}

#[tokio::test]
async fn a_lagging_replica_returns_old_state() {
    let (cluster, api) = cluster_with(Trigger::Request(0), Fault::Stale(2));
    let other = plain_client(&cluster);
    for name in ["a", "b", "c"] {
        other
            .create(&PostParams::default(), &config_map(name))
            .await
            .unwrap();
    }
    let names = |list: kube::core::ObjectList<ConfigMap>| {
        list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    assert_eq!(names(api.list(&ListParams::default()).await.unwrap()), ["a"]);
    assert_eq!(
        names(api.list(&ListParams::default()).await.unwrap()),
        ["a", "b", "c"]
    );
}

/// Injects `fault` into a watch and checks the events of three creates that the client receives.
async fn check_watch(fault: Fault, expected: &[&str]) {
    let (cluster, api) = cluster_with(Trigger::Watch(0), fault);
    let version = cluster.with(|state| state.store.version()).to_string();
    let mut events = Box::pin(
        api.watch(&WatchParams::default().timeout(10), &version)
            .await
            .unwrap(),
    );
    let other = plain_client(&cluster);
    for name in ["a", "b", "c"] {
        other
            .create(&PostParams::default(), &config_map(name))
            .await
            .unwrap();
    }
    cluster.advance(Duration::from_secs(11));
    let mut seen = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        seen.push(match event {
            WatchEvent::Added(map) => map.name_any(),
            WatchEvent::Error(status) => format!("{} {}", status.code, status.reason),
            WatchEvent::Bookmark(_) => continue,
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn watch_faults_end_the_watch_or_change_its_events() {
    check_watch(Fault::DropWatch(1), &["a"]).await;
    check_watch(Fault::ExpireWatch(2), &["a", "b", "410 Expired"]).await;
    check_watch(Fault::SkipEvent(1), &["a", "c"]).await;
    check_watch(Fault::RepeatEvent(0), &["a", "a", "b", "c"]).await;
}

#[tokio::test]
async fn watches_time_out_on_the_cluster_clock() {
    let cluster = Cluster::default();
    let api = plain_client(&cluster);
    let version = cluster.with(|state| state.store.version()).to_string();
    let mut events = Box::pin(
        api.watch(&WatchParams::default().timeout(60), &version)
            .await
            .unwrap(),
    );
    cluster.advance(Duration::from_secs(59));
    assert!(events.next().now_or_never().is_none());
    cluster.advance(Duration::from_secs(1));
    // A watch with bookmarks ends with a bookmark.
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Bookmark(_)))));
    assert!(events.next().await.is_none());
}

#[test]
fn a_skewed_client_clock_is_ahead_by_the_offset() {
    let cluster = Cluster::default();
    let start = cluster.now();
    cluster.with(|state| {
        state.faults.set_skew(
            CLIENT,
            ClockSkew {
                offset: 3_600_000_000,
                rate: 1000,
                since: start,
            },
        );
    });
    cluster.advance(Duration::from_secs(10));
    let seen = cluster.with(|state| state.faults.client_time(CLIENT, state.now()));
    assert_eq!(seen, start.plus_seconds(3_610));
}

/// Runs a client with random names, patches and faults. Returns the trace.
async fn random_run(seed: u64) -> String {
    let cluster = Cluster::new(Options {
        seed,
        ..Options::default()
    });
    let api = Api::<ConfigMap>::default_namespaced(Client::new(cluster.connect(CLIENT), "default"));
    cluster.add_fault(Rule::once(CLIENT, Trigger::Write(seed % 7), Fault::LoseResponse));
    cluster.add_fault(Rule::once(
        CLIENT,
        Trigger::Write(seed % 5 + 3),
        Fault::internal(),
    ));
    let mut names = Vec::new();
    for number in 0..10u64 {
        let generated: ConfigMap =
            serde_json::from_value(json!({"metadata": {"generateName": "m-"}})).unwrap();
        if let Ok(created) = api.create(&PostParams::default(), &generated).await {
            names.push(created.name_any());
        }
        let at = cluster.with(|state| state.random.below(names.len().max(1) as u64));
        if let Some(name) = names.get(usize::try_from(at).unwrap()) {
            let patch = json!({"data": {"n": number.to_string()}});
            let _ = api
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await;
        }
        cluster.advance(Duration::from_millis(seed + number));
    }
    cluster.trace()
}

#[tokio::test]
async fn the_same_seed_produces_the_same_trace_a_hundred_times() {
    let mut traces = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let (first, second) = (random_run(seed).await, random_run(seed).await);
        assert_eq!(first, second, "seed {seed}");
        traces.insert(first);
    }
    assert_eq!(traces.len(), 100, "different seeds differ");
}
