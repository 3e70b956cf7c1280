//! Moving workloads to a new revision, by plans alone: the proposal's unit and integration lists, each line a test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a panic is how a test fails, and settings are made where they are used"
)]

mod support;

use mainstay_api::{ConditionType, IstioSpec, MigrationState, Time, WorkloadMigrationStatus, names};
use mainstay_mesh::ledger::Standing;
use mainstay_mesh::snapshot::{Failure, Source, SourceState};
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use mainstay_mesh::{Again, ErrorClass, Observation, Subject};
use serde_json::{Value, json};
use support::World;
use support::workloads::deployment;

const OLD: &str = "default-v1-28-2";
const NEW: &str = "default-v1-29-1";

/// An Istio that moves workloads, with these settings on top.
fn istio(world: &mut World, version: &str, migration: Value) {
    let mut wanted = json!({"strategy": "Batched"});
    wanted
        .as_object_mut()
        .unwrap()
        .extend(migration.as_object().unwrap().clone());
    let spec = json!({"version": version, "namespace": "istio-system",
        "updateStrategy": {"type": "RevisionBased", "workloadMigration": wanted}});
    world.put::<IstioSpec>("default", spec);
}

/// A mesh on 1.28.2, settled.
fn mesh(migration: Value) -> World {
    let mut world = World::default();
    world.see(Observation::Source(Source::Workloads, SourceState::Ready));
    istio(&mut world, "v1.28.2", migration);
    world.settle();
    world
}

fn batched(size: i64, delay: &str) -> Value {
    json!({"batched": {"batchSize": size, "delayBetweenBatches": delay, "readinessTimeout": "5m"}})
}

/// The version string changes; gives what was done until nothing more can be done at this moment.
fn upgrade(world: &mut World, migration: Value) -> Vec<String> {
    istio(world, "v1.29.1", migration);
    world.settle()
}

fn status(world: &World) -> WorkloadMigrationStatus {
    let istio = world.snapshot.istios().get("default").unwrap();
    istio.status.workload_migration.clone().unwrap_or_default()
}

/// `state migrated/failed/skipped of total, batch of batches`.
fn shown(world: &World) -> String {
    let status = status(world);
    let batched = status.batched.unwrap_or_default();
    format!(
        "{:?} {}+{}+{} of {}, batch {} of {}",
        status.state,
        status.migrated_workloads,
        status.failed_workloads,
        status.skipped_workloads,
        status.total_workloads,
        batched.current_batch,
        batched.total_batches
    )
}

fn condition(world: &World) -> String {
    let istio = world.snapshot.istios().get("default").unwrap();
    let condition = istio.status.conditions.get(&ConditionType::WorkloadsMigrated);
    format!(
        "{:?} {}: {}",
        condition.status, condition.reason, condition.message
    )
}

/// The moves among what was done.
fn moves(done: &[String]) -> Vec<&str> {
    let word = |line: &&str| line.contains(": relabel ") || line.contains(": restart ");
    let lines = done.iter().map(String::as_str).filter(word);
    lines
        .filter_map(|line| Some(line.split_once(": ")?.1.split_once(" (")?.0))
        .collect()
}

fn events(done: &[String]) -> Vec<&str> {
    done.iter()
        .filter_map(|line| line.split_once("event "))
        .map(|(_, text)| text)
        .collect()
}

/// Everything that is moving comes up.
fn roll(world: &mut World) -> Vec<String> {
    let now = world.snapshot.now;
    let ledger = world.snapshot.ledger("default").unwrap();
    let keys: Vec<WorkloadKey> = ledger.moving(now).map(|(_, key)| key.clone()).collect();
    for key in keys {
        world.roll(&key);
    }
    world.settle()
}

/// Time passes, and whoever asked to be looked at again is.
fn wait(world: &mut World, seconds: i64) -> Vec<String> {
    world.advance(seconds);
    world.queue.insert(Subject::istio("default"));
    let known: Vec<Subject> = world.workloads.keys().cloned().map(Subject::Workload).collect();
    world.queue.extend(known);
    world.settle()
}

/// Rolls and waits until it is over.
fn finish(world: &mut World) {
    for _ in 0..100 {
        roll(world);
        wait(world, 30);
        if status(world).state != MigrationState::InProgress {
            return;
        }
    }
    panic!("no end: {}", shown(world));
}

