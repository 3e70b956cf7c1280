//! Migration by each kind of label: what is relabelled, what is restarted, and what is left of the old
//! revision.

use serde_json::{Value, json};

use super::*;
use crate::support::availability_log::AvailabilityLog;
use crate::support::history::History;

/// Upgrades, and waits until all workloads of these namespaces have moved and the old revision is gone.
async fn moves(world: &World, namespaces: &[&str]) -> History {
    let log = AvailabilityLog::begin(world).await;
    upgrade(world).await;
    until_migration(world, "InProgress").await;
    until_migration(world, "Completed").await;
    for namespace in namespaces {
        until_served_by(world, namespace, NEW_REVISION).await;
    }
    until_old_is_gone(world).await;
    log.close(world).await
}

/// Each was sent once, to the new revision, by one change of its template.
fn once(history: &History, workloads: &[(&str, &str)]) {
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

pub async fn namespace_labels_lead_and_workloads_follow(world: World) -> World {
    mesh(&world, batched(&world, 2, json!({}))).await;
    let label = format!("istio.io/rev={OLD_REVISION}");
    let (one, two) = (
        injected_apps(&world, &label, &["httpbin", "sleep"]).await,
        injected_apps(&world, &label, &["httpbin"]).await,
    );
    let history = moves(&world, &[&one, &two]).await;
    once(&history, &[(&one, "httpbin"), (&one, "sleep"), (&two, "httpbin")]);
    let first = history.migrations()[0].version;
    for space in [&one, &two] {
        assert_eq!(space_label(&world, space, "istio.io/rev").await, NEW_REVISION);
        let relabelled = history.first("Namespace", space, |space| {
            space["metadata"]["labels"]["istio.io/rev"] == NEW_REVISION
        });
        assert!(
            relabelled.is_some_and(|version| version < first),
            "labels come first"
        );
        let template = template(&world, space, "httpbin").await;
        assert!(is_restarted(&template), "{template}");
        assert_eq!(template["labels"], json!({"app": "httpbin"}));
    }
    assert_eq!(counts(&status(&world).await), "3+0+0 of 3");
    world
}

pub async fn templates_that_name_a_revision_name_the_new_one(world: World) -> World {
    mesh(&world, batched(&world, 1, json!({}))).await;
    let space = world.namespace("").await;
    let label = format!("istio.io/rev={OLD_REVISION}");
    app(&world, &space, "cart", &label).await;
    app(
        &world,
        &space,
        "web",
        &format!("{label} sidecar.istio.io/inject=true"),
    )
    .await;
    until_served_by(&world, &space, OLD_REVISION).await;
    // Nothing asks for this one, and nothing happens to it.
    let plain = world.namespace("").await;
    app(&world, &plain, "plain", "").await;
    until_served_by(&world, &plain, "-").await;
    let history = moves(&world, &[&space]).await;
    once(&history, &[(&space, "cart"), (&space, "web")]);
    assert_eq!(history.template_changes(&plain, "plain"), 0);
    for name in ["cart", "web"] {
        let template = template(&world, &space, name).await;
        assert_eq!(template["labels"]["istio.io/rev"], NEW_REVISION);
        assert!(!is_restarted(&template), "one change is enough: {template}");
    }
    assert_eq!(space_label(&world, &space, "istio.io/rev").await, Value::Null);
    world
}

pub async fn injection_enabled_follows_the_default_tag(world: World) -> World {
    mesh(&world, batched(&world, 2, json!({}))).await;
    let space = injected_apps(&world, "istio-injection=enabled", &["httpbin", "sleep"]).await;
    let asked = world.namespace("").await;
    app(&world, &asked, "pod", "sidecar.istio.io/inject=true").await;
    until_served_by(&world, &asked, OLD_REVISION).await;
    let history = moves(&world, &[&space, &asked]).await;
    once(
        &history,
        &[(&space, "httpbin"), (&space, "sleep"), (&asked, "pod")],
    );
    assert_eq!(space_label(&world, &space, "istio-injection").await, "enabled");
    assert_eq!(space_label(&world, &space, "istio.io/rev").await, Value::Null);
    assert!(is_restarted(&template(&world, &space, "sleep").await));
    assert_eq!(
        template(&world, &asked, "pod").await["labels"]["sidecar.istio.io/inject"],
        "true"
    );
    world
}

pub async fn one_version_string_moves_every_kind_of_label(world: World) -> World {
    // Migration is switched on by the upgrade itself.
    mesh(&world, json!({"strategy": ""})).await;
    let named = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["httpbin", "sleep"],
    )
    .await;
    let enabled = injected_apps(&world, "istio-injection=enabled", &["httpbin", "sleep"]).await;
    let silent = world.namespace("").await;
    app(&world, &silent, "sleep", &format!("istio.io/rev={OLD_REVISION}")).await;
    until_served_by(&world, &silent, OLD_REVISION).await;
    assert_eq!(status(&world).await, Value::Null, "no status without a migration");
    let log = AvailabilityLog::begin(&world).await;
    let migration = json!({"workloadMigration": batched(&world, 2, json!({}))});
    let spec = json!({"spec": {"version": NEW, "updateStrategy": migration}});
    world.patch(&path::istio("default"), spec).await;
    until_migration(&world, "InProgress").await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(
        (counts(&status), batch(&status)),
        ("5+0+0 of 5".into(), "3 of 3".into())
    );
    for space in [&named, &enabled, &silent] {
        until_served_by(&world, space, NEW_REVISION).await;
    }
    until_old_is_gone(&world).await;
    let history = log.close(&world).await;
    history.availability().check(5);
    assert!(history.max_migrating() <= 2, "never more than a batch");
    world
        .until_condition(
            &path::istio("default"),
            "WorkloadsMigrated=True/AllWorkloadsMigrated",
        )
        .await;
    // A pod that comes later is injected, too.
    app(&world, &named, "late", "").await;
    until_served_by(&world, &named, NEW_REVISION).await;
    world
}
