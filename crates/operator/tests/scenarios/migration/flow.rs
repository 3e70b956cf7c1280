//! Migration for each kind of label: relabeled namespaces and templates, restarted workloads, and deletion
//! of the old revision.

use serde_json::{Value, json};

use super::*;
use crate::support::availability_log::AvailabilityLog;
use crate::support::history::History;

/// Upgrades, and waits until all workloads of these namespaces have migrated and the old revision is deleted.
async fn migrate(world: &World, namespaces: &[&str]) -> History {
    let log = AvailabilityLog::start(world).await;
    upgrade(world).await;
    until_migration(world, "InProgress").await;
    until_migration(world, "Completed").await;
    for namespace in namespaces {
        until_served_by(world, namespace, NEW_REVISION).await;
    }
    until_old_revision_is_deleted(world).await;
    log.stop_and_check(world).await
}

/// Checks that each workload migrated to the new revision once, with a single change of its template.
fn check_migrated_once(history: &History, workloads: &[(&str, &str)]) {
    let sent = history.migrations();
    assert_eq!(sent.len(), workloads.len(), "{sent:?}");
    assert!(sent.iter().all(|one| one.to == NEW_REVISION), "{sent:?}");
    for (namespace, name) in workloads {
        assert_eq!(history.template_changes(namespace, name), 1, "{namespace}/{name}");
    }
}

fn is_restarted(template: &Value) -> bool {
    template["annotations"][RESTARTED].is_string()
}

pub async fn namespaces_are_relabeled_before_workloads_restart(world: World) -> World {
    create_mesh(&world, batched(&world, 2, json!({}))).await;
    let label = format!("istio.io/rev={OLD_REVISION}");
    let (one, two) = (
        injected_apps(&world, &label, &["httpbin", "sleep"]).await,
        injected_apps(&world, &label, &["httpbin"]).await,
    );
    let history = migrate(&world, &[&one, &two]).await;
    check_migrated_once(&history, &[(&one, "httpbin"), (&one, "sleep"), (&two, "httpbin")]);
    let first = history.migrations()[0].version;
    for space in [&one, &two] {
        assert_eq!(namespace_label(&world, space, "istio.io/rev").await, NEW_REVISION);
        let relabeled = history.first_version("Namespace", space, |space| {
            space["metadata"]["labels"]["istio.io/rev"] == NEW_REVISION
        });
        assert!(
            relabeled.is_some_and(|version| version < first),
            "the namespace is relabeled before a workload migrates"
        );
        let template = template_metadata(&world, space, "httpbin").await;
        assert!(is_restarted(&template), "{template}");
        assert_eq!(template["labels"], json!({"app": "httpbin"}));
    }
    assert_eq!(format_counts(&status(&world).await), "3+0+0 of 3");
    world
}

pub async fn revision_labels_of_templates_are_updated(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = world.namespace("").await;
    let label = format!("istio.io/rev={OLD_REVISION}");
    create_app(&world, &space, "cart", &label).await;
    create_app(
        &world,
        &space,
        "web",
        &format!("{label} sidecar.istio.io/inject=true"),
    )
    .await;
    until_served_by(&world, &space, OLD_REVISION).await;
    // This workload has no injection label, and is not changed.
    let plain = world.namespace("").await;
    create_app(&world, &plain, "plain", "").await;
    until_served_by(&world, &plain, "-").await;
    let history = migrate(&world, &[&space]).await;
    check_migrated_once(&history, &[(&space, "cart"), (&space, "web")]);
    assert_eq!(history.template_changes(&plain, "plain"), 0);
    for name in ["cart", "web"] {
        let template = template_metadata(&world, &space, name).await;
        assert_eq!(template["labels"]["istio.io/rev"], NEW_REVISION);
        assert!(
            !is_restarted(&template),
            "the label change already restarts the workload: {template}"
        );
    }
    assert_eq!(namespace_label(&world, &space, "istio.io/rev").await, Value::Null);
    world
}

pub async fn injection_enabled_follows_the_default_tag(world: World) -> World {
    create_mesh(&world, batched(&world, 2, json!({}))).await;
    let space = injected_apps(&world, "istio-injection=enabled", &["httpbin", "sleep"]).await;
    let requested = world.namespace("").await;
    create_app(&world, &requested, "pod", "sidecar.istio.io/inject=true").await;
    until_served_by(&world, &requested, OLD_REVISION).await;
    let history = migrate(&world, &[&space, &requested]).await;
    check_migrated_once(
        &history,
        &[(&space, "httpbin"), (&space, "sleep"), (&requested, "pod")],
    );
    assert_eq!(
        namespace_label(&world, &space, "istio-injection").await,
        "enabled"
    );
    assert_eq!(namespace_label(&world, &space, "istio.io/rev").await, Value::Null);
    assert!(is_restarted(&template_metadata(&world, &space, "sleep").await));
    assert_eq!(
        template_metadata(&world, &requested, "pod").await["labels"]["sidecar.istio.io/inject"],
        "true"
    );
    world
}

pub async fn a_version_change_migrates_every_kind_of_label(world: World) -> World {
    // The upgrade itself enables the migration.
    create_mesh(&world, json!({"strategy": ""})).await;
    let named = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["httpbin", "sleep"],
    )
    .await;
    let enabled = injected_apps(&world, "istio-injection=enabled", &["httpbin", "sleep"]).await;
    let silent = world.namespace("").await;
    create_app(&world, &silent, "sleep", &format!("istio.io/rev={OLD_REVISION}")).await;
    until_served_by(&world, &silent, OLD_REVISION).await;
    assert_eq!(status(&world).await, Value::Null, "no status without a migration");
    let log = AvailabilityLog::start(&world).await;
    let migration = json!({"workloadMigration": batched(&world, 2, json!({}))});
    let spec = json!({"spec": {"version": NEW, "updateStrategy": migration}});
    world.patch(&path::istio("default"), spec).await;
    until_migration(&world, "InProgress").await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(
        (format_counts(&status), format_batch(&status)),
        ("5+0+0 of 5".into(), "3 of 3".into())
    );
    for space in [&named, &enabled, &silent] {
        until_served_by(&world, space, NEW_REVISION).await;
    }
    until_old_revision_is_deleted(&world).await;
    let history = log.stop_and_check(&world).await;
    history.availability().check(5);
    assert!(history.max_migrating() <= 2, "at most one batch at a time");
    world
        .until_condition(
            &path::istio("default"),
            "WorkloadsMigrated=True/AllWorkloadsMigrated",
        )
        .await;
    // The new revision injects a workload that is created later.
    create_app(&world, &named, "late", "").await;
    until_served_by(&world, &named, NEW_REVISION).await;
    world
}