#[test]
fn every_workload_moves_when_the_version_changes() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("labelled", &format!("istio.io/rev={OLD}"));
    world.namespace("silent", "");
    world.app("labelled", "cart", "app=cart", "");
    world.app("silent", "web", &format!("istio.io/rev={OLD}"), "");
    assert_eq!(world.settle(), Vec::<String>::new());
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        moves(&done),
        [
            format!("relabel namespace labelled to {NEW}"),
            format!("restart Deployment/labelled/cart on {NEW} in batch 1"),
        ]
    );
    assert_eq!(shown(&world), "InProgress 0+0+0 of 2, batch 1 of 2");
    let done = roll(&mut world);
    assert_eq!(
        moves(&done),
        [format!("relabel Deployment/silent/web on {NEW} in batch 2")]
    );
    roll(&mut world);
    assert_eq!(shown(&world), "Completed 2+0+0 of 2, batch 2 of 2");
    assert_eq!(world.labels_of("labelled"), format!("istio.io/rev={NEW}"));
    assert_eq!(
        condition(&world),
        format!("True AllWorkloadsMigrated: 2 of 2 workloads were moved to {NEW}, 0 skipped")
    );
    wait(&mut world, 31);
    wait(&mut world, 1);
    assert_eq!(world.revisions(), [NEW], "the old revision is pruned");
    world.settle_for_good();
}

#[test]
fn a_workload_that_needs_no_new_label_is_restarted_and_one_that_does_is_not_restarted_twice() {
    let mut world = mesh(batched(5, "0s"));
    world.namespace("labelled", &format!("istio.io/rev={OLD}"));
    let cart = world.app("labelled", "cart", "app=cart", "");
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
    let mark = world.workloads[&web]["metadata"]["annotations"][names::MIGRATION_MARK]
        .as_str()
        .unwrap();
    assert_eq!(
        mark,
        format!(r#"{{"batch":1,"revision":"{NEW}","startedAt":"2027-01-15T08:00:00Z"}}"#)
    );
}

#[test]
fn no_workloads_means_completed_at_once() {
    let mut world = mesh(batched(1, "30s"));
    upgrade(&mut world, batched(1, "30s"));
    assert_eq!(shown(&world), "Completed 0+0+0 of 0, batch 0 of 0");
    world.settle_for_good();
}

#[test]
fn workloads_already_on_the_target_are_left_alone() {
    let mut world = mesh(batched(1, "30s"));
    upgrade(&mut world, batched(1, "30s"));
    world.namespace("new", &format!("istio.io/rev={NEW}"));
    world.app("new", "cart", "app=cart", "");
    world.namespace("plain", "");
    world.app("plain", "tool", "app=tool", "");
    let done = world.settle();
    assert_eq!(moves(&done), Vec::<&str>::new());
    assert_eq!(shown(&world), "Completed 0+0+0 of 0, batch 0 of 0");
}

#[test]
fn batches_are_of_the_size_asked_for_and_apart_by_the_delay() {
    let terms = || batched(3, "30s");
    let mut world = mesh(terms());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for index in 0..10 {
        world.app("shop", &format!("app-{index}"), "", "");
    }
    let done = upgrade(&mut world, terms());
    assert_eq!(moves(&done).len(), 1 + 3, "the namespace and one batch");
    assert_eq!(shown(&world), "InProgress 0+0+0 of 10, batch 1 of 4");
    let mut sizes = Vec::new();
    for batch in 1..=4 {
        let done = roll(&mut world);
        assert_eq!(
            moves(&done),
            Vec::<&str>::new(),
            "nothing starts before the delay"
        );
        let again = world.plan(&Subject::istio("default")).again;
        if batch < 4 {
            let due = world
                .snapshot
                .now
                .checked_add(jiff::SignedDuration::from_secs(30))
                .unwrap();
            assert_eq!(again, Again::At(due));
        }
        assert_eq!(moves(&wait(&mut world, 29)), Vec::<&str>::new());
        sizes.push(moves(&wait(&mut world, 1)).len());
    }
    assert_eq!(sizes, [3, 3, 1, 0]);
    assert_eq!(shown(&world), "Completed 10+0+0 of 10, batch 4 of 4");
}

#[test]
fn counts_are_told_as_workloads_come_up() {
    let mut world = mesh(batched(3, "30s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..3)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, batched(3, "30s"));
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(status(&world).migrated_workloads, i32::try_from(index).unwrap());
        world.roll(key);
        world.settle();
    }
    assert_eq!(shown(&world), "Completed 3+0+0 of 3, batch 1 of 1");
    let status = status(&world);
    assert!(status.start_time.is_some() && status.completion_time.is_some());
}

#[test]
fn the_states_of_a_migration_in_their_order() {
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
        assert_eq!(begun.start_time.map(Time::moment), Some(world.snapshot.now));
        assert_eq!(begun.completion_time, None);
        wait(&mut world, 299);
        assert_eq!(status(&world), begun, "nothing changes meanwhile");
        if comes_up {
            roll(&mut world);
        } else {
            wait(&mut world, 1);
        }
        let over = status(&world);
        assert_eq!(over.state, expected);
        assert_eq!(over.start_time, begun.start_time);
        assert_eq!(over.completion_time.map(Time::moment), Some(world.snapshot.now));
        wait(&mut world, 3_600);
        assert_eq!(status(&world), over, "and nothing afterwards");
    };
    check(true, MigrationState::Completed);
    check(false, MigrationState::Failed);
}

#[test]
fn a_workload_that_does_not_come_up_fails_and_stops_nobody() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let bad = world.app("shop", "a-bad", "", "");
    world.app("shop", "b-good", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.stall(&bad);
    assert_eq!(moves(&wait(&mut world, 299)), Vec::<&str>::new());
    let done = wait(&mut world, 1);
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/shop/b-good on {NEW} in batch 2")]
    );
    assert!(
        events(&done).contains(
            &"!WorkloadFailed: Deployment/shop/a-bad: Readiness timeout exceeded after 5m0s: 1/2 replicas updated, 2 ready (WorkloadFailed)"
        ),
        "{:#?}",
        events(&done)
    );
    roll(&mut world);
    assert_eq!(shown(&world), "Failed 1+1+0 of 2, batch 2 of 2");
    let failure = status(&world).failures.remove(0);
    assert_eq!(
        (failure.kind.as_str(), failure.name.as_str()),
        ("Deployment", "a-bad")
    );
    assert_eq!(
        failure.reason,
        "Readiness timeout exceeded after 5m0s: 1/2 replicas updated, 2 ready"
    );
    assert!(condition(&world).starts_with("False WorkloadsFailed: 1 of 2 workloads did not come up"));
    assert_eq!(world.revisions(), [OLD, NEW], "old pods still run there");
    // It recovers later: then it was moved after all.
    world.roll(&bad);
    world.settle();
    assert_eq!(shown(&world), "Completed 2+0+0 of 2, batch 2 of 2");
    assert!(status(&world).failures.is_empty());
}

