//! Tests a migration from the version change to its end: batches, counts, states, conditions and events.

use mainstay_api::{ConditionType, IstioSpec, MigrationState, Time, names};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{Observation, Requeue, Subject};
use serde_json::{Value, json};

use super::{
    NEW, OLD, batched, complete_rollouts, condition, events, finish_migration, istio, mesh,
    migration_actions, status, summary, upgrade, wait,
};
use crate::support::World;

#[test]
fn every_workload_moves_when_the_version_changes() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("labeled", &format!("istio.io/rev={OLD}"));
    world.namespace("silent", "");
    world.app("labeled", "cart", "app=cart", "");
    world.app("silent", "web", &format!("istio.io/rev={OLD}"), "");
    assert_eq!(world.settle(), Vec::<String>::new());
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        migration_actions(&executed),
        [
            format!("relabel namespace labeled to {NEW}"),
            format!("restart Deployment/labeled/cart on {NEW} in batch 1"),
        ]
    );
    assert_eq!(summary(&world), "InProgress 0+0+0 of 2, batch 1 of 2");
    let executed = complete_rollouts(&mut world);
    assert_eq!(
        migration_actions(&executed),
        [format!("relabel Deployment/silent/web on {NEW} in batch 2")]
    );
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 2 of 2");
    assert_eq!(world.namespace_labels("labeled"), format!("istio.io/rev={NEW}"));
    assert_eq!(
        condition(&world),
        format!("True AllWorkloadsMigrated: 2 of 2 workloads migrated to {NEW}, 0 skipped")
    );
    wait(&mut world, 31);
    wait(&mut world, 1);
    assert_eq!(world.revisions(), [NEW], "the old revision is pruned");
    world.settle_and_check_idle();
}

