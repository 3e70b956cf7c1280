//! Tests of `StatefulSets`, `DaemonSets` and Jobs.

use mainstay_sim::script::Script;
use mainstay_sim::{Cluster, tree};
use serde_json::{Value, json};

use crate::steps::{change_object, cluster, delete, get, seconds, template};
use crate::transcript::{check, controller_trace};

const STATEFUL: (&str, &str) = ("apps", "statefulsets");

fn stateful(cluster: &Cluster, spec: &Value) {
    change_object(cluster, STATEFUL, "web", &|value| {
        tree::set(value, &["spec", "selector", "matchLabels", "app"], "web");
        tree::set(value, &["spec", "serviceName"], "web");
        if tree::get(value, &["spec", "template"]).is_none() {
            tree::set(value, &["spec", "template"], template("v1"));
        }
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

#[test]
fn stateful_sets_update_in_order() {
    let cluster = cluster(1);
    stateful(&cluster, &json!({"replicas": 3}));
    cluster.advance(seconds(20));
    stateful(&cluster, &json!({"template": template("v2")}));
    cluster.advance(seconds(30));
    stateful(&cluster, &json!({"replicas": 1}));
    cluster.advance(seconds(30));
    check("stateful", &controller_trace(&cluster, "statefulset-controller"));
    let status = get(&cluster, "statefulsets.apps", "web")["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["currentReplicas"], 1);
    assert_eq!(status["replicas"], 1);
}

#[test]
fn a_partition_and_on_delete_keep_old_pods() {
    let cluster = cluster(1);
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    stateful(
        &cluster,
        &json!({"replicas": 3, "updateStrategy": partition, "podManagementPolicy": "Parallel"}),
    );
    cluster.advance(seconds(20));
    stateful(&cluster, &json!({"template": template("v2")}));
    cluster.advance(seconds(30));
    let image = |name: &str| get(&cluster, "pods", name)["spec"]["containers"][0]["image"].clone();
    assert_eq!(
        [image("web-0"), image("web-1"), image("web-2")],
        ["v1", "v1", "v2"]
    );
    delete(&cluster, ("", "pods"), "web-0");
    cluster.advance(seconds(10));
    assert_eq!(image("web-0"), "v1");
    stateful(&cluster, &json!({"updateStrategy": {"type": "OnDelete"}}));
    cluster.advance(seconds(10));
    assert_eq!(image("web-1"), "v1");
    delete(&cluster, ("", "pods"), "web-1");
    cluster.advance(seconds(10));
    assert_eq!(image("web-1"), "v2");
    check("partition", &controller_trace(&cluster, "statefulset-controller"));
}

const DAEMONS: (&str, &str) = ("apps", "daemonsets");

fn daemon(cluster: &Cluster, spec: &Value) {
    change_object(cluster, DAEMONS, "agent", &|value| {
        tree::set(value, &["spec", "selector", "matchLabels", "app"], "web");
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

#[test]
fn a_daemon_set_has_one_pod_per_node_and_rolls_within_its_bounds() {
    for (name, bounds) in [
        ("daemon-unavailable", json!({"maxUnavailable": 1, "maxSurge": 0})),
        ("daemon-surge", json!({"maxUnavailable": 0, "maxSurge": 1})),
    ] {
        let cluster = cluster(1);
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": bounds});
        daemon(
            &cluster,
            &json!({"template": template("v1"), "updateStrategy": strategy}),
        );
        cluster.advance(seconds(10));
        daemon(&cluster, &json!({"template": template("v2")}));
        cluster.advance(seconds(30));
        check(name, &controller_trace(&cluster, "daemonset-controller"));
        let status = get(&cluster, "daemonsets.apps", "agent")["status"].clone();
        for field in [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ] {
            assert_eq!(status[field], 3, "{name} {field}");
        }
        cluster.with(|state| mainstay_sim::controllers::create_nodes(state, 5));
        cluster.settle();
        cluster.advance(seconds(5));
        assert_eq!(
            get(&cluster, "daemonsets.apps", "agent")["status"]["numberReady"],
            5
        );
    }
}

const JOBS: (&str, &str) = ("batch", "jobs");

fn job(cluster: &Cluster, spec: &Value) {
    change_object(cluster, JOBS, "work", &|value| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "v1"}]});
        tree::set(value, &["spec", "template", "spec"], pod);
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

#[test]
fn jobs_complete_after_enough_successes() {
    let cluster = cluster(1);
    cluster.with(|state| state.scripts.set_default(Script::completes_after(seconds(10))));
    job(
        &cluster,
        &json!({"completions": 5, "parallelism": 2, "completionMode": "Indexed"}),
    );
    cluster.advance(seconds(15));
    let status = get(&cluster, "jobs.batch", "work")["status"].clone();
    assert_eq!((&status["active"], &status["succeeded"]), (&json!(2), &json!(2)));
    cluster.advance(seconds(60));
    let status = get(&cluster, "jobs.batch", "work")["status"].clone();
    assert_eq!(status["succeeded"], 5);
    assert_eq!(status["completedIndexes"], "0-4");
    let kinds: Vec<&str> = tree::list(&status, &["conditions"])
        .iter()
        .map(|one| tree::text(one, &["type"]))
        .collect();
    assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(status["completionTime"], "2026-01-01T00:00:30Z");
}

#[test]
fn jobs_fail_after_too_many_failures() {
    let cluster = cluster(1);
    cluster.with(|state| state.scripts.set_default(Script::crash_loop(seconds(1))));
    job(&cluster, &json!({"backoffLimit": 2}));
    cluster.advance(seconds(300));
    let status = get(&cluster, "jobs.batch", "work")["status"].clone();
    assert_eq!(status["failed"], 3);
    let last = tree::list(&status, &["conditions"]).last().unwrap().clone();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&json!("Failed"), &json!("BackoffLimitExceeded"))
    );
    assert_eq!(last["message"], "Job has reached the specified backoff limit");
    check("job-fails", &controller_trace(&cluster, "job-controller"));
}