#[test]
fn a_workload_whose_new_pods_are_not_injected_fails() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let cart = world.app("shop", "cart", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.roll_uninjected(&cart);
    world.settle();
    assert_eq!(
        status(&world).state,
        MigrationState::InProgress,
        "ready is not enough"
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
    wait(&mut world, 60);
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
        "Readiness timeout exceeded after 12s: 0/2 replicas updated, 2 ready"
    );
}

#[test]
fn fail_fast_ends_after_the_running_batch() {
    let terms =
        || json!({"failurePolicy": "FailFast", "batched": {"batchSize": 2, "delayBetweenBatches": "0s"}});
    let mut world = mesh(terms());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..4)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, terms());
    world.roll(&keys[1]);
    world.settle();
    let done = wait(&mut world, 300);
    assert_eq!(moves(&done), Vec::<&str>::new());
    assert_eq!(shown(&world), "Failed 1+1+0 of 4, batch 1 of 1");
    assert_eq!(moves(&wait(&mut world, 3_600)), Vec::<&str>::new());
}

#[test]
fn the_decision_matrix_of_the_highest_version() {
    // The two versions a world has charts of: an update that stays within, and one that goes beyond. Row by row it is asked in `terms`.
    let check = |maximum: Option<&str>, migrates: bool| {
        let mut terms = batched(1, "0s");
        if let Some(maximum) = maximum {
            terms["batched"]["maxVersion"] = json!(maximum);
        }
        let mut world = mesh(terms.clone());
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        world.app("shop", "cart", "", "");
        let done = upgrade(&mut world, terms);
        assert_eq!(!moves(&done).is_empty(), migrates, "{maximum:?}");
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
    assert_eq!(shown(&world), "Idle 0+0+0 of 1, batch 0 of 0");
    assert_eq!(
        condition(&world),
        "False VersionAboveMaximum: 1.29.1 is above batched.maxVersion 1.29.1-rc.1: workloads stay where they are"
    );
    let world = check(Some("newest"), false);
    assert_eq!(
        condition(&world),
        "False InvalidMigrationSettings: batched.maxVersion: \"newest\" is no version"
    );
}

#[test]
fn settings_nobody_understands_move_nothing() {
    let check = |terms: Value, expected: &str| {
        let mut world = mesh(json!({}));
        world.namespace("shop", &format!("istio.io/rev={OLD}"));
        world.app("shop", "cart", "", "");
        assert_eq!(moves(&upgrade(&mut world, terms)), Vec::<&str>::new());
        assert_eq!(
            condition(&world),
            format!("False InvalidMigrationSettings: {expected}")
        );
        assert_eq!(world.revisions(), [OLD, NEW], "everything else goes on");
    };
    check(
        json!({"batched": {"batchSize": 0}}),
        "batched.batchSize is 0, and must be at least 1",
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
        "kinds: \"Job\" is none of Deployment, StatefulSet, DaemonSet",
    );
}

#[test]
fn defaults_are_one_at_a_time_half_a_minute_apart() {
    let mut world = mesh(json!({}));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    assert_eq!(moves(&upgrade(&mut world, json!({}))).len(), 2);
    roll(&mut world);
    assert_eq!(moves(&wait(&mut world, 29)).len(), 0);
    assert_eq!(moves(&wait(&mut world, 1)).len(), 1);
    assert_eq!(moves(&wait(&mut world, 299)).len(), 0);
    wait(&mut world, 1);
    assert_eq!(shown(&world), "Failed 1+1+0 of 2, batch 2 of 2");
}

#[test]
fn nothing_moves_before_the_new_revision_is_ready() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    world.ready = false;
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(moves(&done), Vec::<&str>::new());
    assert_eq!(shown(&world), "Idle 0+0+0 of 1, batch 0 of 0");
    assert_eq!(
        condition(&world),
        format!("False TargetRevisionNotReady: waiting for IstioRevision \"{NEW}\" to be ready")
    );
    world.deployment("istio-system", &format!("istiod-{NEW}"), 1, 1);
    assert_eq!(moves(&world.settle()).len(), 2);
}

