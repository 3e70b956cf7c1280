//! Failures and recovery: other workloads migrate, the failure is reported, and the migration of a
//! recovered workload completes.

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

/// Returns the messages of Events with this reason.
fn messages<'a>(events: &'a [String], reason: &str) -> Vec<&'a str> {
    let of = |event: &'a String| event.strip_prefix(reason)?.strip_prefix(' ');
    events.iter().filter_map(of).collect()
}

/// A `PodDisruptionBudget` that allows no disruption blocks evictions but not rollouts. Pods that never
/// become ready block the rollout of their workload.
pub async fn a_disruption_budget_and_pods_that_never_become_ready(world: World) -> World {
    create_mesh(&world, batched(&world, 2, json!({}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-stuck", "b-guarded", "c-plain"],
    )
    .await;
    for name in ["a-stuck", "b-guarded"] {
        let spec = json!({"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}});
        world
            .create(json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": space}, "spec": spec,
            }))
            .await;
    }
    world.set_script(&space, "a-stuck", Script::never_ready());
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let failed = until_migration(&world, "Failed").await;
    assert_eq!(format_counts(&failed), "2+1+0 of 3");
    let failure = &failed["failures"][0];
    assert_eq!(
        [&failure["namespace"], &failure["name"]],
        [space.as_str(), "a-stuck"]
    );
    // The workload becomes ready, and its migration completes.
    world.set_script(&space, "a-stuck", Script::default());
    for pod in list_items(&world, "Pod", &space).await {
        let name = pod["metadata"]["name"].as_str().unwrap();
        if name.starts_with("a-stuck") && pod["metadata"]["annotations"]["istio.io/rev"] == NEW_REVISION {
            world.delete(&ObjectPath::namespaced("Pod", &space, name)).await;
        }
    }
    let status = until_migration(&world, "Completed").await;
    assert_eq!(format_counts(&status), "3+0+0 of 3");
    assert!(status["failures"].is_null(), "{status}");
    until_served_by(&world, &space, NEW_REVISION).await;
    until_old_revision_is_deleted(&world).await;
    let history = log.stop_and_check(&world).await;
    history.availability().check(3);
    assert_eq!(
        history.template_changes(&space, "a-stuck"),
        1,
        "the workload is not restarted again"
    );
    let events = history.events();
    assert_eq!(
        messages(&events, "MigrationStarted"),
        [format!("migrating 3 workloads to {NEW_REVISION} in 2 batches")]
    );
    assert_eq!(
        messages(&events, "BatchStarted"),
        ["batch 1 of 2", "batch 2 of 2"]
    );
    let failures = messages(&events, "WorkloadFailed");
    let prefix = format!("Deployment/{space}/a-stuck: Readiness timeout exceeded after ");
    assert!(
        failures.len() == 1 && failures[0].starts_with(&prefix),
        "{failures:?}"
    );
    let ends = messages(&events, "MigrationEnded");
    assert_eq!(
        ends[0],
        format!("2 of 3 workloads migrated to {NEW_REVISION}, 1 failed, 0 skipped")
    );
    assert_eq!(
        ends[1],
        format!("3 of 3 workloads migrated to {NEW_REVISION}, 0 failed, 0 skipped")
    );
    world
}

pub async fn an_injector_that_rejects_pods(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-rejected", "b-good"],
    )
    .await;
    // No istiod accepts this annotation: old pods keep running, and new ones cannot be created.
    let annotate = |value: serde_json::Value| json!({"spec": {"template": {"metadata": {"annotations": {"sidecar.istio.io/interceptionMode": value}}}}});
    world
        .patch(&deployment(&space, "a-rejected"), annotate(json!("UNKNOWN")))
        .await;
    world
        .until_object(
            &deployment(&space, "a-rejected"),
            "cannot create pods",
            |object| {
                object["status"]["conditions"]
                    .to_string()
                    .contains("for annotation 'sidecar.istio.io/interceptionMode'")
            },
        )
        .await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let failed = until_migration(&world, "Failed").await;
    assert_eq!(format_counts(&failed), "1+1+0 of 2");
    let failure = &failed["failures"][0];
    assert_eq!(
        [&failure["namespace"], &failure["name"]],
        [space.as_str(), "a-rejected"]
    );
    let reason = failure["reason"].as_str().unwrap();
    assert!(
        reason.ends_with(": 0 of 2 replicas updated, 2 old replicas left"),
        "{reason}"
    );
    let history = log.stop_and_check(&world).await;
    history.availability().check(2);
    // The old revision is kept while it is in use, and pruned after the annotation is removed.
    world
        .until_condition(&path::revision(OLD_REVISION), "InUse=True")
        .await;
    world
        .patch(&deployment(&space, "a-rejected"), annotate(json!(null)))
        .await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "2+0+0 of 2"
    );
    until_served_by(&world, &space, NEW_REVISION).await;
    until_old_revision_is_deleted(&world).await;
    world
}
