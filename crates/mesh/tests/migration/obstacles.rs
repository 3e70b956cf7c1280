//! Tests workloads that a restart cannot migrate, which are skipped with a reason, and the number of
//! batches.

use mainstay_api::{MigrationState, Reason};
use mainstay_mesh::migration::WorkloadState;
use mainstay_mesh::preview;
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use serde_json::{Value, json};

use super::{
    NEW, OLD, batched, complete_rollouts, condition, finish_migration, istio, mesh, migration_actions,
    status, summary, upgrade, wait,
};
use crate::support::World;
use crate::support::workloads::deployment;

fn skip_reason(world: &World, key: &WorkloadKey) -> String {
    match world.snapshot.migration_index("default").unwrap().state(key) {
        Some(WorkloadState::Skipped(reason)) => reason.name().to_owned(),
        other => format!("{other:?}"),
    }
}

/// Adds a workload with injected pods and a template that names the old revision.
fn labeled(world: &mut World, name: &str, edit: impl FnOnce(&mut Value)) -> WorkloadKey {
    let key = world.app("shop", name, &format!("istio.io/rev={OLD}"), "");
    world.change_workload(&key, edit);
    key
}

#[test]
fn workloads_that_cannot_be_injected_are_skipped() {
    let kinds = || json!({"kinds": ["Deployment", "StatefulSet"], "batched": {"delayBetweenBatches": "0s"}});
    let mut world = mesh(kinds());
    world.namespace("shop", "");
    let moved = labeled(&mut world, "moved", |_| {});
    let host = labeled(&mut world, "host", |object| {
        object["spec"]["template"]["spec"] = json!({"hostNetwork": true});
    });
    let plain = labeled(&mut world, "plain", |_| {});
    world.complete_rollout_uninjected(&plain);
    let annotated = labeled(&mut world, "annotated", |object| {
        object["spec"]["template"]["metadata"]["annotations"] = json!({"sidecar.istio.io/inject": "false"});
    });
    let set = WorkloadKey::new("shop", WorkloadKind::StatefulSet, "db");
    world.workload(set.clone(), &format!("istio.io/rev={OLD}"), "");
    world.change_workload(&set, |object| {
        object["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    });
    world.namespace("off", &format!("istio.io/rev={OLD}"));
    let off = world.app("off", "cart", "", "");
    world.namespace("off", &format!("istio.io/rev={OLD} istio-injection=disabled"));
    let executed = upgrade(&mut world, kinds());
    let restarts: Vec<&str> = migration_actions(&executed)
        .into_iter()
        .filter(|step| !step.contains("namespace"))
        .collect();
    assert_eq!(restarts, [format!("relabel {moved} on {NEW} in batch 1")]);
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+5 of 6, batch 1 of 1");
    assert_eq!(skip_reason(&world, &host), "HostNetwork");
    assert_eq!(skip_reason(&world, &plain), "NotInjected");
    assert_eq!(skip_reason(&world, &annotated), "NoReference");
    assert_eq!(skip_reason(&world, &set), "UpdatesPartitioned");
    assert_eq!(skip_reason(&world, &off), "InjectionDisabled");
    println!("harden not-injectable: 5 kinds of workloads skipped with a reason, 0 failures");
    // A workload is skipped only as long as the reason applies.
    world.change_workload(&set, |object| {
        object["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    });
    assert_eq!(
        migration_actions(&world.settle()),
        [format!("relabel {set} on {NEW} in batch 2")]
    );
}

#[test]
fn workloads_with_malformed_annotations_are_skipped() {
    let mut world = mesh(batched(10, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let values = [
        ("skip-migration", "True"),
        ("skip-migration", "yes"),
        ("readiness-timeout", "10"),
        ("readiness-timeout", "-1s"),
        ("migration-batch", "first"),
    ];
    let keys: Vec<WorkloadKey> = values
        .iter()
        .enumerate()
        .map(|(index, (key, value))| {
            let annotation = format!("sailoperator.io/{key}={value}");
            world.app("shop", &format!("app-{index}"), "", &annotation)
        })
        .collect();
    let executed = upgrade(&mut world, batched(10, "0s"));
    assert_eq!(
        migration_actions(&executed),
        [format!("relabel namespace shop to {NEW}")]
    );
    for key in &keys {
        assert_eq!(skip_reason(&world, key), "InvalidAnnotation", "{key}");
    }
    println!("harden messages: {} malformed annotations reported", keys.len());
    world.change_workload(&keys[2], |object| {
        object["metadata"]["annotations"] = json!({"sailoperator.io/readiness-timeout": "10s"});
    });
    assert_eq!(
        migration_actions(&world.settle()),
        [format!("restart {} on {NEW} in batch 1", keys[2])]
    );
}

#[test]
fn namespaces_that_name_a_missing_revision_are_reported() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    world.namespace("lost", "istio.io/rev=no-such");
    upgrade(&mut world, batched(1, "0s"));
    let reported = "; namespaces that name a missing revision: lost (\"no-such\")";
    assert!(condition(&world).ends_with(reported), "{}", condition(&world));
    finish_migration(&mut world);
    assert!(condition(&world).ends_with(reported), "{}", condition(&world));
    world.namespace("lost", "");
    world.settle_and_check_idle();
    assert!(!condition(&world).contains("missing"), "{}", condition(&world));
}

#[test]
fn a_retry_restarts_a_workload_whose_pods_were_not_injected() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let cart = world.app("shop", "cart", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.complete_rollout_uninjected(&cart);
    world.settle();
    wait(&mut world, 300);
    assert_eq!(summary(&world), "Failed 0+1+0 of 1, batch 1 of 1");
    world.change_workload(&cart, |object| {
        object["metadata"]["annotations"] = json!({"sailoperator.io/migration": "retry"});
    });
    let executed = world.settle();
    assert_eq!(
        migration_actions(&executed),
        [format!("restart {cart} on {NEW} in batch 2")]
    );
    assert_eq!(summary(&world), "InProgress 0+0+0 of 1, batch 2 of 2");
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+0 of 1, batch 2 of 2");
    // A retry of a migrated workload restarts nothing.
    world.change_workload(&cart, |object| {
        object["metadata"]["annotations"] = json!({"sailoperator.io/migration": "retry"});
    });
    assert_eq!(migration_actions(&world.settle()), Vec::<&str>::new());
}

/// Checks that the number of batches in the status equals the current batch plus the planned ones, and that
/// the events named the batches that the status contained.
fn check_totals(world: &World) {
    check_events(world);
    let istio = world.snapshot.istios().get("default").unwrap();
    let planned = preview(&world.snapshot, istio).unwrap().batches.len();
    let batched = status(world).batched.unwrap_or_default();
    let total = usize::try_from(batched.total_batches - batched.current_batch).unwrap();
    assert_eq!(total, planned, "{}", summary(world));
}

/// Checks the batches in the events of the migration, and that the last one belongs to the status.
fn check_events(world: &World) {
    let mut last = 0;
    for event in &world.events {
        let (current, total) = (event.current_batch, event.total_batches);
        match event.reason {
            Reason::MigrationStarted => {
                let expected = format!(" in {total} batches");
                assert!(event.message.ends_with(&expected), "{event:?}");
            }
            Reason::BatchStarted => {
                assert_eq!(event.message, format!("batch {current} of {total}"));
                last = current;
            }
            _ => {}
        }
    }
    let current = status(world).batched.unwrap_or_default().current_batch;
    // The first batch of a revert has not started yet.
    assert!(current == 0 || last == current, "{last}, {}", summary(world));
}

fn apps(world: &mut World, count: usize) -> Vec<WorkloadKey> {
    (0..count)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect()
}

#[test]
fn totals_match_the_plan_when_workloads_are_added() {
    let mut world = mesh(batched(2, "30s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    apps(&mut world, 3);
    // These wait for their tag, two of them with a different priority.
    world.namespace("tagged", "istio.io/rev=default");
    for (name, batch) in [("a", "0"), ("b", "7"), ("c", "7")] {
        world.app(
            "tagged",
            name,
            "",
            &format!("sailoperator.io/migration-batch={batch}"),
        );
    }
    upgrade(&mut world, batched(2, "30s"));
    check_totals(&world);
    complete_rollouts(&mut world);
    check_totals(&world);
    world.namespace("late", "");
    for name in ["x", "y", "z"] {
        world.app("late", name, &format!("istio.io/rev={OLD}"), "");
    }
    world.settle();
    check_totals(&world);
    finish_migration(&mut world);
    assert_eq!(status(&world).state, MigrationState::Completed);
    check_totals(&world);
    println!(
        "harden totals: status and {} events equal the plan",
        world.events.len()
    );
}

#[test]
fn totals_match_the_plan_after_a_stop_and_a_pause() {
    let settings = |paused: bool| {
        json!({"failurePolicy": "FailFast", "paused": paused,
            "batched": {"batchSize": 2, "delayBetweenBatches": "0s", "readinessTimeout": "5m"}})
    };
    let mut world = mesh(settings(false));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys = apps(&mut world, 5);
    upgrade(&mut world, settings(false));
    world.complete_rollout(&keys[1]);
    world.settle();
    wait(&mut world, 300);
    assert_eq!(summary(&world), "Failed 1+1+0 of 5, batch 1 of 3");
    check_totals(&world);
    istio(&mut world, "v1.29.1", settings(true));
    world.settle();
    assert_eq!(
        summary(&world),
        "Failed 1+1+0 of 5, batch 1 of 3",
        "a pause does not undo the stop"
    );
    check_totals(&world);
    istio(&mut world, "v1.29.1", settings(false));
    world.settle();
    world.complete_rollout(&keys[0]);
    world.settle();
    check_totals(&world);
    istio(&mut world, "v1.29.1", settings(true));
    world.settle();
    world.app("shop", "late", &format!("istio.io/rev={OLD}"), "");
    world.delete_workload(&keys[4]);
    world.settle();
    check_totals(&world);
}

#[test]
fn a_revert_counts_only_workloads_that_moved() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    apps(&mut world, 4);
    upgrade(&mut world, batched(1, "0s"));
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 4+0+0 of 4, batch 4 of 4");
    // Migrate half of the workloads to another version, then revert.
    istio(&mut world, "v1.27.9", batched(1, "0s"));
    world.settle();
    complete_rollouts(&mut world);
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "InProgress 2+0+0 of 4, batch 3 of 4");
    istio(&mut world, "v1.29.1", batched(1, "0s"));
    world.settle();
    check_totals(&world);
    finish_migration(&mut world);
    // The third workload was restarted, but its pods were not replaced yet.
    assert_eq!(summary(&world), "Completed 2+0+0 of 2, batch 2 of 2");
    let index = world.snapshot.migration_index("default").unwrap();
    for name in ["app-2", "app-3"] {
        assert_eq!(index.state(&deployment("shop", name)), None, "{name}");
    }
    check_totals(&world);
}
