//! Tests workload keys, migration records, rollouts and annotations.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

#[test]
fn the_workload_of_a_pod_is_derived_from_its_controller() {
    let check = |(kind, name), hash: &str, expected: Option<&str>| {
        let owner = PodController { kind, name };
        let found = WorkloadKey::for_pod("shop", owner, &labels(&[(names::POD_TEMPLATE_HASH, hash)]));
        assert_eq!(
            found.map(|key| key.to_string()).as_deref(),
            expected,
            "{owner:?} {hash}"
        );
    };
    check(("ReplicaSet", "cart-5d4f"), "5d4f", Some("Deployment/shop/cart"));
    check(
        ("ReplicaSet", "cart-v2-5d4f"),
        "5d4f",
        Some("Deployment/shop/cart-v2"),
    );
    check(("ReplicaSet", "cart"), "5d4f", None);
    check(("ReplicaSet", "5d4f"), "5d4f", None);
    check(("StatefulSet", "db"), "", Some("StatefulSet/shop/db"));
    check(("DaemonSet", "agent"), "", Some("DaemonSet/shop/agent"));
    check(("Job", "nightly"), "", None);
    check(("Deployment", "cart"), "", None);
    let bare = PodController {
        kind: "ReplicaSet",
        name: "cart-5d4f",
    };
    assert_eq!(
        WorkloadKey::for_pod("shop", bare, &labels(&[])),
        None,
        "a bare replica set"
    );
}

#[test]
fn migration_records_round_trip() {
    let record = MigrationRecord {
        revision: "default-v1-29-1".into(),
        batch: 3,
        started: Time::from_timestamp("2026-11-15T16:48:21Z".parse().unwrap()),
    };
    let text = r#"{"batch":3,"revision":"default-v1-29-1","startedAt":"2026-11-15T16:48:21Z"}"#;
    assert_eq!(record.to_annotation(), text);
    assert_eq!(MigrationRecord::parse(text), Some(record));
    for bad in [
        "",
        "yes",
        "{}",
        r#"{"batch":"3","revision":"x","startedAt":"2026-11-15T16:48:21Z"}"#,
    ] {
        assert_eq!(MigrationRecord::parse(bad), None, "{bad}");
    }
}

fn rollout(kind: WorkloadKind, json: &Value) -> (bool, bool) {
    let (_, workload) = Workload::from_object(kind, json).unwrap();
    (workload.rollout.complete, workload.rollout.was_complete)
}

#[test]
fn a_deployment_is_complete_once_its_current_generation_is_available() {
    let deployment = |generation, counts: [i32; 4], reason: &str| {
        let [replicas, updated, ready, available] = counts;
        json!({
            "metadata": {"name": "cart", "namespace": "shop", "generation": 2},
            "spec": {"replicas": 3},
            "status": {
                "observedGeneration": generation, "replicas": replicas, "updatedReplicas": updated,
                "readyReplicas": ready, "availableReplicas": available,
                "conditions": [{"type": "Progressing", "reason": reason}],
            },
        })
    };
    let check = |json, expected, why: &str| {
        assert_eq!(rollout(WorkloadKind::Deployment, &json), expected, "{why}");
    };
    check(
        deployment(2, [3, 3, 3, 3], "NewReplicaSetAvailable"),
        (true, true),
        "all replicas updated and available",
    );
    check(
        deployment(1, [3, 3, 3, 3], "NewReplicaSetAvailable"),
        (false, false),
        "status of the previous generation",
    );
    check(
        deployment(2, [4, 3, 4, 4], "ReplicaSetUpdated"),
        (false, false),
        "an old pod is left",
    );
    check(
        deployment(2, [3, 2, 3, 3], "ReplicaSetUpdated"),
        (false, false),
        "one is not updated",
    );
    check(
        deployment(2, [3, 3, 2, 2], "ReplicaSetUpdated"),
        (false, false),
        "one is not ready yet",
    );
    check(
        deployment(2, [3, 3, 3, 2], "ReplicaSetUpdated"),
        (false, false),
        "one is not available yet",
    );
    check(
        deployment(2, [3, 3, 2, 2], "NewReplicaSetAvailable"),
        (false, true),
        "one became unready after the rollout",
    );
    check(
        deployment(2, [3, 1, 2, 2], "ProgressDeadlineExceeded"),
        (false, false),
        "stuck",
    );
}

