//! Scripted sessions of the workload controllers: what happened, in order, equals the stored transcript. `BLESS=1` stores what happens now.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::fmt::Write as _;
use std::time::Duration;

use mainstay_sim::api::{Call, Outcome, Query};
use mainstay_sim::auth::User;
use mainstay_sim::clock::Instant;
use mainstay_sim::context::Context;
use mainstay_sim::script::Script;
use mainstay_sim::store::{Event, EventKind};
use mainstay_sim::write::{self, DeleteOptions, Target};
use mainstay_sim::{Cluster, Options, Random, State, tree};
use serde_json::{Value, json};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn cluster(seed: u64) -> Cluster {
    let cluster = Cluster::new(Options {
        seed,
        ..Options::default()
    });
    cluster.run_workloads(3);
    cluster
}

fn act(cluster: &Cluster, api: (&str, &str), name: &str, change: &dyn Fn(&mut Value)) {
    cluster.with(|state| {
        let resource = state.resources.preferred(api.0, api.1).unwrap().clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name,
        };
        let mut context = Context::of_system("test");
        write::update(state, &target, &mut context, true, &mut |state, live, context| {
            let mut value = live
                .cloned()
                .unwrap_or_else(|| json!({"metadata": {"name": name}}));
            change(&mut value);
            write::decode(state, &resource, value, context)
        })
        .unwrap();
    });
    cluster.settle();
}

fn delete(cluster: &Cluster, api: (&str, &str), name: &str) {
    cluster.with(|state| {
        let resource = state.resources.preferred(api.0, api.1).unwrap().clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name,
        };
        write::delete(
            state,
            &target,
            &DeleteOptions::default(),
            &mut Context::of_system("test"),
        )
        .unwrap();
    });
    cluster.settle();
}

fn get(cluster: &Cluster, table: &str, name: &str) -> Value {
    cluster.with(|state| {
        let object = state.store.get(table, &format!("default/{name}"));
        object.map_or(Value::Null, |object| object.value())
    })
}

const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn deploy(cluster: &Cluster, spec: &Value) {
    act(cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "selector", "matchLabels", "app"], "web");
        tree::set(value, &["spec", "template"], template("v1"));
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

fn set_image(cluster: &Cluster, image: &str) {
    act(cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "template"], template(image));
    });
}

/// The story of a table's objects since the start: one line per write that shows.
fn story(cluster: &Cluster, tables: &[&str]) -> String {
    cluster.with(|state| {
        let mut events: Vec<(&str, &Event)> = Vec::new();
        for table in tables {
            if let Some(history) = state.store.history(table) {
                events.extend(history.after(0).unwrap().map(|event| (*table, event)));
            }
        }
        events.sort_by_key(|(_, event)| event.version);
        tell(state, &events)
    })
}

fn tell(state: &State, events: &[(&str, &Event)]) -> String {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    for (table, event) in events {
        let value = event.object.value();
        let line = match event.kind {
            EventKind::Deleted => "gone".to_owned(),
            _ => line(table, &value),
        };
        let before = event
            .previous
            .as_ref()
            .map(|previous| line_of(table, &previous.value()));
        if before.as_ref() == Some(&line) {
            continue;
        }
        let name = event.object.meta().name.to_string();
        let at = names.iter().position(|have| *have == name).unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        });
        let shown = if *table == "pods" || *table == "replicasets.apps" {
            format!("#{at}")
        } else {
            name
        };
        let _ = writeln!(text, "{} {shown}: {line}", table.split('.').next().unwrap());
    }
    let _ = state;
    text
}

fn line(table: &str, value: &Value) -> String {
    line_of(table, value)
}

