//! Tests workloads that are not ready in time, rejected or not injected. They are reported and do not block
//! others.

use mainstay_api::MigrationState;
use mainstay_mesh::snapshot::{Failure, Source, SourceState};
use mainstay_mesh::{ErrorClass, Observation, Subject};
use serde_json::json;

use super::{
    NEW, OLD, batched, complete_rollouts, condition, events, istio, mesh, migration_actions, status, summary,
    upgrade, wait,
};
use crate::support::World;

#[test]
fn a_workload_that_is_not_ready_in_time_fails_and_does_not_block_others() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let bad = world.app("shop", "a-bad", "", "");
    world.app("shop", "b-good", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.stall_rollout(&bad);
    assert_eq!(migration_actions(&wait(&mut world, 299)), Vec::<&str>::new());
    let executed = wait(&mut world, 1);
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/shop/b-good on {NEW} in batch 2")]
    );
    assert!(
        events(&executed).contains(
            &"!WorkloadFailed: Deployment/shop/a-bad: Readiness timeout exceeded after 5m0s: 1 of 2 replicas updated, 2 old replicas left (WorkloadFailed)"
        ),
        "{:#?}",
        events(&executed)
    );
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Failed 1+1+0 of 2, batch 2 of 2");
    let failure = status(&world).failures.remove(0);
    assert_eq!(
        (failure.kind.as_str(), failure.name.as_str()),
        ("Deployment", "a-bad")
    );
    assert_eq!(
        failure.reason,
        "Readiness timeout exceeded after 5m0s: 1 of 2 replicas updated, 2 old replicas left"
    );
    assert!(condition(&world).starts_with("False WorkloadsFailed: 1 of 2 workloads not ready on "));
    assert_eq!(world.revisions(), [OLD, NEW], "old pods still run there");
    // A workload that becomes ready after its timeout counts as migrated.
    world.complete_rollout(&bad);
    world.settle();
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 2 of 2");
    assert!(status(&world).failures.is_empty());
}

#[test]
fn a_workload_whose_new_pods_are_not_injected_fails() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let cart = world.app("shop", "cart", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.complete_rollout_uninjected(&cart);
    world.settle();
    assert_eq!(
        status(&world).state,
        MigrationState::InProgress,
        "a ready workload without a proxy is not migrated"
    );
    wait(&mut world, 300);
    let failure = status(&world).failures.remove(0);
    assert_eq!(
        failure.reason,
        format!("Readiness timeout exceeded after 5m0s: 0/2 pods were injected by {NEW}")
    );
}

#[test]
fn only_the_ten_latest_failures_are_kept() {
    let mut world = mesh(batched(20, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for index in 0..12 {
        world.app(
            "shop",
            &format!("app-{index:02}"),
            "",
            &format!("sailoperator.io/readiness-timeout={}s", 10 + index),
        );
    }
    upgrade(&mut world, batched(20, "0s"));
    let executed = wait(&mut world, 60);
    let reported: Vec<&str> = events(&executed)
        .into_iter()
        .filter(|event| event.starts_with("!WorkloadFailed"))
        .collect();
    assert_eq!(reported.len(), 11, "{reported:#?}");
    assert_eq!(
        reported[10],
        "!WorkloadFailed: 2 more workloads failed; the status lists the latest 10 (WorkloadFailed)"
    );
    let status = status(&world);
    assert_eq!(status.failed_workloads, 12);
    let names: Vec<_> = status
        .failures
        .iter()
        .map(|failure| failure.name.as_str())
        .collect();
    assert_eq!(names.first().copied(), Some("app-02"));
    assert_eq!(names.last().copied(), Some("app-11"));
    assert_eq!(names.len(), 10);
    assert_eq!(
        status.failures[0].reason,
        "Readiness timeout exceeded after 12s: 0 of 2 replicas updated, 2 old replicas left"
    );
}

#[test]
fn fail_fast_ends_after_the_running_batch() {
    let settings =
        || json!({"failurePolicy": "FailFast", "batched": {"batchSize": 2, "delayBetweenBatches": "0s"}});
    let mut world = mesh(settings());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..4)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, settings());
    world.complete_rollout(&keys[1]);
    world.settle();
    let executed = wait(&mut world, 300);
    assert_eq!(migration_actions(&executed), Vec::<&str>::new());
    assert_eq!(summary(&world), "Failed 1+1+0 of 4, batch 1 of 2");
    assert_eq!(migration_actions(&wait(&mut world, 3_600)), Vec::<&str>::new());
}