#[test]
fn stateful_and_daemon_sets_are_complete_once_all_pods_are_updated() {
    let stateful = |current: &str, ready: i32| {
        json!({
            "metadata": {"name": "db", "namespace": "shop", "generation": 1},
            "spec": {"replicas": 2},
            "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": ready, "availableReplicas": ready,
                "currentRevision": current, "updateRevision": "db-2"},
        })
    };
    assert_eq!(
        rollout(WorkloadKind::StatefulSet, &stateful("db-2", 2)),
        (true, true)
    );
    assert_eq!(
        rollout(WorkloadKind::StatefulSet, &stateful("db-1", 2)),
        (false, false)
    );
    assert_eq!(
        rollout(WorkloadKind::StatefulSet, &stateful("db-2", 1)),
        (false, true)
    );
    let daemon = |updated: i32, ready: i32| {
        json!({
            "metadata": {"name": "agent", "namespace": "shop", "generation": 1},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready},
        })
    };
    assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(3, 3)), (true, true));
    assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(2, 3)), (false, false));
    assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(3, 2)), (false, true));
}

#[test]
fn incomplete_rollouts_are_described() {
    let check = |numbers: [i32; 5], expected: &str| {
        let [desired, updated, old, ready, available] = numbers;
        let rollout = Rollout {
            desired,
            updated,
            old,
            ready,
            available,
            ..Rollout::default()
        };
        assert_eq!(rollout.describe_missing(), expected);
    };
    check([2, 1, 2, 2, 2], "1 of 2 replicas updated, 2 old replicas left");
    check([1, 1, 1, 1, 1], "1 old replica left");
    check([1, 1, 0, 0, 0], "1 replica not ready");
    check([3, 3, 0, 1, 1], "2 replicas not ready");
    check([3, 3, 0, 3, 1], "2 ready replicas not yet available");
    check([1, 1, 0, 1, 1], "the rollout is not complete");
}

#[test]
fn annotations_that_control_migration_are_validated() {
    let check = |key: &str, value: &str, expected: bool| {
        let annotations = labels(&[(key, value)]);
        assert_eq!(has_invalid_annotation(&annotations), expected, "{key}: {value:?}");
    };
    for (value, invalid) in [
        ("true", false),
        ("false", false),
        ("True", true),
        ("yes", true),
        ("", true),
    ] {
        check(names::SKIP_MIGRATION, value, invalid);
    }
    for (value, invalid) in [
        ("10s", false),
        ("0s", false),
        ("10", true),
        ("-1s", true),
        ("soon", true),
    ] {
        check(names::READINESS_TIMEOUT, value, invalid);
    }
    for (value, invalid) in [
        ("-1", false),
        ("7", false),
        ("first", true),
        ("1.5", true),
        ("9999999999", true),
    ] {
        check(names::MIGRATION_BATCH, value, invalid);
    }
    check("example.com/other", "?", false);
}

#[test]
fn invalid_annotations_count_as_unset() {
    let json = json!({"metadata": {"name": "cart", "namespace": "shop", "annotations": {
        names::SKIP_MIGRATION: "yes", names::READINESS_TIMEOUT: "soon", names::MIGRATION_BATCH: "first",
        names::MIGRATION_RECORD: "?",
    }}});
    let (_, workload) = Workload::from_object(WorkloadKind::Deployment, &json).unwrap();
    let expected = Workload {
        invalid_annotation: true,
        rollout: workload.rollout,
        ..Workload::default()
    };
    assert_eq!(workload, expected);
}