fn line_of(table: &str, value: &Value) -> String {
    let number = |path: &[&str]| tree::int(value, path).unwrap_or(0);
    let status = |field: &str| number(&["status", field]);
    match table {
        "deployments.apps" => {
            let conditions: Vec<String> = tree::list(value, &["status", "conditions"])
                .iter()
                .map(|one| {
                    let text = |key| tree::text(one, &[key]);
                    format!("{}={}/{}", text("type"), text("status"), text("reason"))
                })
                .collect();
            format!(
                "gen {}/{} want {} have {} updated {} ready {} available {} unavailable {} revision {} [{}]",
                status("observedGeneration"),
                number(&["metadata", "generation"]),
                number(&["spec", "replicas"]),
                status("replicas"),
                status("updatedReplicas"),
                status("readyReplicas"),
                status("availableReplicas"),
                status("unavailableReplicas"),
                tree::text(
                    value,
                    &["metadata", "annotations", "deployment.kubernetes.io/revision"]
                ),
                conditions.join(" ")
            )
        }
        "replicasets.apps" => format!(
            "want {} have {} ready {} available {} terminating {} desired {} max {}",
            number(&["spec", "replicas"]),
            status("replicas"),
            status("readyReplicas"),
            status("availableReplicas"),
            status("terminatingReplicas"),
            tree::text(
                value,
                &[
                    "metadata",
                    "annotations",
                    "deployment.kubernetes.io/desired-replicas"
                ]
            ),
            tree::text(
                value,
                &["metadata", "annotations", "deployment.kubernetes.io/max-replicas"]
            ),
        ),
        "pods" => {
            let ready = tree::list(value, &["status", "conditions"])
                .iter()
                .any(|one| tree::text(one, &["type"]) == "Ready" && tree::text(one, &["status"]) == "True");
            let containers: Vec<String> = tree::list(value, &["status", "containerStatuses"])
                .iter()
                .map(|one| {
                    let (kind, state) = one["state"].as_object().unwrap().iter().next().unwrap();
                    format!(
                        "{kind} {} x{}",
                        tree::text(state, &["reason"]),
                        one["restartCount"]
                    )
                })
                .collect();
            format!(
                "{} {} on {:?} {}{}",
                tree::text(value, &["status", "phase"]),
                if ready { "ready" } else { "unready" },
                tree::text(value, &["spec", "nodeName"]),
                containers.join(","),
                if value["metadata"]["deletionTimestamp"].is_null() {
                    ""
                } else {
                    " deleting"
                },
            )
        }
        _ => value["status"].to_string(),
    }
}

fn check(name: &str, found: &str) {
    let path = format!("{}/tests/workloads/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, stored, "{name}");
}

const ROLLOUT: [&str; 2] = ["deployments.apps", "replicasets.apps"];

#[test]
fn a_rolling_update() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 4}));
    cluster.advance(seconds(10));
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    check("rolling", &story(&cluster, &ROLLOUT));
}

#[test]
fn a_rollout_that_recreates() {
    let cluster = cluster(1);
    deploy(
        &cluster,
        &json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
    );
    cluster.advance(seconds(10));
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    check("recreate", &story(&cluster, &ROLLOUT));
}

#[test]
fn a_rollout_that_never_gets_ready_misses_its_deadline() {
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
    check("deadline", &story(&cluster, &["deployments.apps"]));
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
fn scaling_in_the_middle_of_a_rollout_is_proportional() {
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
    act(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "replicas"], 15);
    });
    cluster.advance(seconds(10));
    check("proportional", &story(&cluster, &["replicasets.apps"]));
    let sizes: Vec<i64> = cluster.with(|state| {
        let mut sizes: Vec<i64> = state
            .store
            .all("replicasets.apps")
            .map(|set| tree::int(&set.value(), &["spec", "replicas"]).unwrap())
            .collect();
        sizes.sort_unstable();
        sizes
    });
    // The documentation's example: 8 and 5 become 11 and 7.
    assert_eq!(sizes, [7, 11]);
}

