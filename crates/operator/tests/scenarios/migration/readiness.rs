//! Readiness: a workload that is ready in time has migrated, and one that is not ready in time has failed.
//! Neither blocks other workloads.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

pub async fn a_workload_that_is_ready_in_time_has_migrated(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-slow", "b-next"],
    )
    .await;
    let slow = Duration::from_secs(timeout_seconds(&world) / 3);
    world.set_script(&space, "a-slow", Script::ready_after(slow));
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "2+0+0 of 2"
    );
    let sent = log.stop_and_check(&world).await.migrations();
    let (first, next) = (&sent[0], &sent[1]);
    let (version, came_up) = first.complete.unwrap();
    assert!(
        came_up.duration_since(first.at) >= slow,
        "pods are replaced one after the other, so it takes at least the readiness time"
    );
    assert!(
        next.version > version,
        "the next workload waits until the first one is ready"
    );
    world
}

pub async fn a_workload_that_is_never_ready_fails_and_does_not_stop_others(world: World) -> World {
    create_mesh(&world, batched(&world, 1, json!({}))).await;
    let space = injected_apps(
        &world,
        &format!("istio.io/rev={OLD_REVISION}"),
        &["a-bad", "b-good", "c-good"],
    )
    .await;
    world.set_script(&space, "a-bad", Script::never_ready());
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let failed = until_migration(&world, "Failed").await;
    assert_eq!(
        (format_counts(&failed), format_batch(&failed)),
        ("2+1+0 of 3".into(), "3 of 3".into())
    );
    let failure = &failed["failures"][0];
    assert_eq!(failed["failures"].as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(
        [&failure["namespace"], &failure["name"], &failure["kind"]],
        [space.as_str(), "a-bad", "Deployment"]
    );
    let reason = format!(
        "Readiness timeout exceeded after {}: ",
        go_duration(timeout_seconds(&world))
    );
    assert!(
        failure["reason"].as_str().unwrap().starts_with(&reason),
        "{failure}"
    );
    assert!(
        failure["timestamp"].as_str() >= failed["startTime"].as_str(),
        "{failed}"
    );
    assert!(
        failed["completionTime"].as_str() >= failure["timestamp"].as_str(),
        "{failed}"
    );
    let history = log.stop_and_check(&world).await;
    let sent = history.migrations();
    let names: Vec<&str> = sent
        .iter()
        .filter_map(|one| Some(one.workload.split_once('/')?.1))
        .collect();
    assert_eq!(names, ["a-bad", "b-good", "c-good"]);
    assert_eq!(sent[0].complete, None);
    let waited = sent[1].at.duration_since(sent[0].at);
    assert!(
        waited >= Duration::from_secs(timeout_seconds(&world) - 1),
        "timed out after {waited:?}"
    );
    history.availability().check(3);
    world
        .until_condition(&path::istio("default"), "WorkloadsMigrated=False/WorkloadsFailed")
        .await;
    // The failed workload uses the old revision, which is not pruned after the grace period.
    world.sleep(Duration::from_secs(world.grace_seconds() * 2)).await;
    world
        .until_condition(&path::revision(OLD_REVISION), "InUse=True")
        .await;
    world
}

/// Formats a duration as Go does.
fn go_duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
