//! Several old revisions, a target that changes, and workloads whose revision label differs from that of
//! their namespace.

use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

/// Workloads on the revision of an `InPlace` Istio and on one of a `RevisionBased` Istio migrate to a third
/// revision.
pub async fn several_old_revisions_migrate_to_the_active_one(world: World) -> World {
    world.create(fixtures::istio("default", OLD, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let enabled = world.namespace("istio-injection=enabled").await;
    create_app(&world, &enabled, "httpbin", "").await;
    create_app(&world, &enabled, "sleep", "").await;
    until_served_by(&world, &enabled, "default").await;
    let strategy = json!({
        "type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": world.grace_seconds(), "revisionTags": [],
    });
    world
        .patch(
            &path::istio("default"),
            json!({"spec": {"updateStrategy": strategy}}),
        )
        .await;
    world.until_state(&path::revision(OLD_REVISION), "Healthy").await;
    let named = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["cart", "web"]).await;
    let migration = json!({"workloadMigration": batched(&world, 2, json!({}))});
    let spec = json!({"spec": {"version": NEW, "updateStrategy": migration}});
    let log = AvailabilityLog::start(&world).await;
    world.patch(&path::istio("default"), spec).await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(format_counts(&status), "4+0+0 of 4");
    for space in [&enabled, &named] {
        until_served_by(&world, space, NEW_REVISION).await;
        assert_eq!(namespace_label(&world, space, "istio.io/rev").await, NEW_REVISION);
    }
    assert_eq!(
        namespace_label(&world, &enabled, "istio-injection").await,
        serde_json::Value::Null
    );
    let history = log.stop_and_check(&world).await;
    assert_eq!(history.migrations().len(), 4);
    history.availability().check(4);
    world.until_gone(&path::revision("default")).await;
    until_old_revision_is_deleted(&world).await;
    world
}

pub async fn templates_may_differ_from_their_namespace(world: World) -> World {
    create_mesh(&world, batched(&world, 4, json!({}))).await;
    let label = format!("istio.io/rev={OLD_REVISION}");
    // With a label on the namespace, the revision label of a template is ignored and not changed.
    let decided = world.namespace("istio-injection=enabled").await;
    create_app(&world, &decided, "overruled", &label).await;
    create_app(&world, &decided, "out", "sidecar.istio.io/inject=false").await;
    // Without a label on the namespace, the labels of each template apply.
    let open = world.namespace("").await;
    create_app(&world, &open, "named", &label).await;
    create_app(&world, &open, "tagged", "istio.io/rev=default").await;
    world
        .until("all pods are injected as expected", async |world| {
            let (decided, open) = (
                injecting_revisions(world, &decided).await,
                injecting_revisions(world, &open).await,
            );
            let right = decided.iter().eq(["-", OLD_REVISION]) && open.iter().eq([OLD_REVISION]);
            right.then_some(()).ok_or(format!("{decided:?} {open:?}"))
        })
        .await;
    until_served_by(&world, &open, OLD_REVISION).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "3+0+0 of 3"
    );
    until_served_by(&world, &open, NEW_REVISION).await;
    assert_eq!(
        injecting_revisions(&world, &decided).await,
        BTreeSet::from(["-".to_owned(), NEW_REVISION.to_owned()])
    );
    let history = log.stop_and_check(&world).await;
    assert_eq!(history.template_changes(&decided, "out"), 0);
    assert_eq!(
        template_metadata(&world, &open, "named").await["labels"]["istio.io/rev"],
        NEW_REVISION
    );
    assert_eq!(
        template_metadata(&world, &open, "tagged").await["labels"]["istio.io/rev"],
        "default"
    );
    assert_eq!(
        template_metadata(&world, &decided, "overruled").await["labels"]["istio.io/rev"],
        OLD_REVISION
    );
    until_old_revision_is_deleted(&world).await;
    world
}

/// The version is reverted when one workload has migrated, one is migrating, and two are waiting.
pub async fn the_target_changes_during_a_migration(world: World) -> World {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &NAMES).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migrating(&world, &space, "b", NEW_REVISION).await;
    world
        .patch(&path::istio("default"), json!({"spec": {"version": OLD}}))
        .await;
    let istio = world
        .until_object(
            &path::istio("default"),
            "has completed the migration to the old revision",
            |istio| {
                let migration = &istio["status"]["workloadMigration"];
                migration["state"] == "Completed" && migration["targetRevision"] == OLD_REVISION
            },
        )
        .await;
    assert_eq!(format_counts(&istio["status"]["workloadMigration"]), "2+0+0 of 2");
    until_served_by(&world, &space, OLD_REVISION).await;
    assert_eq!(
        namespace_label(&world, &space, "istio.io/rev").await,
        OLD_REVISION
    );
    world.until_gone(&path::revision(NEW_REVISION)).await;
    let history = log.stop_and_check(&world).await;
    let changes = NAMES.map(|name| history.template_changes(&space, name));
    assert_eq!(changes, [2, 2, 0, 0], "changed and reverted, or never changed");
    assert_eq!(history.max_migrating(), 1, "at most one batch at a time");
    history.availability().check(4);
    world
}