#[test]
fn paused_rollouts_wait_and_resumed_ones_go_on() {
    let cluster = cluster(1);
    deploy(&cluster, &json!({"replicas": 2}));
    cluster.advance(seconds(10));
    act(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "paused"], true);
    });
    set_image(&cluster, "v2");
    cluster.advance(seconds(30));
    assert_eq!(cluster.with(|state| state.store.count("replicasets.apps")), 1);
    act(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "paused"], false);
    });
    cluster.advance(seconds(30));
    check("paused", &story(&cluster, &["deployments.apps"]));
}

#[test]
fn history_is_cleaned_up_and_old_templates_come_back_as_new_revisions() {
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
fn scripts_of_failure() {
    for (name, script) in [
        ("crash-loop", Script::crash_loop(seconds(2))),
        ("image", Script::image_pull_error()),
        ("slow", Script::slow_start(seconds(7))),
        ("fails", Script::fails_after(seconds(5))),
    ] {
        let cluster = cluster(1);
        cluster.with(|state| state.scripts.set_usual(script));
        deploy(&cluster, &json!({"replicas": 1}));
        cluster.advance(seconds(60));
        delete(&cluster, DEPLOYMENTS, "web");
        cluster.advance(seconds(60));
        check(name, &story(&cluster, &["pods"]));
        assert_eq!(cluster.with(|state| state.store.count("pods")), 0, "{name}");
    }
}

/// Whatever the strategy: never too many pods wanted, never too few available, and the rollout ends.
#[test]
fn a_rolling_update_stays_within_its_bounds() {
    let mut random = Random::new(42);
    for round in 0..40 {
        let replicas = i64::try_from(random.below(12)).unwrap() + 1;
        let draw = |random: &mut Random| {
            let number = random.below(6);
            if random.below(2) == 0 {
                json!(number)
            } else {
                json!(format!("{}%", number * 20))
            }
        };
        let (surge, mut unavailable) = (draw(&mut random), draw(&mut random));
        if surge == 0 || surge == "0%" {
            unavailable = json!(1);
        }
        let cluster = cluster(round);
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let delay = random.below(5);
        cluster.with(|state| state.scripts.set_usual(Script::ready_after(seconds(delay))));
        deploy(
            &cluster,
            &json!({"replicas": replicas, "strategy": strategy, "minReadySeconds": random.below(3)}),
        );
        cluster.advance(seconds(30));
        let before = cluster.with(|state| state.store.version());
        set_image(&cluster, "v2");
        cluster.advance(seconds(400));
        let (most, least) = {
            let (surge, unavailable) =
                mainstay_sim::controllers::number::fenceposts(Some(&surge), Some(&unavailable), replicas);
            (replicas + surge, replicas - unavailable.min(replicas))
        };
        cluster.with(|state| bounds(state, before, (most, least), &strategy));
        let web = get(&cluster, "deployments.apps", "web");
        assert_eq!(web["status"]["updatedReplicas"], replicas, "{strategy}");
        assert_eq!(web["status"]["replicas"], replicas, "{strategy}");
    }
}

/// Follows every write of a pod or set after `start`.
fn bounds(state: &State, start: u64, (most, least): (i64, i64), strategy: &Value) {
    let mut sets = std::collections::BTreeMap::new();
    let mut pods = std::collections::BTreeMap::new();
    let mut events: Vec<(bool, &Event)> = Vec::new();
    for (is_set, table) in [(true, "replicasets.apps"), (false, "pods")] {
        let history = state.store.history(table).unwrap().after(0).unwrap();
        events.extend(history.map(|event| (is_set, event)));
    }
    events.sort_by_key(|(_, event)| event.version);
    for (is_set, event) in events {
        let (key, value) = (event.object.key(), event.object.value());
        let gone = event.kind == EventKind::Deleted;
        let alive = !gone && value["metadata"]["deletionTimestamp"].is_null();
        let number = |path: &[&str]| {
            if gone {
                0
            } else {
                tree::int(&value, path).unwrap_or(0)
            }
        };
        if is_set {
            let (wanted, available) = (
                number(&["spec", "replicas"]),
                number(&["status", "availableReplicas"]),
            );
            sets.insert(key, (wanted, available));
        } else {
            pods.insert(key, (alive && is_ready(&value), alive));
        }
        if event.version <= start {
            continue;
        }
        let wanted: i64 = sets.values().map(|(wanted, _)| wanted).sum();
        let available: i64 = sets.values().map(|(_, available)| available).sum();
        let ready = pods.values().filter(|(ready, _)| *ready).count();
        let alive = pods.values().filter(|(_, alive)| *alive).count();
        assert!(wanted <= most, "{wanted} wanted, {most} allowed, {strategy}");
        assert!(
            i64::try_from(alive).unwrap() <= most,
            "{alive} pods, {most} allowed, {strategy}"
        );
        assert!(
            available >= least,
            "{available} available, {least} needed, {strategy}"
        );
        assert!(
            i64::try_from(ready).unwrap() >= least,
            "{ready} ready, {least} needed, {strategy}"
        );
    }
}

fn is_ready(pod: &Value) -> bool {
    tree::list(pod, &["status", "conditions"])
        .iter()
        .any(|one| tree::text(one, &["type"]) == "Ready" && tree::text(one, &["status"]) == "True")
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let cluster = cluster(seed);
        deploy(&cluster, &json!({"replicas": 5}));
        cluster.advance(seconds(7));
        set_image(&cluster, "v2");
        cluster.advance(seconds(20));
        let dump = story(&cluster, &["deployments.apps", "replicasets.apps", "pods"]);
        (cluster.trace(), dump, cluster.now())
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1).0, run(2).0);
    assert!(run(1).2 > Instant::default());
}