#[test]
fn a_namespace_of_the_default_revision_names_the_new_one_afterwards() {
    // An Istio that was InPlace leaves a revision `default`; now it keeps one per version.
    let mut world = World::default();
    world.see(Observation::Source(Source::Workloads, SourceState::Ready));
    let spec = json!({"version": "v1.28.2", "namespace": "istio-system"});
    world.put::<IstioSpec>("default", spec);
    world.settle();
    world.namespace("shop", "istio-injection=enabled team=a");
    world.app("shop", "cart", "", "");
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        moves(&done),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("restart Deployment/shop/cart on {NEW} in batch 1"),
        ]
    );
    assert_eq!(world.labels_of("shop"), format!("istio.io/rev={NEW} team=a"));
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn a_template_that_asks_for_the_default_revision_names_the_new_one() {
    let mut world = World::default();
    world.see(Observation::Source(Source::Workloads, SourceState::Ready));
    world.put::<IstioSpec>(
        "default",
        json!({"version": "v1.28.2", "namespace": "istio-system"}),
    );
    world.settle();
    world.namespace("shop", "");
    let cart = world.app("shop", "cart", "sidecar.istio.io/inject=true", "");
    upgrade(&mut world, batched(1, "0s"));
    let labels = &world.workloads[&cart]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({"sidecar.istio.io/inject": "true", "istio.io/rev": NEW})
    );
}

#[test]
fn workloads_on_a_tag_are_restarted_once_it_has_moved_and_never_relabelled() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("prod", "Istio", "default");
    world.settle();
    world.namespace("tagged", "istio.io/rev=prod");
    world.app("tagged", "cart", "", "");
    world.namespace("injected", "istio-injection=enabled");
    world.app("injected", "web", "", "");
    world.namespace("silent", "");
    let tool = world.app("silent", "tool", "istio.io/rev=prod", "");
    world.ready = false;
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        shown(&world),
        "Idle 0+0+0 of 3, batch 0 of 0",
        "they wait for their tags"
    );
    world.deployment("istio-system", &format!("istiod-{NEW}"), 1, 1);
    let done = world.settle();
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/injected/web on {NEW} in batch 1")]
    );
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 3+0+0 of 3, batch 3 of 3");
    assert_eq!(world.labels_of("tagged"), "istio.io/rev=prod");
    assert_eq!(world.labels_of("injected"), "istio-injection=enabled");
    let labels = &world.workloads[&tool]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(*labels, json!({"istio.io/rev": "prod"}));
}

#[test]
fn who_is_left_alone_says_so_before_the_tag_has_moved() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("prod", "Istio", "default");
    world.settle();
    world.namespace("tagged", "istio.io/rev=prod");
    world.app("tagged", "cart", "", "");
    let audit = world.app("tagged", "audit", "", "sailoperator.io/skip-migration=true");
    world.ready = false;
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(shown(&world), "Idle 0+0+1 of 2, batch 0 of 0");
    let istio = world.snapshot.istios().get("default").unwrap().clone();
    let preview = mainstay_mesh::preview(&world.snapshot, &istio).unwrap();
    assert_eq!(
        preview.skipped,
        [(audit, mainstay_api::Reason::SkippedByAnnotation)]
    );
    assert_eq!(preview.batches.concat().len(), 1);
}

