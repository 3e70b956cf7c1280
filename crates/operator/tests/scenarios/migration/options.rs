//! Options that are not in the first version of the proposal: skipped workloads, order, pauses, fail fast,
//! and other kinds.

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

async fn annotate(world: &World, at: &ObjectPath, key: &str, value: Value) {
    let key = format!("sailoperator.io/{key}");
    world
        .patch(at, json!({"metadata": {"annotations": {key: value}}}))
        .await;
}

pub async fn annotations_of_workloads_are_honored(world: World) -> World {
    create_mesh(&world, batched(&world, 3, json!({}))).await;
    let names = ["a-last", "b-middle", "c-first", "d-left", "e-slow"];
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &names).await;
    let own = timeout_seconds(&world) / 3;
    for (name, key, value) in [
        ("a-last", "migration-batch", "5".to_owned()),
        ("c-first", "migration-batch", "-1".to_owned()),
        ("d-left", "skip-migration", "true".to_owned()),
        ("e-slow", "readiness-timeout", format!("{own}s")),
    ] {
        annotate(&world, &deployment(&space, name), key, value.into()).await;
    }
    world.set_script(&space, "e-slow", Script::never_ready());
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let failed = until_migration(&world, "Failed").await;
    assert_eq!(
        (format_counts(&failed), format_batch(&failed)),
        ("3+1+1 of 5".into(), "3 of 3".into())
    );
    let prefix = format!("Readiness timeout exceeded after {own}s: ");
    assert!(
        failed["failures"][0]["reason"]
            .as_str()
            .unwrap()
            .starts_with(&prefix),
        "{failed}"
    );
    let history = log.stop_and_check(&world).await;
    let workloads = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("{space}/{name}"))
            .collect::<BTreeSet<_>>()
    };
    let expected = [
        workloads(&["c-first"]),
        workloads(&["b-middle", "e-slow"]),
        workloads(&["a-last"]),
    ];
    assert_eq!(history.batches(), expected);
    assert_eq!(history.template_changes(&space, "d-left"), 0);
    // Without the annotation, the workload migrates.
    annotate(
        &world,
        &deployment(&space, "d-left"),
        "skip-migration",
        Value::Null,
    )
    .await;
    until_migrating(&world, &space, "d-left", NEW_REVISION).await;
    world
        .until_object(&path::istio("default"), "has migrated one more", |istio| {
            format_counts(&istio["status"]["workloadMigration"]) == "4+1+0 of 5"
        })
        .await;
    world
}

pub async fn a_paused_migration_continues_when_resumed(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["a", "b", "c"]).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migrating(&world, &space, "a", NEW_REVISION).await;
    patch_migration(&world, json!({"paused": true})).await;
    let paused = "WorkloadsMigrated=False/MigrationPaused";
    world.until_condition(&path::istio("default"), paused).await;
    world
        .until_object(
            &path::istio("default"),
            "has migrated the running batch",
            |istio| format_counts(&istio["status"]["workloadMigration"]) == "1+0+0 of 3",
        )
        .await;
    world.settle().await;
    assert_eq!(status(&world).await["state"], "InProgress");
    let by = [OLD_REVISION, NEW_REVISION].map(str::to_owned);
    assert_eq!(
        injecting_revisions(&world, &space).await,
        BTreeSet::from(by),
        "the other workloads do not migrate"
    );
    let began = status(&world).await["startTime"].clone();
    patch_migration(&world, json!({"paused": false})).await;
    let over = until_migration(&world, "Completed").await;
    assert_eq!(
        (format_counts(&over), &over["startTime"]),
        ("3+0+0 of 3".into(), &began)
    );
    until_served_by(&world, &space, NEW_REVISION).await;
    let sent = log.stop_and_check(&world).await.migrations();
    assert_eq!(sent.len(), 3, "{sent:?}");
    world
}

pub async fn fail_fast_ends_after_the_running_batch(world: World) -> World {
    create_mesh(&world, batched(&world, 2, json!({"failurePolicy": "FailFast"}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-bad", "b-good", "c-spared"],
    )
    .await;
    world.set_script(&space, "a-bad", Script::never_ready());
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let failed = until_migration(&world, "Failed").await;
    assert_eq!(format_counts(&failed), "1+1+0 of 3");
    world.settle().await;
    let history = log.stop_and_check(&world).await;
    assert_eq!(
        history.template_changes(&space, "b-good"),
        1,
        "the workload is part of the running batch"
    );
    assert_eq!(history.template_changes(&space, "c-spared"), 0);
    history.availability().check(3);
    world
}

/// Creates a `StatefulSet` with two pods, or a `DaemonSet` with one pod per node.
async fn create_set(world: &World, kind: &str, namespace: &str, name: &str) {
    let mut object = fixtures::deployment(namespace, name, "", "");
    object["kind"] = kind.into();
    object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1.into();
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = name.into();
        object["spec"]["replicas"] = 2.into();
    }
    world.create(object).await;
}

/// Waits until a set has this many pods that were injected by this revision.
async fn until_pods(world: &World, namespace: &str, name: &str, count: usize, revision: &str) {
    world
        .until(&format!("{name} is on {revision}"), async |world| {
            let pods = list_items(world, "Pod", namespace).await;
            let own = |pod: &&Value| pod["metadata"]["labels"]["app"] == name;
            let on = |pod: &&Value| pod["metadata"]["annotations"]["istio.io/rev"] == revision;
            let injected = pods.iter().filter(own).filter(on).count();
            (injected == count)
                .then_some(())
                .ok_or(format!("{injected} pods"))
        })
        .await;
}

pub async fn stateful_sets_and_daemon_sets_migrate_if_configured(world: World) -> World {
    create_mesh(&world, batched(&world, 3, json!({}))).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["web"]).await;
    create_set(&world, "StatefulSet", &space, "db").await;
    create_set(&world, "DaemonSet", &space, "agent").await;
    until_pods(&world, &space, "db", 2, OLD_REVISION).await;
    until_pods(&world, &space, "agent", 3, OLD_REVISION).await;
    upgrade(&world).await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "1+0+2 of 3"
    );
    until_pods(&world, &space, "web", 2, NEW_REVISION).await;
    until_pods(&world, &space, "db", 2, OLD_REVISION).await;
    patch_migration(
        &world,
        json!({"kinds": ["Deployment", "StatefulSet", "DaemonSet"]}),
    )
    .await;
    world
        .until_object(&path::istio("default"), "has migrated all kinds", |istio| {
            let migration = &istio["status"]["workloadMigration"];
            migration["state"] == "Completed" && format_counts(migration) == "3+0+0 of 3"
        })
        .await;
    until_pods(&world, &space, "db", 2, NEW_REVISION).await;
    until_pods(&world, &space, "agent", 3, NEW_REVISION).await;
    until_old_revision_is_deleted(&world).await;
    world
}