const STATEFUL: (&str, &str) = ("apps", "statefulsets");

fn stateful(cluster: &Cluster, spec: &Value) {
    act(cluster, STATEFUL, "web", &|value| {
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

/// The trace's lines of one controller, without the times' date.
fn said(cluster: &Cluster, who: &str) -> String {
    let trace = cluster.trace();
    let lines = trace.lines().filter(|line| line.contains(who));
    lines.fold(String::new(), |text, line| text + &line[14..] + "\n")
}

#[test]
fn a_stateful_set_goes_in_order() {
    let cluster = cluster(1);
    stateful(&cluster, &json!({"replicas": 3}));
    cluster.advance(seconds(20));
    stateful(&cluster, &json!({"template": template("v2")}));
    cluster.advance(seconds(30));
    stateful(&cluster, &json!({"replicas": 1}));
    cluster.advance(seconds(30));
    check("stateful", &said(&cluster, "statefulset-controller"));
    let status = get(&cluster, "statefulsets.apps", "web")["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["currentReplicas"], 1);
    assert_eq!(status["replicas"], 1);
}

#[test]
fn a_partition_holds_pods_back_and_on_delete_all_of_them() {
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
    check("partition", &said(&cluster, "statefulset-controller"));
}

const DAEMONS: (&str, &str) = ("apps", "daemonsets");

fn daemon(cluster: &Cluster, spec: &Value) {
    act(cluster, DAEMONS, "agent", &|value| {
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
        check(name, &said(&cluster, "daemonset-controller"));
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
        cluster.with(|state| mainstay_sim::controllers::make_nodes(state, 5));
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
    act(cluster, JOBS, "work", &|value| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "v1"}]});
        tree::set(value, &["spec", "template", "spec"], pod);
        for (key, field) in spec.as_object().unwrap() {
            tree::set(value, &["spec", key], field.clone());
        }
    });
}

#[test]
fn a_job_ends_when_enough_succeeded() {
    let cluster = cluster(1);
    cluster.with(|state| state.scripts.set_usual(Script::completes_after(seconds(10))));
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
fn a_job_fails_when_too_many_failed() {
    let cluster = cluster(1);
    cluster.with(|state| state.scripts.set_usual(Script::crash_loop(seconds(1))));
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
    check("job-fails", &said(&cluster, "job-controller"));
}

#[test]
fn a_budget_says_how_many_pods_may_go() {
    let cluster = cluster(1);
    let budget = ("policy", "poddisruptionbudgets");
    act(&cluster, budget, "web", &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        );
    });
    deploy(&cluster, &json!({"replicas": 3}));
    let status = |cluster: &Cluster| get(cluster, "poddisruptionbudgets.policy", "web")["status"].clone();
    assert_eq!(status(&cluster)["disruptionsAllowed"], 0);
    cluster.advance(seconds(5));
    let found = status(&cluster);
    let number = |field: &str| found[field].as_i64().unwrap();
    assert_eq!(
        [
            number("currentHealthy"),
            number("desiredHealthy"),
            number("expectedPods"),
            number("disruptionsAllowed")
        ],
        [3, 2, 3, 1]
    );
    assert_eq!(found["conditions"][0]["reason"], "SufficientPods");
    let names: Vec<String> = cluster.with(|state| {
        let pods = state.store.all("pods");
        pods.map(|pod| pod.meta().name.to_string()).collect()
    });
    assert_eq!(evict(&cluster, &names[0]).0, 201);
    let (code, refusal) = evict(&cluster, &names[1]);
    assert_eq!(code, 429);
    assert_eq!(
        refusal["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        "The disruption budget web needs 2 healthy pods and has 2 currently"
    );
    cluster.advance(seconds(10));
    assert_eq!(evict(&cluster, &names[1]).0, 201);
}

fn evict(cluster: &Cluster, name: &str) -> (u16, Value) {
    let answer = cluster.with(|state| {
        let call = Call {
            client: "test".into(),
            user: User::admin(),
            impersonation: None,
            method: http::Method::POST,
            path: format!("/api/v1/namespaces/default/pods/{name}/eviction"),
            query: Query::default(),
            accept: "application/json".into(),
            content_type: "application/json".into(),
            user_agent: "test/1".into(),
            body: json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
                .to_string()
                .into(),
            answers: Vec::new(),
        };
        match mainstay_sim::api::handle(state, &call) {
            Outcome::Answer(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap()),
            other => panic!("{other:?}"),
        }
    });
    cluster.settle();
    answer
}

#[test]
fn endpoint_slices_follow_readiness_and_departure() {
    let cluster = cluster(1);
    act(&cluster, ("", "services"), "web", &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}),
        );
    });
    cluster.with(|state| {
        let script = Script::ready_after(seconds(3)).stopping_after(seconds(4));
        state.scripts.set_usual(script);
    });
    deploy(&cluster, &json!({"replicas": 1}));
    let shown = |cluster: &Cluster| -> Vec<String> {
        cluster.with(|state| {
            let slices: Vec<Value> = state
                .store
                .all("endpointslices.discovery.k8s.io")
                .map(|slice| slice.value())
                .filter(|slice| tree::text(slice, &["metadata", "generateName"]) == "web-")
                .collect();
            assert_eq!(slices.len(), 1);
            tree::list(&slices[0], &["endpoints"])
                .iter()
                .map(|one| {
                    let flags = &one["conditions"];
                    format!("{} {} {}", flags["ready"], flags["serving"], flags["terminating"])
                })
                .collect()
        })
    };
    cluster.advance(seconds(1));
    assert_eq!(shown(&cluster), ["false false false"]);
    cluster.advance(seconds(3));
    assert_eq!(shown(&cluster), ["true true false"]);
    act(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "replicas"], 0);
    });
    cluster.advance(seconds(2));
    assert_eq!(shown(&cluster), ["false true true"]);
    cluster.advance(seconds(4));
    assert_eq!(shown(&cluster), Vec::<String>::new());
}