#[test]
fn a_workload_is_restarted_once_with_or_without_a_new_label() {
    let mut world = mesh(batched(5, "0s"));
    world.namespace("labeled", &format!("istio.io/rev={OLD}"));
    let cart = world.app("labeled", "cart", "app=cart", "");
    world.namespace("silent", "");
    let web = world.app("silent", "web", &format!("istio.io/rev={OLD}"), "");
    upgrade(&mut world, batched(5, "0s"));
    let template = |key: &WorkloadKey| &world.workloads[key]["spec"]["template"]["metadata"];
    assert_eq!(
        template(&cart)["annotations"][names::RESTARTED_AT],
        "2027-01-15T08:00:00Z"
    );
    assert_eq!(template(&cart)["labels"], json!({"app": "cart"}));
    assert_eq!(template(&web)["labels"][names::REVISION_LABEL], NEW);
    assert_eq!(
        template(&web)["annotations"],
        Value::Null,
        "the label changes the template already"
    );
    let mark = world.workloads[&web]["metadata"]["annotations"][names::MIGRATION_RECORD]
        .as_str()
        .unwrap();
    assert_eq!(
        mark,
        format!(r#"{{"batch":1,"revision":"{NEW}","startedAt":"2027-01-15T08:00:00Z"}}"#)
    );
}

#[test]
fn a_migration_without_workloads_completes_immediately() {
    let mut world = mesh(batched(1, "30s"));
    upgrade(&mut world, batched(1, "30s"));
    assert_eq!(summary(&world), "Completed 0+0+0 of 0, batch 0 of 0");
    world.settle_and_check_idle();
}

#[test]
fn workloads_already_on_the_target_are_left_alone() {
    let mut world = mesh(batched(1, "30s"));
    upgrade(&mut world, batched(1, "30s"));
    world.namespace("new", &format!("istio.io/rev={NEW}"));
    world.app("new", "cart", "app=cart", "");
    world.namespace("plain", "");
    world.app("plain", "tool", "app=tool", "");
    let executed = world.settle();
    assert_eq!(migration_actions(&executed), Vec::<&str>::new());
    assert_eq!(summary(&world), "Completed 0+0+0 of 0, batch 0 of 0");
}

#[test]
fn batches_have_the_configured_size_and_delay() {
    let settings = || batched(3, "30s");
    let mut world = mesh(settings());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for index in 0..10 {
        world.app("shop", &format!("app-{index}"), "", "");
    }
    let executed = upgrade(&mut world, settings());
    assert_eq!(
        migration_actions(&executed).len(),
        1 + 3,
        "the namespace and one batch"
    );
    assert_eq!(summary(&world), "InProgress 0+0+0 of 10, batch 1 of 4");
    let mut sizes = Vec::new();
    for batch in 1..=4 {
        let executed = complete_rollouts(&mut world);
        assert_eq!(
            migration_actions(&executed),
            Vec::<&str>::new(),
            "nothing starts before the delay"
        );
        let again = world.plan(&Subject::istio("default")).requeue;
        if batch < 4 {
            let due = world
                .snapshot
                .now
                .checked_add(jiff::SignedDuration::from_secs(30))
                .unwrap();
            assert_eq!(again, Requeue::At(due));
        }
        assert_eq!(migration_actions(&wait(&mut world, 29)), Vec::<&str>::new());
        sizes.push(migration_actions(&wait(&mut world, 1)).len());
    }
    assert_eq!(sizes, [3, 3, 1, 0]);
    assert_eq!(summary(&world), "Completed 10+0+0 of 10, batch 4 of 4");
}

#[test]
fn counts_follow_the_readiness_of_workloads() {
    let mut world = mesh(batched(3, "30s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..3)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, batched(3, "30s"));
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(status(&world).migrated_workloads, i32::try_from(index).unwrap());
        world.complete_rollout(key);
        world.settle();
    }
    assert_eq!(summary(&world), "Completed 3+0+0 of 3, batch 1 of 1");
    let status = status(&world);
    assert!(status.start_time.is_some() && status.completion_time.is_some());
}

#[test]
fn migration_states_are_reported_in_order() {
    let check = |comes_up: bool, expected: MigrationState| {
        let mut world = mesh(batched(1, "0s"));
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        world.app("shop", "cart", "", "");
        world.ready = false;
        upgrade(&mut world, batched(1, "0s"));
        let idle = status(&world);
        assert_eq!((idle.state, idle.start_time), (MigrationState::Idle, None));
        wait(&mut world, 60);
        world.deployment("istio-system", &format!("istiod-{NEW}"), 1, 1);
        world.settle();
        let begun = status(&world);
        assert_eq!(begun.state, MigrationState::InProgress);
        assert_eq!(begun.start_time.map(Time::timestamp), Some(world.snapshot.now));
        assert_eq!(begun.completion_time, None);
        wait(&mut world, 299);
        assert_eq!(status(&world), begun, "the status stays unchanged");
        if comes_up {
            complete_rollouts(&mut world);
        } else {
            wait(&mut world, 1);
        }
        let over = status(&world);
        assert_eq!(over.state, expected);
        assert_eq!(over.start_time, begun.start_time);
        assert_eq!(
            over.completion_time.map(Time::timestamp),
            Some(world.snapshot.now)
        );
        wait(&mut world, 3_600);
        assert_eq!(status(&world), over, "the status stays unchanged afterwards");
    };
    check(true, MigrationState::Completed);
    check(false, MigrationState::Failed);
}

#[test]
fn nothing_moves_before_the_new_revision_is_ready() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    world.ready = false;
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(migration_actions(&executed), Vec::<&str>::new());
    assert_eq!(summary(&world), "Idle 0+0+0 of 1, batch 0 of 0");
    assert_eq!(
        condition(&world),
        format!("False TargetRevisionNotReady: waiting for IstioRevision \"{NEW}\" to be ready")
    );
    world.deployment("istio-system", &format!("istiod-{NEW}"), 1, 1);
    assert_eq!(migration_actions(&world.settle()).len(), 2);
}

#[test]
fn lower_priorities_move_first_and_batches_contain_one_priority() {
    let settings = || batched(2, "0s");
    let mut world = mesh(settings());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for (name, batch) in [("a", "2"), ("b", "2"), ("c", "2"), ("d", "-1"), ("e", "0")] {
        world.app(
            "shop",
            name,
            "",
            &format!("sailoperator.io/migration-batch={batch}"),
        );
    }
    world.app("shop", "f", "", "");
    let mut order = vec![upgrade(&mut world, settings())];
    assert_eq!(summary(&world), "InProgress 0+0+0 of 6, batch 1 of 4");
    for _ in 0..3 {
        order.push(complete_rollouts(&mut world));
    }
    let names: Vec<Vec<&str>> = order
        .iter()
        .map(|executed| {
            let started = migration_actions(executed)
                .into_iter()
                .filter(|line| line.starts_with("restart"));
            started
                .map(|line| line.split(' ').nth(1).unwrap().rsplit('/').next().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(names, [vec!["d"], vec!["e", "f"], vec!["a", "b"], vec!["c"]]);
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Completed 6+0+0 of 6, batch 4 of 4");
}

#[test]
fn workloads_of_several_old_revisions_move_to_one() {
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    let held = || json!({"paused": true, "batched": {"delayBetweenBatches": "0s", "batchSize": 10}});
    let open = || batched(10, "0s");
    for version in ["v1.27.9", "v1.28.2"] {
        istio(&mut world, version, held());
        world.settle();
        let name = version.replace('.', "-");
        world.namespace(&format!("on-{name}"), &format!("istio.io/rev=default-{name}"));
        world.app(&format!("on-{name}"), "app", "", "");
        world.settle();
    }
    upgrade(&mut world, open());
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 1 of 1");
    wait(&mut world, 60);
    wait(&mut world, 60);
    assert_eq!(world.revisions(), [NEW]);
}

#[test]
fn two_istios_migrate_their_own_workloads() {
    let mut world = mesh(batched(1, "0s"));
    let other = |version: &str| {
        json!({"version": version, "namespace": "istio-system",
            "updateStrategy": {"type": "RevisionBased", "revisionTags": [], "workloadMigration": {"strategy": "Batched"}}})
    };
    world.apply::<IstioSpec>("other", other("v1.28.2"));
    world.settle();
    world.namespace("ours", &format!("istio.io/rev={OLD}"));
    world.app("ours", "cart", "", "");
    world.namespace("theirs", "istio.io/rev=other-v1-28-2");
    world.app("theirs", "cart", "", "");
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert!(
        migration_actions(&executed)
            .iter()
            .all(|line| !line.contains("theirs")),
        "{:?}",
        migration_actions(&executed)
    );
    world.apply::<IstioSpec>("other", other("v1.29.1"));
    let executed = world.settle();
    assert_eq!(
        migration_actions(&executed),
        [
            "relabel namespace theirs to other-v1-29-1".to_owned(),
            "restart Deployment/theirs/cart on other-v1-29-1 in batch 1".to_owned(),
        ]
    );
}

#[test]
fn without_a_migration_no_progress_is_reported() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    upgrade(&mut world, json!({"strategy": ""}));
    let istio = world.snapshot.istios().get("default").unwrap();
    assert_eq!(istio.status.workload_migration, None);
    assert_eq!(
        istio.status.conditions.find(&ConditionType::WorkloadsMigrated),
        None
    );
    let spec_in_place = json!({"version": "v1.29.1", "namespace": "istio-system",
        "updateStrategy": {"type": "InPlace", "workloadMigration": {"strategy": "Batched"}}});
    world.apply::<IstioSpec>("default", spec_in_place);
    world.settle();
    assert_eq!(status(&world).state, MigrationState::Idle);
    assert!(condition(&world).starts_with("False NotRevisionBased"));
}

#[test]
fn start_batches_and_end_are_reported_as_events() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    let mut executed = upgrade(&mut world, batched(1, "0s"));
    executed.extend(complete_rollouts(&mut world));
    executed.extend(complete_rollouts(&mut world));
    let about: Vec<_> = events(&executed)
        .into_iter()
        .filter(|line| line.contains("Migration") || line.contains("Batch"))
        .collect();
    assert_eq!(
        about,
        [
            format!("MigrationStarted: migrating 2 workloads to {NEW} in 2 batches (MigrationStarted)"),
            "BatchStarted: batch 1 of 2 (BatchStarted)".to_owned(),
            "BatchStarted: batch 2 of 2 (BatchStarted)".to_owned(),
            format!(
                "MigrationEnded: 2 of 2 workloads migrated to {NEW}, 0 failed, 0 skipped (MigrationEnded)"
            ),
        ]
    );
}