#[test]
fn a_tag_that_is_pinned_to_an_old_revision_keeps_its_workloads() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("stable", "IstioRevision", OLD);
    world.settle();
    world.namespace("pinned", "istio.io/rev=stable");
    let cart = world.app("pinned", "cart", "", "");
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(moves(&done), Vec::<&str>::new());
    assert_eq!(shown(&world), "Completed 0+0+1 of 1, batch 0 of 0");
    let ledger = world.snapshot.ledger("default").unwrap();
    assert_eq!(
        ledger.standing(&cart),
        Some(&Standing::Skipped(mainstay_api::Reason::PinnedByTag))
    );
    wait(&mut world, 3_600);
    assert_eq!(world.revisions(), [OLD, NEW]);
}

#[test]
fn what_is_to_be_left_alone_is_left_alone_and_said_why() {
    let mut world = mesh(batched(10, "0s"));
    let old = format!("istio.io/rev={OLD}");
    world.namespace("shop", &old);
    world.app("shop", "skipped", "", "sailoperator.io/skip-migration=true");
    let paused = world.app("shop", "paused", "", "");
    world.change_workload(&paused, |object| object["spec"]["paused"] = json!(true));
    let set = WorkloadKey {
        kind: WorkloadKind::StatefulSet,
        ..deployment("shop", "set")
    };
    world.workload(set.clone(), "", "");
    world.app("shop", "opted-out", "sidecar.istio.io/inject=false", "");
    world.put_namespace(
        "quiet",
        support::pairs(&old),
        support::pairs("sailoperator.io/skip-migration=true"),
    );
    world.app("quiet", "cart", "", "");
    world.app("shop", "moved", "", "");
    let done = upgrade(&mut world, batched(10, "0s"));
    assert_eq!(
        moves(&done),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("restart Deployment/shop/moved on {NEW} in batch 1"),
        ]
    );
    roll(&mut world);
    assert_eq!(shown(&world), "Completed 1+0+4 of 5, batch 1 of 1");
    let ledger = world.snapshot.ledger("default").unwrap();
    let why = |key: &WorkloadKey| match ledger.standing(key) {
        Some(Standing::Skipped(reason)) => reason.name().to_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(why(&deployment("shop", "skipped")), "SkippedByAnnotation");
    assert_eq!(why(&deployment("quiet", "cart")), "SkippedByAnnotation");
    assert_eq!(why(&paused), "WorkloadPaused");
    assert_eq!(why(&set), "KindNotSelected");
    assert_eq!(why(&deployment("shop", "opted-out")), "None");
    assert_eq!(world.labels_of("quiet"), old);
    // A paused one is moved when it is not paused any more.
    world.change_workload(&paused, |object| object["spec"]["paused"] = json!(false));
    assert_eq!(
        moves(&world.settle()),
        [format!("restart Deployment/shop/paused on {NEW} in batch 2")]
    );
}

#[test]
fn stateful_and_daemon_sets_move_when_asked_for() {
    let terms = || json!({"kinds": ["Deployment", "StatefulSet", "DaemonSet"], "batched": {"delayBetweenBatches": "0s"}});
    let mut world = mesh(terms());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let set = WorkloadKey {
        kind: WorkloadKind::StatefulSet,
        ..deployment("shop", "db")
    };
    world.workload(set.clone(), "", "");
    let stuck = WorkloadKey {
        kind: WorkloadKind::StatefulSet,
        ..deployment("shop", "manual")
    };
    world.workload(stuck.clone(), "", "");
    world.change_workload(&stuck, |object| {
        object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    });
    let done = upgrade(&mut world, terms());
    assert_eq!(
        moves(&done).last().copied(),
        Some(format!("restart {set} on {NEW} in batch 1").as_str())
    );
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 1+0+1 of 2, batch 1 of 1");
    let standing = world.snapshot.ledger("default").unwrap().standing(&stuck);
    assert_eq!(
        standing,
        Some(&Standing::Skipped(mainstay_api::Reason::UpdatesOnDelete))
    );
}

