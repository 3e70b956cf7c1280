//! Tests changes during a migration: deleted workloads, pauses, new targets and operator restarts.

use mainstay_api::{IstioSpec, MigrationState};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{Observation, Requeue, Subject};
use serde_json::json;

use super::{
    NEW, OLD, batched, complete_rollouts, condition, finish_migration, istio, mesh, migration_actions,
    status, summary, upgrade, wait,
};
use crate::support::World;

#[test]
fn a_workload_without_pods_is_only_relabeled() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("silent", "");
    let idle = world.app("silent", "idle", &format!("istio.io/rev={OLD}"), "");
    world.change_workload(&idle, |object| object["spec"]["replicas"] = json!(0));
    world.complete_rollout(&idle);
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let asleep = world.app("shop", "asleep", "", "");
    world.change_workload(&asleep, |object| object["spec"]["replicas"] = json!(0));
    world.complete_rollout(&asleep);
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        migration_actions(&executed),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("relabel Deployment/silent/idle on {NEW} in batch 1"),
        ]
    );
    world.complete_rollout(&idle);
    world.settle();
    assert_eq!(summary(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn a_workload_deleted_during_its_migration_is_not_a_failure() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let gone = world.app("shop", "a-gone", "", "");
    world.app("shop", "b-stays", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.delete_workload(&gone);
    let executed = world.settle();
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/shop/b-stays on {NEW} in batch 1")],
        "the next workload uses the free capacity"
    );
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn migrated_workloads_stay_counted_when_deleted_or_unready() {
    let mut world = mesh(batched(2, "30s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..3)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, batched(2, "30s"));
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "InProgress 2+0+0 of 3, batch 1 of 2");
    world.delete_workload(&keys[0]);
    world.change_workload(&keys[1], |object| object["status"]["readyReplicas"] = json!(0));
    world.pod_gone("shop", "app-1-0");
    world.settle();
    assert_eq!(summary(&world), "InProgress 2+0+0 of 3, batch 1 of 2");
    finish_migration(&mut world);
    // Once the migration has completed, only existing workloads are counted.
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 2 of 2");
}

#[test]
fn a_paused_migration_starts_no_batch_until_resumed() {
    let settings = |paused: bool| json!({"paused": paused, "batched": {"delayBetweenBatches": "0s"}});
    let mut world = mesh(settings(false));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    upgrade(&mut world, settings(false));
    upgrade(&mut world, settings(true));
    assert_eq!(
        migration_actions(&complete_rollouts(&mut world)),
        Vec::<&str>::new()
    );
    assert_eq!(summary(&world), "InProgress 1+0+0 of 2, batch 1 of 2");
    assert!(
        condition(&world).starts_with("False MigrationPaused"),
        "{}",
        condition(&world)
    );
    assert_eq!(migration_actions(&wait(&mut world, 3_600)), Vec::<&str>::new());
    let executed = upgrade(&mut world, settings(false));
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/shop/b on {NEW} in batch 2")]
    );
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 2 of 2");
}

#[test]
fn a_new_target_waits_for_restarting_workloads() {
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    let settings = || batched(1, "0s");
    istio(&mut world, "v1.27.9", settings());
    world.settle();
    world.namespace("shop", "istio.io/rev=default-v1-27-9");
    let first = world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    istio(&mut world, "v1.28.2", settings());
    world.settle();
    assert_eq!(status(&world).target_revision, OLD);
    let executed = upgrade(&mut world, settings());
    assert_eq!(
        migration_actions(&executed),
        [format!("relabel namespace shop to {NEW}")],
        "the first workload is not ready yet"
    );
    assert_eq!(summary(&world), "InProgress 0+0+0 of 2, batch 0 of 2");
    world.complete_rollout(&first);
    let executed = world.settle();
    // Its new pods were injected according to the new labels, so it needs no second restart.
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/shop/b on {NEW} in batch 1")]
    );
    finish_migration(&mut world);
    assert_eq!(status(&world).state, MigrationState::Completed);
    wait(&mut world, 60);
    wait(&mut world, 60);
    assert_eq!(world.revisions(), [NEW]);
}

#[test]
fn a_deleted_istio_migrates_nothing() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let first = world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.delete::<IstioSpec>("default");
    world.complete_rollout(&first);
    assert_eq!(migration_actions(&world.settle()), Vec::<&str>::new());
}

#[test]
fn a_restarted_operator_continues_the_migration() {
    let settings = || batched(2, "0s");
    let mut world = mesh(settings());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..5)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    istio(&mut world, "v1.29.1", settings());
    let mut restarted = 0;
    let mut touched = std::collections::BTreeMap::<String, usize>::new();
    // The operator restarts after every single write.
    for _ in 0..400 {
        let subject = world.queue.pop_first();
        let Some(subject) = subject else {
            let now = world.snapshot.now;
            let moving = world
                .snapshot
                .migration_index("default")
                .unwrap()
                .moving(now)
                .map(|(_, key)| key.clone());
            let moving: Vec<_> = moving.collect();
            if moving.is_empty() {
                break;
            }
            for key in moving {
                world.complete_rollout(&key);
            }
            continue;
        };
        let mut plan = world.plan(&subject);
        plan.steps.truncate(1);
        if let Some(line) = plan
            .actions()
            .next()
            .map(ToString::to_string)
            .filter(|line| line.starts_with("restart"))
        {
            *touched.entry(line).or_default() += 1;
        }
        world.execute(&plan);
        // Every operator compares releases after its start, which writes nothing if they are unchanged.
        let wrote = plan
            .actions()
            .any(|action| !matches!(action, mainstay_mesh::Action::Install(_)));
        if wrote {
            restarted += 1;
            world = world.with_restarted_operator();
            let all = world.snapshot.subjects();
            world.queue.extend(all);
            world.queue.extend(keys.iter().cloned().map(Subject::Workload));
            world.queue.insert(Subject::Namespace("shop".into()));
        }
    }
    assert!(restarted > 10, "{restarted}");
    assert_eq!(summary(&world), "Completed 5+0+0 of 5, batch 3 of 3");
    assert!(
        touched.len() == 5 && touched.values().all(|count| *count == 1),
        "{touched:#?}"
    );
}

#[test]
fn a_migration_held_past_the_time_of_its_next_batch_waits_for_an_event() {
    let paused = |paused: bool| json!({"paused": paused, "batched": {"delayBetweenBatches": "30s"}});
    let mut world = mesh(paused(false));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    world.app("shop", "web", "", "");
    upgrade(&mut world, paused(false));
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "InProgress 1+0+0 of 2, batch 1 of 2");
    istio(&mut world, "v1.29.1", paused(true));
    world.settle();
    wait(&mut world, 60);
    let plan = world.plan(&Subject::istio("default"));
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(
        plan.requeue,
        Requeue::OnEvent,
        "the time of the next batch has passed"
    );
    istio(&mut world, "v1.29.1", paused(false));
    let executed = world.settle();
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/shop/web on {NEW} in batch 2")]
    );
}
