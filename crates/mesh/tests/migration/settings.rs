//! Tests the effects of the migration settings and the handling of invalid settings.

use mainstay_mesh::Subject;
use serde_json::{Value, json};

use super::{
    NEW, OLD, batched, complete_rollouts, condition, istio, mesh, migration_actions, summary, upgrade, wait,
};
use crate::support::World;

#[test]
fn the_maximum_version_limits_the_migration() {
    // An upgrade from `OLD` to `NEW` with different maximum versions.
    let check = |maximum: Option<&str>, migrates: bool| {
        let mut settings = batched(1, "0s");
        if let Some(maximum) = maximum {
            settings["batched"]["maxVersion"] = json!(maximum);
        }
        let mut world = mesh(settings.clone());
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        world.app("shop", "cart", "", "");
        let executed = upgrade(&mut world, settings);
        assert_eq!(!migration_actions(&executed).is_empty(), migrates, "{maximum:?}");
        world
    };
    check(None, true);
    check(Some("1.29.999"), true);
    check(Some("v1.29.1"), true);
    check(Some("1.29.1"), true);
    check(Some("1.30.0"), true);
    check(Some("2.0.0"), true);
    check(Some("1.999.0"), true);
    check(Some("1.28.999"), false);
    check(Some("1.29.0"), false);
    let world = check(Some("1.29.1-rc.1"), false);
    assert_eq!(summary(&world), "Idle 0+0+0 of 1, batch 0 of 0");
    assert_eq!(
        condition(&world),
        "False VersionAboveMaximum: 1.29.1 is above batched.maxVersion 1.29.1-rc.1; workloads and managed tags stay"
    );
    let world = check(Some("newest"), false);
    assert_eq!(
        condition(&world),
        "False InvalidMigrationSettings: batched.maxVersion: \"newest\" is not a version"
    );
}

fn target(world: &World, tag: &str) -> String {
    let tag = world.snapshot.tags().get(tag).unwrap();
    tag.status.istio_revision.clone()
}

#[test]
fn managed_tags_stay_below_the_maximum_version() {
    let settings = |maximum: &str| {
        let mut settings = batched(1, "0s");
        settings["batched"]["maxVersion"] = json!(maximum);
        settings
    };
    let mut world = mesh(settings("1.28.999"));
    world.tag("own", "Istio", "default");
    world.settle();
    world.namespace("shop", "istio-injection=enabled");
    world.app("shop", "cart", "", "");
    assert_eq!(
        migration_actions(&upgrade(&mut world, settings("1.28.999"))),
        [""; 0]
    );
    assert_eq!(target(&world, "default"), OLD);
    assert_eq!(target(&world, "own"), NEW, "a user's own tag follows");
    assert_eq!(
        world.conditions(&Subject::tag("default"))[1],
        "Reconciled=True/Reconciled: stays on IstioRevision \"default-v1-28-2\": 1.29.1 is above \
         batched.maxVersion 1.28.999; workloads and managed tags stay"
    );
    // An invalid maximum may be any version.
    istio(&mut world, "v1.29.1", settings("newest"));
    wait(&mut world, 3600);
    assert_eq!(target(&world, "default"), OLD);
    assert_eq!(world.revisions(), [OLD, NEW], "the tag keeps the old one");
    istio(&mut world, "v1.29.1", settings("1.29.999"));
    assert_eq!(
        migration_actions(&world.settle()),
        [format!("restart Deployment/shop/cart on {NEW} in batch 1")]
    );
    assert_eq!(target(&world, "default"), NEW);
}

#[test]
fn invalid_settings_migrate_nothing() {
    let check = |settings: Value, expected: &str| {
        let mut world = mesh(json!({}));
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        world.app("shop", "cart", "", "");
        assert_eq!(
            migration_actions(&upgrade(&mut world, settings)),
            Vec::<&str>::new()
        );
        assert_eq!(
            condition(&world),
            format!("False InvalidMigrationSettings: {expected}")
        );
        assert_eq!(world.revisions(), [OLD, NEW], "everything else is reconciled");
    };
    check(
        json!({"batched": {"batchSize": 0}}),
        "batched.batchSize is 0, must be at least 1",
    );
    check(
        json!({"batched": {"delayBetweenBatches": "soon"}}),
        "batched.delayBetweenBatches: time: invalid duration \"soon\"",
    );
    check(
        json!({"batched": {"readinessTimeout": "-5m"}}),
        "batched.readinessTimeout must not be negative",
    );
    check(
        json!({"kinds": ["Deployment", "Job"]}),
        "kinds: \"Job\" is not one of Deployment, StatefulSet, DaemonSet",
    );
}

#[test]
fn batch_size_and_delay_have_defaults() {
    let mut world = mesh(json!({}));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    assert_eq!(migration_actions(&upgrade(&mut world, json!({}))).len(), 2);
    complete_rollouts(&mut world);
    assert_eq!(migration_actions(&wait(&mut world, 29)).len(), 0);
    assert_eq!(migration_actions(&wait(&mut world, 1)).len(), 1);
    assert_eq!(migration_actions(&wait(&mut world, 299)).len(), 0);
    wait(&mut world, 1);
    assert_eq!(summary(&world), "Failed 1+1+0 of 2, batch 2 of 2");
}
