//! Tests of Deployments: rollouts of every strategy, scaling, pauses, history, and failing pods.

use mainstay_sim::script::Script;
use mainstay_sim::{Cluster, tree};
use serde_json::{Value, json};

use crate::steps::{DEPLOYMENTS, change_object, cluster, delete, deploy, get, seconds, set_image};
use crate::transcript::{check, transcript};

const ROLLOUT: [&str; 2] = ["deployments.apps", "replicasets.apps"];

#[test]
fn a_rolling_update_replaces_pods_gradually() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 4}));
    cluster.advance(seconds(10));
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    check("rolling", &transcript(&cluster, &ROLLOUT));
}

#[test]
fn a_recreate_rollout_deletes_old_pods_first() {
    let cluster = cluster(1);
    deploy(
        &cluster,
        &json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
    );
    cluster.advance(seconds(10));
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    check("recreate", &transcript(&cluster, &ROLLOUT));
}

#[test]
fn a_rollout_that_never_becomes_ready_exceeds_its_deadline() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 3, "progressDeadlineSeconds": 60}));
    cluster.advance(seconds(10));
    cluster.with(|state| {
        state
            .scripts
            .add_workload("default", "web", Script::never_ready());
    });
    set_image(&cluster, "v2");
    cluster.advance(seconds(300));
    check("deadline", &transcript(&cluster, &["deployments.apps"]));
    let web = get(&cluster, "deployments.apps", "web");
    let progressing = web["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["type"] == "Progressing")
        .unwrap()
        .clone();
    assert_eq!(progressing["reason"], "ProgressDeadlineExceeded");
    let message = progressing["message"].as_str().unwrap();
    assert!(message.starts_with("ReplicaSet \"web-") && message.ends_with("has timed out progressing."));
}

#[test]
fn min_ready_seconds_delay_availability() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 1, "minReadySeconds": 20}));
    cluster.advance(seconds(5));
    let available =
        |cluster: &Cluster| get(cluster, "deployments.apps", "web")["status"]["availableReplicas"].clone();
    assert_eq!(available(&cluster), Value::Null);
    cluster.advance(seconds(15));
    assert_eq!(available(&cluster), Value::Null);
    cluster.advance(seconds(1));
    assert_eq!(available(&cluster), 1);
}

#[test]
fn scaling_during_a_rollout_is_proportional() {
    let cluster = cluster(1);
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    deploy(&cluster, &json!({"replicas": 10, "strategy": strategy}));
    cluster.advance(seconds(10));
    cluster.with(|state| {
        state
            .scripts
            .add_workload("default", "web", Script::never_ready());
    });
    set_image(&cluster, "v2");
    cluster.advance(seconds(10));
    change_object(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "replicas"], 15);
    });
    cluster.advance(seconds(10));
    check("proportional", &transcript(&cluster, &["replicasets.apps"]));
    let sizes: Vec<i64> = cluster.with(|state| {
        let mut sizes: Vec<i64> = state
            .store
            .all("replicasets.apps")
            .map(|set| tree::int(&set.value(), &["spec", "replicas"]).unwrap())
            .collect();
        sizes.sort_unstable();
        sizes
    });
    // The example of the Kubernetes documentation: 8 and 5 replicas become 11 and 7.
    assert_eq!(sizes, [7, 11]);
}

#[test]
fn a_paused_rollout_continues_after_it_is_resumed() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 2}));
    cluster.advance(seconds(10));
    change_object(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "paused"], true);
    });
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    assert_eq!(cluster.with(|state| state.store.count("replicasets.apps")), 1);
    change_object(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "paused"], false);
    });
    cluster.advance(seconds(30));
    check("paused", &transcript(&cluster, &["deployments.apps"]));
}

#[test]
fn history_is_limited_and_a_rollback_is_a_new_revision() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 1, "revisionHistoryLimit": 2}));
    for version in 2..7 {
        cluster.advance(seconds(10));
        set_image(&cluster, &format!("v{version}"));
    }
    cluster.advance(seconds(10));
    let revisions = |cluster: &Cluster| {
        cluster.with(|state| {
            let mut all: Vec<(i64, String)> = state
                .store
                .all("replicasets.apps")
                .map(|set| {
                    let set = set.value();
                    let note = |name: &str| tree::text(&set, &["metadata", "annotations", name]).to_owned();
                    (
                        note("deployment.kubernetes.io/revision").parse().unwrap(),
                        note("deployment.kubernetes.io/revision-history"),
                    )
                })
                .collect();
            all.sort();
            all
        })
    };
    assert_eq!(
        revisions(&cluster),
        [(4, String::new()), (5, String::new()), (6, String::new())]
    );
    set_image(&cluster, "v4");
    cluster.advance(seconds(10));
    assert_eq!(
        revisions(&cluster),
        [(5, String::new()), (6, String::new()), (7, "4".to_owned())]
    );
}

#[test]
fn pods_follow_their_scripts_and_are_deleted() {
    for (name, script) in [
        ("crash-loop", Script::crash_loop(seconds(2))),
        ("image", Script::image_pull_error()),
        ("slow", Script::slow_start(seconds(7))),
        ("fails", Script::fails_after(seconds(5))),
    ] {
        let cluster = cluster(1);
        cluster.with(|state| state.scripts.set_default(script));
        deploy(&cluster, &json!({"replicas": 1}));
        cluster.advance(seconds(60));
        delete(&cluster, DEPLOYMENTS, "web");
        cluster.advance(seconds(60));
        check(name, &transcript(&cluster, &["pods"]));
        assert_eq!(cluster.with(|state| state.store.count("pods")), 0, "{name}");
    }
}