#[test]
fn a_rejected_workload_fails_and_releases_its_capacity() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let denied = world.app("shop", "a-denied", "", "");
    world.app("shop", "b-good", "", "");
    istio(&mut world, "v1.29.1", batched(1, "0s"));
    let subject = Subject::Workload(denied.clone());
    for _ in 0..100 {
        let Some(next) = world.queue.pop_first() else {
            break;
        };
        let plan = world.plan(&next);
        if next == subject && !plan.is_empty() {
            let failure = Failure {
                action: plan.steps[0].action.clone(),
                class: ErrorClass::Other,
                message: "admission webhook \"freeze.example.com\" denied the request: change freeze".into(),
                retry_at: world
                    .snapshot
                    .now
                    .checked_add(jiff::SignedDuration::from_secs(10))
                    .unwrap(),
            };
            world.observe(Observation::Failed(next, failure));
        } else {
            world.execute(&plan);
        }
    }
    assert_eq!(summary(&world), "InProgress 0+1+0 of 2, batch 1 of 1");
    let failure = status(&world).failures.remove(0);
    assert_eq!(
        failure.reason,
        "rejected: admission webhook \"freeze.example.com\" denied the request: change freeze"
    );
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Failed 1+1+0 of 2, batch 1 of 1");
}

/// Executes the queued plans, except those of subjects that `rejects` matches, which fail with a retry
/// after this many seconds.
fn settle_rejecting(world: &mut World, rejects: impl Fn(&Subject) -> bool, seconds: i64) {
    for _ in 0..1000 {
        let Some(next) = world.queue.pop_first() else {
            return;
        };
        let plan = world.plan(&next);
        if !rejects(&next) || plan.is_empty() {
            world.execute(&plan);
            continue;
        }
        let retry_at = world
            .snapshot
            .now
            .checked_add(jiff::SignedDuration::from_secs(seconds));
        let failure = Failure {
            action: plan.steps[0].action.clone(),
            class: ErrorClass::Other,
            message: "denied".into(),
            retry_at: retry_at.unwrap(),
        };
        world.observe(Observation::Failed(next, failure));
    }
    panic!("never settled: {:#?}", status(world));
}

#[test]
fn more_rejections_than_the_maximum_do_not_alternate() {
    let mut world = mesh(batched(20, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for number in 0..15 {
        world.app("shop", &format!("app-{number:02}"), "", "");
    }
    istio(&mut world, "v1.29.1", batched(20, "0s"));
    settle_rejecting(&mut world, |subject| matches!(subject, Subject::Workload(_)), 600);
    assert_eq!(summary(&world), "Failed 0+15+0 of 15, batch 1 of 1");
    let failures = status(&world).failures;
    assert_eq!(failures.len(), 10);
    world.advance(60);
    world.queue.insert(Subject::istio("default"));
    assert_eq!(world.settle(), Vec::<String>::new(), "nothing new to report");
    assert_eq!(status(&world).failures, failures);
}

#[test]
fn a_namespace_that_cannot_be_relabeled_does_not_block_others() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("empty", &format!("istio.io/rev={OLD}"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    istio(&mut world, "v1.29.1", batched(1, "0s"));
    let empty = Subject::Namespace("empty".into());
    settle_rejecting(&mut world, |subject| *subject == empty, 600);
    assert_eq!(summary(&world), "InProgress 0+0+0 of 1, batch 1 of 1");
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

/// An operator that starts without permission to list pods observes no pod on an old revision.
#[test]
fn a_migration_waits_for_every_source() {
    for source in [Source::Namespaces, Source::Pods, Source::Workloads] {
        let mut world = mesh(batched(1, "0s"));
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        let app = world.app("shop", "a", "", "");
        let before = status(&world);
        world.fail_source(source, "forbidden");
        if source == Source::Pods {
            world.remove_pods(&app);
        }
        let executed = upgrade(&mut world, batched(1, "0s"));
        assert_eq!(migration_actions(&executed), Vec::<&str>::new(), "{source:?}");
        let expected = format!(
            "Unknown WorkloadsUnreadable: {} cannot be read: forbidden",
            source.name()
        );
        assert_eq!(condition(&world), expected);
        assert_eq!(status(&world), before, "{source:?}");
        // The pods are injected according to the labels of the namespace, which must not have changed.
        world.complete_rollout(&app);
        world.observe(Observation::Source(source, SourceState::Ready));
        let executed = world.settle();
        assert_eq!(
            migration_actions(&executed),
            [
                format!("relabel namespace shop to {NEW}"),
                format!("restart Deployment/shop/a on {NEW} in batch 1"),
            ],
            "{source:?}"
        );
    }
}
