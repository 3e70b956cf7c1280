//! Edge cases: migrations without workloads, and deletions or restarts during a migration.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

pub async fn a_migration_without_workloads_completes_at_once(world: World) -> World {
    let log = AvailabilityLog::start(&world).await;
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    // This namespace is not in the mesh.
    let plain = world.namespace("").await;
    create_app(&world, &plain, "plain", "").await;
    until_served_by(&world, &plain, "-").await;
    upgrade(&world).await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(
        (format_counts(&status), format_batch(&status)),
        ("0+0+0 of 0".into(), "0 of 0".into())
    );
    until_old_revision_is_deleted(&world).await;
    let history = log.stop_and_check(&world).await;
    assert!(
        !history.states().contains(&"InProgress".to_owned()),
        "{:?}",
        history.states()
    );
    assert_eq!(history.template_changes(&plain, "plain"), 0);
    world
}

pub async fn migrated_workloads_are_not_changed(world: World) -> World {
    create_mesh(&world, json!({"strategy": ""})).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["cart", "web"]).await;
    upgrade(&world).await;
    world.until_state(&path::revision(NEW_REVISION), "Healthy").await;
    // A user has migrated it manually.
    world.label(&space, &format!("istio.io/rev={NEW_REVISION}")).await;
    for name in ["cart", "web"] {
        let restart =
            json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: "2026-01-01T00:00:00Z"}}}}});
        world.patch(&deployment(&space, name), restart).await;
    }
    until_served_by(&world, &space, NEW_REVISION).await;
    world.settle().await;
    let (log, mark) = (AvailabilityLog::start(&world).await, world.mark());
    let on = json!({"spec": {"updateStrategy": {"workloadMigration": batched(&world, 1, json!({}))}}});
    world.patch(&path::istio("default"), on).await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "0+0+0 of 0"
    );
    world.settle().await;
    let writes: Vec<String> = world
        .calls(&mark)
        .iter()
        .map(|call| call.line.clone())
        .filter(|line| line.contains(&space))
        .collect();
    assert_eq!(writes, [""; 0], "no object in the namespace is written");
    let history = log.stop_and_check(&world).await;
    assert_eq!(history.migrations(), []);
    assert!(
        !history.states().contains(&"InProgress".to_owned()),
        "{:?}",
        history.states()
    );
    world
}

pub async fn a_deployment_is_deleted_during_its_migration(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-leaves", "b-waits", "c-stays"],
    )
    .await;
    world.set_script(&space, "a-leaves", Script::never_ready());
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    until_migrating(&world, &space, "a-leaves", NEW_REVISION).await;
    // The first workload is migrating, the second one belongs to a later batch.
    world.delete(&deployment(&space, "a-leaves")).await;
    world.delete(&deployment(&space, "b-waits")).await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(format_counts(&status), "1+0+0 of 1");
    assert!(status["failures"].is_null(), "{status}");
    world
        .until("only the pods of one workload are left", async |world| {
            let left = list_items(world, "Pod", &space).await.len();
            (left == 2).then_some(()).ok_or(format!("{left} pods"))
        })
        .await;
    until_served_by(&world, &space, NEW_REVISION).await;
    until_old_revision_is_deleted(&world).await;
    world
}

pub async fn the_istio_is_deleted_during_a_migration(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["a", "b", "c"]).await;
    world.set_script(&space, "a", Script::never_ready());
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    until_migrating(&world, &space, "a", NEW_REVISION).await;
    world.delete(&path::istio("default")).await;
    world.until_gone(&path::istio("default")).await;
    world.until_gone(&path::revision(NEW_REVISION)).await;
    world.sleep(Duration::from_secs(delay_seconds(&world) * 3)).await;
    world.settle().await;
    let history = log.stop_and_check(&world).await;
    let sent: Vec<String> = history.migrations().into_iter().map(|one| one.workload).collect();
    assert_eq!(sent, [format!("{space}/a")], "no other workload migrates");
    for name in ["b", "c"] {
        assert_eq!(history.template_changes(&space, name), 0, "{name}");
    }
    world
}

pub async fn the_operator_is_killed_during_a_migration(world: World) -> World {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    create_mesh(&world, batched(&world, 2, json!({}))).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &NAMES).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    let began = until_migration(&world, "InProgress").await["startTime"].clone();
    // In each batch, the operator is replaced before the workload is ready.
    for (batch, name) in [(1, "a"), (2, "c"), (3, "e")] {
        world
            .until_object(&deployment(&space, name), "is migrating", |object| {
                let record = object["metadata"]["annotations"]["sailoperator.io/migration"].as_str();
                record.is_some_and(|record| record.contains(&format!("\"batch\":{batch},")))
            })
            .await;
        world.restart_operator().await;
    }
    let status = until_migration(&world, "Completed").await;
    assert_eq!(
        (format_counts(&status), format_batch(&status)),
        ("5+0+0 of 5".into(), "3 of 3".into())
    );
    assert_eq!(status["startTime"], began, "the same migration is continued");
    until_served_by(&world, &space, NEW_REVISION).await;
    let history = log.stop_and_check(&world).await;
    for name in NAMES {
        assert_eq!(
            history.template_changes(&space, name),
            1,
            "{name} is restarted once"
        );
    }
    assert!(history.max_migrating() <= 2, "at most one batch at a time");
    history.availability().check(5);
    world
}
