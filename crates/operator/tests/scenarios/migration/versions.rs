//! `maxVersion`: a higher version is installed, but no workload migrates to it until the maximum allows it.

use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

async fn set_max_version(world: &World, version: &str) {
    patch_migration(world, json!({"batched": {"maxVersion": version}})).await;
}

/// Checks that no workload migrates, and that a condition reports this reason and message.
async fn check_not_migrated(world: &World, space: &str, why: &str, words: &str) {
    let istio = world
        .until_object(&path::istio("default"), why, |istio| {
            let conditions = istio["status"]["conditions"].to_string();
            istio["status"]["observedGeneration"] == istio["metadata"]["generation"]
                && conditions.contains(why)
                && conditions.contains(words)
        })
        .await;
    world.settle().await;
    assert_eq!(istio["status"]["workloadMigration"]["state"], "Idle");
    assert_eq!(namespace_label(world, space, "istio.io/rev").await, OLD_REVISION);
    until_served_by(world, space, OLD_REVISION).await;
}

pub async fn no_workload_migrates_to_a_version_above_the_maximum(world: World) -> World {
    let highest = json!({"batched": {"maxVersion": "1.28.999"}});
    create_mesh(&world, batched(&world, 2, highest)).await;
    let space = injected_apps(&world, &format!("istio.io/rev={OLD_REVISION}"), &["cart", "web"]).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    world.until_state(&path::revision(NEW_REVISION), "Healthy").await;
    let words = |highest: &str| {
        format!("1.29.1 is above batched.maxVersion {highest}; workloads and managed tags stay")
    };
    check_not_migrated(&world, &space, "VersionAboveMaximum", &words("1.28.999")).await;
    // 1.29.0 allows only this patch version, not all of 1.29.
    set_max_version(&world, "1.29.0").await;
    check_not_migrated(&world, &space, "VersionAboveMaximum", &words("1.29.0")).await;
    let history = log.stop_and_check(&world).await;
    assert_eq!(history.migrations(), []);
    assert_eq!(history.template_changes(&space, "cart"), 0);
    // The maximum is inclusive.
    set_max_version(&world, "1.29.1").await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "2+0+0 of 2"
    );
    until_served_by(&world, &space, NEW_REVISION).await;
    until_old_revision_is_deleted(&world).await;
    world
}