#[test]
fn lower_numbers_move_first_and_batches_do_not_mix_them() {
    let terms = || batched(2, "0s");
    let mut world = mesh(terms());
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
    let mut order = vec![upgrade(&mut world, terms())];
    assert_eq!(shown(&world), "InProgress 0+0+0 of 6, batch 1 of 4");
    for _ in 0..3 {
        order.push(roll(&mut world));
    }
    let names: Vec<Vec<&str>> = order
        .iter()
        .map(|done| {
            let started = moves(done).into_iter().filter(|line| line.starts_with("restart"));
            started
                .map(|line| line.split(' ').nth(1).unwrap().rsplit('/').next().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(names, [vec!["d"], vec!["e", "f"], vec!["a", "b"], vec!["c"]]);
    roll(&mut world);
    assert_eq!(shown(&world), "Completed 6+0+0 of 6, batch 4 of 4");
}

#[test]
fn a_workload_without_pods_gets_its_label_and_is_done() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("silent", "");
    let idle = world.app("silent", "idle", &format!("istio.io/rev={OLD}"), "");
    world.change_workload(&idle, |object| object["spec"]["replicas"] = json!(0));
    world.roll(&idle);
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let asleep = world.app("shop", "asleep", "", "");
    world.change_workload(&asleep, |object| object["spec"]["replicas"] = json!(0));
    world.roll(&asleep);
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        moves(&done),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("relabel Deployment/silent/idle on {NEW} in batch 1"),
        ]
    );
    world.roll(&idle);
    world.settle();
    assert_eq!(shown(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn a_workload_that_is_deleted_on_its_way_is_nobodys_failure() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let gone = world.app("shop", "a-gone", "", "");
    world.app("shop", "b-stays", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.delete_workload(&gone);
    let done = world.settle();
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/shop/b-stays on {NEW} in batch 1")],
        "it takes the free place"
    );
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn moved_workloads_stay_counted_when_they_are_deleted_or_falter_later() {
    let mut world = mesh(batched(2, "30s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..3)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    upgrade(&mut world, batched(2, "30s"));
    roll(&mut world);
    assert_eq!(shown(&world), "InProgress 2+0+0 of 3, batch 1 of 2");
    world.delete_workload(&keys[0]);
    world.change_workload(&keys[1], |object| object["status"]["readyReplicas"] = json!(0));
    world.pod_gone("shop", "app-1-0");
    world.settle();
    assert_eq!(shown(&world), "InProgress 2+0+0 of 3, batch 1 of 2");
    finish(&mut world);
    // In the end those that are there are counted.
    assert_eq!(shown(&world), "Completed 2+0+0 of 2, batch 2 of 2");
}

#[test]
fn pause_starts_nothing_new_and_resume_goes_on() {
    let terms = |paused: bool| json!({"paused": paused, "batched": {"delayBetweenBatches": "0s"}});
    let mut world = mesh(terms(false));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    upgrade(&mut world, terms(false));
    upgrade(&mut world, terms(true));
    assert_eq!(moves(&roll(&mut world)), Vec::<&str>::new());
    assert_eq!(shown(&world), "InProgress 1+0+0 of 2, batch 1 of 2");
    assert!(
        condition(&world).starts_with("False MigrationPaused"),
        "{}",
        condition(&world)
    );
    assert_eq!(moves(&wait(&mut world, 3_600)), Vec::<&str>::new());
    let done = upgrade(&mut world, terms(false));
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/shop/b on {NEW} in batch 2")]
    );
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 2+0+0 of 2, batch 2 of 2");
}

#[test]
fn a_new_target_in_the_middle_waits_for_those_under_way() {
    let mut world = World::default();
    world.see(Observation::Source(Source::Workloads, SourceState::Ready));
    let terms = || batched(1, "0s");
    istio(&mut world, "v1.27.9", terms());
    world.settle();
    world.namespace("shop", "istio.io/rev=default-v1-27-9");
    let first = world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    istio(&mut world, "v1.28.2", terms());
    world.settle();
    assert_eq!(status(&world).target_revision, OLD);
    let done = upgrade(&mut world, terms());
    assert_eq!(
        moves(&done),
        [format!("relabel namespace shop to {NEW}")],
        "the first one is still coming up"
    );
    assert_eq!(shown(&world), "InProgress 0+0+0 of 2, batch 0 of 2");
    world.roll(&first);
    let done = world.settle();
    // It came up with the labels that are there by now, so it needs no second restart.
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/shop/b on {NEW} in batch 1")]
    );
    finish(&mut world);
    assert_eq!(status(&world).state, MigrationState::Completed);
    wait(&mut world, 60);
    wait(&mut world, 60);
    assert_eq!(world.revisions(), [NEW]);
}

#[test]
fn several_old_revisions_end_in_one() {
    let mut world = World::default();
    world.see(Observation::Source(Source::Workloads, SourceState::Ready));
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
    finish(&mut world);
    assert_eq!(shown(&world), "Completed 2+0+0 of 2, batch 1 of 1");
    wait(&mut world, 60);
    wait(&mut world, 60);
    assert_eq!(world.revisions(), [NEW]);
}

#[test]
fn two_istios_move_their_own_workloads() {
    let mut world = mesh(batched(1, "0s"));
    let other = |version: &str| {
        json!({"version": version, "namespace": "istio-system",
            "updateStrategy": {"type": "RevisionBased", "revisionTags": [], "workloadMigration": {"strategy": "Batched"}}})
    };
    world.put::<IstioSpec>("other", other("v1.28.2"));
    world.settle();
    world.namespace("ours", &format!("istio.io/rev={OLD}"));
    world.app("ours", "cart", "", "");
    world.namespace("theirs", "istio.io/rev=other-v1-28-2");
    world.app("theirs", "cart", "", "");
    let done = upgrade(&mut world, batched(1, "0s"));
    assert!(
        moves(&done).iter().all(|line| !line.contains("theirs")),
        "{:?}",
        moves(&done)
    );
    world.put::<IstioSpec>("other", other("v1.29.1"));
    let done = world.settle();
    assert_eq!(
        moves(&done),
        [
            "relabel namespace theirs to other-v1-29-1".to_owned(),
            "restart Deployment/theirs/cart on other-v1-29-1 in batch 1".to_owned(),
        ]
    );
}

#[test]
fn an_istio_that_is_deleted_on_the_way_moves_nothing_more() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let first = world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    upgrade(&mut world, batched(1, "0s"));
    world.delete::<IstioSpec>("default");
    world.roll(&first);
    assert_eq!(moves(&world.settle()), Vec::<&str>::new());
}

#[test]
fn an_operator_that_has_just_started_goes_on_where_the_last_one_stopped() {
    let terms = || batched(2, "0s");
    let mut world = mesh(terms());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let keys: Vec<_> = (0..5)
        .map(|index| world.app("shop", &format!("app-{index}"), "", ""))
        .collect();
    istio(&mut world, "v1.29.1", terms());
    let mut restarted = 0;
    let mut touched = std::collections::BTreeMap::<String, usize>::new();
    // It dies after every single write.
    for _ in 0..400 {
        let subject = world.queue.pop_first();
        let Some(subject) = subject else {
            let now = world.snapshot.now;
            let moving = world
                .snapshot
                .ledger("default")
                .unwrap()
                .moving(now)
                .map(|(_, key)| key.clone());
            let moving: Vec<_> = moving.collect();
            if moving.is_empty() {
                break;
            }
            for key in moving {
                world.roll(&key);
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
        // Looking whether a release is in place is no write, and is done again by every operator.
        let wrote = plan
            .actions()
            .any(|action| !matches!(action, mainstay_mesh::Action::Install(_)));
        if wrote {
            restarted += 1;
            world = world.restarted();
            let everybody = world.snapshot.subjects();
            world.queue.extend(everybody);
            world.queue.extend(keys.iter().cloned().map(Subject::Workload));
            world.queue.insert(Subject::Namespace("shop".into()));
        }
    }
    assert!(restarted > 10, "{restarted}");
    assert_eq!(shown(&world), "Completed 5+0+0 of 5, batch 3 of 3");
    assert!(
        touched.len() == 5 && touched.values().all(|count| *count == 1),
        "{touched:#?}"
    );
}

#[test]
fn a_refused_workload_is_a_failure_and_its_slot_goes_to_others() {
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
            world.see(Observation::Failed(next, failure));
        } else {
            world.execute(&plan);
        }
    }
    assert_eq!(shown(&world), "InProgress 0+1+0 of 2, batch 1 of 1");
    let failure = status(&world).failures.remove(0);
    assert_eq!(
        failure.reason,
        "refused: admission webhook \"freeze.example.com\" denied the request: change freeze"
    );
    roll(&mut world);
    assert_eq!(shown(&world), "Failed 1+1+0 of 2, batch 1 of 1");
}

/// Executes what is queued, but `refuse` is refused for so many seconds.
fn settle_refusing(world: &mut World, refuse: impl Fn(&Subject) -> bool, seconds: i64) {
    for _ in 0..1000 {
        let Some(next) = world.queue.pop_first() else {
            return;
        };
        let plan = world.plan(&next);
        if !refuse(&next) || plan.is_empty() {
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
        world.see(Observation::Failed(next, failure));
    }
    panic!("never settled: {:#?}", status(world));
}

#[test]
fn more_refusals_than_a_status_holds_do_not_take_turns_in_it() {
    let mut world = mesh(batched(20, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    for number in 0..15 {
        world.app("shop", &format!("app-{number:02}"), "", "");
    }
    istio(&mut world, "v1.29.1", batched(20, "0s"));
    settle_refusing(&mut world, |subject| matches!(subject, Subject::Workload(_)), 600);
    assert_eq!(shown(&world), "Failed 0+15+0 of 15, batch 1 of 1");
    let said = status(&world).failures;
    assert_eq!(said.len(), 10);
    world.advance(60);
    world.queue.insert(Subject::istio("default"));
    assert_eq!(world.settle(), Vec::<String>::new(), "nothing new is to be said");
    assert_eq!(status(&world).failures, said);
}

#[test]
fn a_migration_held_back_past_the_moment_of_its_next_batch_waits_for_an_event() {
    let paused = |paused: bool| json!({"paused": paused, "batched": {"delayBetweenBatches": "30s"}});
    let mut world = mesh(paused(false));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    world.app("shop", "web", "", "");
    upgrade(&mut world, paused(false));
    roll(&mut world);
    assert_eq!(shown(&world), "InProgress 1+0+0 of 2, batch 1 of 2");
    istio(&mut world, "v1.29.1", paused(true));
    world.settle();
    wait(&mut world, 60);
    let plan = world.plan(&Subject::istio("default"));
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(plan.again, Again::OnEvent, "the moment has passed");
    istio(&mut world, "v1.29.1", paused(false));
    let done = world.settle();
    assert_eq!(
        moves(&done),
        [format!("restart Deployment/shop/web on {NEW} in batch 2")]
    );
}

#[test]
fn a_namespace_that_cannot_be_relabelled_holds_nobody_up() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("empty", &format!("istio.io/rev={OLD}"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "cart", "", "");
    istio(&mut world, "v1.29.1", batched(1, "0s"));
    let empty = Subject::Namespace("empty".into());
    settle_refusing(&mut world, |subject| *subject == empty, 600);
    assert_eq!(shown(&world), "InProgress 0+0+0 of 1, batch 1 of 1");
    roll(&mut world);
    assert_eq!(shown(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn pods_that_no_workload_made_are_named() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("batch", "");
    world.pod(
        "batch",
        "nightly-x",
        &format!("istio.io/rev={OLD}"),
        &format!("istio.io/rev={OLD}"),
    );
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(shown(&world), "Completed 0+0+0 of 0, batch 0 of 0");
    assert!(
        condition(&world).ends_with("; no workload to restart behind Pod/batch/nightly-x"),
        "{}",
        condition(&world)
    );
}

#[test]
fn a_workload_nothing_asks_a_proxy_for_is_not_robbed_of_it() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let cart = world.app("shop", "cart", "", "");
    world.namespace("shop", "");
    let done = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(moves(&done), Vec::<&str>::new());
    let standing = world.snapshot.ledger("default").unwrap().standing(&cart);
    assert_eq!(
        standing,
        Some(&Standing::Skipped(mainstay_api::Reason::NoReference))
    );
}

#[test]
fn without_a_migration_nothing_is_said_of_one() {
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
    let in_place = json!({"version": "v1.29.1", "namespace": "istio-system",
        "updateStrategy": {"type": "InPlace", "workloadMigration": {"strategy": "Batched"}}});
    world.put::<IstioSpec>("default", in_place);
    world.settle();
    assert_eq!(status(&world).state, MigrationState::Idle);
    assert!(condition(&world).starts_with("False NotRevisionBased"));
}

#[test]
fn people_are_told_of_begin_batches_and_end() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    world.app("shop", "a", "", "");
    world.app("shop", "b", "", "");
    let mut done = upgrade(&mut world, batched(1, "0s"));
    done.extend(roll(&mut world));
    done.extend(roll(&mut world));
    let about: Vec<_> = events(&done)
        .into_iter()
        .filter(|line| line.contains("Migration") || line.contains("Batch"))
        .collect();
    assert_eq!(
        about,
        [
            format!("MigrationStarted: moving 2 workloads to {NEW} in 2 batches (MigrationStarted)"),
            "BatchStarted: batch 1 of 2 (BatchStarted)".to_owned(),
            "BatchStarted: batch 2 of 2 (BatchStarted)".to_owned(),
            format!(
                "MigrationEnded: 2 of 2 workloads were moved to {NEW}, 0 failed, 0 skipped (MigrationEnded)"
            ),
        ]
    );
}
