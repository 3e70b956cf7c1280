//! Tags: when the new revision is ready, they move, and workloads are restarted without a change of labels.

use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

pub async fn a_tag_moves_before_workloads_and_labels_are_kept(world: World) -> World {
    let tags = json!({"spec": {"updateStrategy": {"revisionTags": ["stable"]}}});
    world
        .create(fixtures::merged(
            istio(&world, batched(&world, 2, json!({}))),
            tags,
        ))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    // The Istio creates the tag `stable`, and a user creates the tag `prod`.
    world.create(fixtures::tag("prod", "Istio", "default")).await;
    for tag in ["stable", "prod"] {
        world.until_condition(&path::tag(tag), "Reconciled=True").await;
    }
    let stable = injected_apps(&world, "istio.io/rev=stable", &["cart", "web"]).await;
    let prod = injected_apps(&world, "istio.io/rev=prod", &["cart"]).await;
    let silent = world.namespace("").await;
    create_app(&world, &silent, "tagged", "istio.io/rev=stable").await;
    until_served_by(&world, &silent, OLD_REVISION).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "4+0+0 of 4"
    );
    for (space, label) in [
        (&stable, json!("stable")),
        (&prod, json!("prod")),
        (&silent, json!(null)),
    ] {
        until_served_by(&world, space, NEW_REVISION).await;
        assert_eq!(namespace_label(&world, space, "istio.io/rev").await, label);
    }
    assert_eq!(
        template_metadata(&world, &silent, "tagged").await["labels"]["istio.io/rev"],
        "stable"
    );
    until_old_revision_is_deleted(&world).await;
    let history = log.stop_and_check(&world).await;
    let first = history.migrations()[0].version;
    let ready = history.first_version("IstioRevision", NEW_REVISION, |revision| {
        revision["status"]["state"] == "Healthy"
            || crate::support::world::has_condition(revision, "Ready=True")
    });
    for tag in ["stable", "prod"] {
        let moved = history.first_version("IstioRevisionTag", tag, |tag| {
            tag["status"]["istioRevision"] == NEW_REVISION
        });
        assert!(
            moved.is_some_and(|moved| moved < first),
            "{tag} moved at version {moved:?}, the first workload migrated at {first}"
        );
        assert!(moved > ready, "{tag} moved before the revision was ready");
    }
    for space in [&stable, &prod] {
        let untouched = history.first_version("Namespace", space, |space| {
            space["metadata"]["labels"]["istio.io/rev"] == NEW_REVISION
        });
        assert_eq!(untouched, None);
    }
    world
}
