//! Mutated plans, at least one per invariant: the checker must find each violation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "../../mesh/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use mainstay_api::{ConditionStatus, RevisionSpec, TagSpec, Time, names};
use mainstay_check::{Invariant, check};
use mainstay_mesh::plan::{Change, NewStatus, Precondition, ReleaseKey};
use mainstay_mesh::snapshot::{ReleaseFact, Source, SourceState};
use mainstay_mesh::{Action, Observation, Plan, Step, Subject};
use serde_json::{Value, json};
use support::{World, revision_spec};

fn revision_based(version: &str, tags: &[&str]) -> Value {
    json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": tags}})
}

/// Returns a mesh with two revisions. The older one has been unused for the grace period, so that the next
/// plan deletes it.
fn world_before_prune() -> World {
    let mut world = World::default();
    world.istio("my", revision_based("v1.28.2", &[]));
    world.settle();
    world.istio("my", revision_based("v1.29.1", &[]));
    world.settle();
    world.advance(60);
    world
}

fn istio() -> Subject {
    Subject::istio("my")
}

/// Checks that the plan for `subject` is valid and violates `invariant` after `mutate`.
fn expect_violation(invariant: Invariant, world: &World, subject: &Subject, mutate: impl FnOnce(&mut Plan)) {
    let mut plan = world.plan(subject);
    assert_eq!(check(&world.snapshot, &plan), [], "the plan before the mutation");
    mutate(&mut plan);
    let violations = check(&world.snapshot, &plan);
    assert!(
        violations
            .iter()
            .any(|violation| violation.invariant == invariant),
        "{invariant:?} not detected: {violations:#?}"
    );
    DETECTED.with_borrow_mut(|detected| detected.insert(invariant));
}

std::thread_local! {
    static DETECTED: std::cell::RefCell<BTreeSet<Invariant>> = const { std::cell::RefCell::new(BTreeSet::new()) };
}

fn push_action(plan: &mut Plan, action: Action) {
    let reason = mainstay_api::Reason::StatusChanged;
    plan.steps.push(Step { action, reason });
}

fn revision_status(plan: &mut Plan) -> &mut mainstay_api::RevisionStatus {
    let found = plan.steps.iter_mut().find_map(|step| match &mut step.action {
        Action::WriteStatus {
            status: NewStatus::Revision(status),
            ..
        } => Some(status),
        _ => None,
    });
    found.expect("a status")
}

fn revision_precondition(world: &World, name: &str) -> Precondition {
    Precondition::for_object(
        Subject::revision(name),
        &world.snapshot.revisions().get(name).unwrap().metadata,
    )
}

fn delete_revision_action(world: &World, name: &str) -> Action {
    Action::DeleteRevision(revision_precondition(world, name))
}

/// Returns a mesh with a revision whose next plan writes a status.
fn changed_revision() -> World {
    let mut world = World::default();
    world.revision("r", revision_spec("r"));
    world.settle();
    world.deployment("istio-system", "istiod-r", 2, 1);
    world.advance(5);
    world
}

#[test]
fn every_invariant_catches_its_mutant() {
    check_generations();
    check_transition_times();
    check_references();
    check_injectors();
    check_preconditions();
    check_owners();
    check_minimal_plans();
    check_step_order();
    check_finalizers();
    check_migrations();
    let detected = DETECTED.with_borrow(Clone::clone);
    assert_eq!(
        detected.into_iter().collect::<Vec<_>>(),
        Invariant::ALL,
        "an invariant without a mutant"
    );
}

/// Returns a migration with three workloads and a batch size of two, and its second workload. The first
/// workload is restarting, and the next plan restarts the second one.
fn migration_in_first_batch(policy: &str) -> (World, Subject) {
    let spec = |version: &str| {
        json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": [],
            "workloadMigration": {"strategy": "Batched", "failurePolicy": policy,
                "batched": {"batchSize": 2, "delayBetweenBatches": "0s"}}}})
    };
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    world.istio("my", spec("v1.28.2"));
    world.settle();
    world.namespace("shop", "istio.io/rev=my-v1-28-2");
    for name in ["a", "b", "c"] {
        world.app("shop", name, "", "");
    }
    world.istio("my", spec("v1.29.1"));
    let second = Subject::Workload(support::workloads::deployment("shop", "b"));
    for _ in 0..100 {
        let Some(subject) = world.queue.pop_first() else {
            break;
        };
        let plan = world.plan(&subject);
        if subject == second && !plan.is_empty() && world.workloads.values().any(has_migration_record) {
            return (world, second);
        }
        if subject == second && !plan.is_empty() {
            world
                .queue
                .insert(Subject::Workload(support::workloads::deployment("shop", "a")));
            world.queue.remove(&second);
            continue;
        }
        world.execute(&plan);
    }
    panic!("no plan moves the second workload: {:#?}", world.executed);
}

fn has_migration_record(workload: &Value) -> bool {
    workload["metadata"]["annotations"][names::MIGRATION_RECORD].is_string()
}

fn find_move(plan: &Plan) -> mainstay_mesh::plan::Move {
    let found = plan.actions().find_map(|action| match action {
        Action::MoveWorkload(step) => Some(step.clone()),
        _ => None,
    });
    found.expect("a move")
}

fn migration_status(plan: &mut Plan) -> &mut mainstay_api::WorkloadMigrationStatus {
    let found = plan.steps.iter_mut().find_map(|step| match &mut step.action {
        Action::WriteStatus {
            status: NewStatus::Istio(status),
            ..
        } => status.workload_migration.as_mut(),
        _ => None,
    });
    found.expect("a status")
}

fn check_migrations() {
    let (world, second) = migration_in_first_batch("ContinueOnError");
    let third = support::workloads::deployment("shop", "c");
    // Ignores the number of restarting workloads.
    let mut full_batch = world.clone();
    let plan = full_batch.plan(&second);
    full_batch.execute(&plan);
    expect_violation(
        Invariant::BatchSize,
        &full_batch,
        &Subject::Workload(third.clone()),
        |plan| {
            let mut step = find_move(&world.plan(&second));
            step.object = workload_precondition(&full_batch, &third);
            push_action(plan, Action::MoveWorkload(step));
        },
    );
    // Restarts a workload that is already restarting.
    let first = support::workloads::deployment("shop", "a");
    expect_violation(
        Invariant::NoRestartDuringRollout,
        &full_batch,
        &Subject::Workload(first.clone()),
        |plan| {
            let mut step = find_move(&world.plan(&second));
            step.object = workload_precondition(&full_batch, &first);
            push_action(plan, Action::MoveWorkload(step));
        },
    );
    // Restarts a migrated workload, or one that no Istio requests.
    let mut migrated = full_batch.clone();
    migrated.complete_rollout(&first);
    expect_violation(
        Invariant::NoRepeatedMove,
        &migrated,
        &Subject::Workload(first.clone()),
        |plan| {
            let mut step = find_move(&world.plan(&second));
            step.object = workload_precondition(&migrated, &first);
            push_action(plan, Action::MoveWorkload(step));
        },
    );
    expect_violation(Invariant::NoRepeatedMove, &world, &second, |plan| {
        let mut step = find_move(plan);
        step.record.revision = "elsewhere".into();
        plan.steps[0].action = Action::MoveWorkload(step);
    });
    // Writes wrong counts.
    expect_violation(Invariant::CompleteCounts, &migrated, &istio(), |plan| {
        migration_status(plan).failed_workloads = 3;
    });
    expect_violation(Invariant::CompleteCounts, &migrated, &istio(), |plan| {
        migration_status(plan).state = mainstay_api::MigrationState::Completed;
    });
    let mut counted = migrated.clone();
    counted.settle();
    counted.complete_rollout(&support::workloads::deployment("shop", "b"));
    expect_violation(Invariant::MonotonicProgress, &counted, &istio(), |plan| {
        migration_status(plan).migrated_workloads = 0;
    });
    // Ignores the pause.
    let mut paused = world.clone();
    paused.edit::<mainstay_api::IstioSpec>("my", |istio| {
        let strategy = istio.spec.update_strategy.as_mut().unwrap();
        strategy.workload_migration.as_mut().unwrap().paused = true;
    });
    expect_violation(Invariant::PauseStartsNothing, &paused, &second, |plan| {
        let step = find_move(&world.plan(&second));
        push_action(plan, Action::MoveWorkload(step));
    });
    // Continues without a list of pods.
    let mut unreadable = world.clone();
    unreadable.fail_source(Source::Pods, "forbidden");
    expect_violation(Invariant::ReadableSources, &unreadable, &second, |plan| {
        let step = find_move(&world.plan(&second));
        push_action(plan, Action::MoveWorkload(step));
    });
    expect_violation(Invariant::ReadableSources, &unreadable, &istio(), |plan| {
        let object =
            Precondition::for_object(istio(), &unreadable.snapshot.istios().get("my").unwrap().metadata);
        let mut status = unreadable.snapshot.istios().get("my").unwrap().status.clone();
        status.workload_migration.as_mut().unwrap().state = mainstay_api::MigrationState::Completed;
        plan.steps.clear();
        push_action(
            plan,
            Action::WriteStatus {
                object,
                status: NewStatus::Istio(status),
            },
        );
    });
    // Continues after a failure under FailFast, or stops under ContinueOnError.
    let (mut fast, second) = migration_in_first_batch("FailFast");
    let step = find_move(&fast.plan(&second));
    fast.stall_rollout(&first);
    fast.advance(400);
    expect_violation(Invariant::FailurePolicy, &fast, &second, |plan| {
        push_action(plan, Action::MoveWorkload(step));
    });
    expect_violation(Invariant::FailurePolicy, &migrated, &istio(), |plan| {
        migration_status(plan).state = mainstay_api::MigrationState::Failed;
    });
}

fn workload_precondition(world: &World, key: &mainstay_mesh::workload::WorkloadKey) -> Precondition {
    let workload = world.snapshot.workload(key).unwrap();
    Precondition {
        subject: Subject::Workload(key.clone()),
        uid: workload.uid.clone(),
        resource_version: workload.resource_version.clone(),
    }
}

fn check_generations() {
    let (world, subject) = (changed_revision(), Subject::revision("r"));
    expect_violation(Invariant::ObservedGeneration, &world, &subject, |plan| {
        revision_status(plan).observed_generation = 0;
    });
    expect_violation(Invariant::ObservedGeneration, &world, &subject, |plan| {
        revision_status(plan).observed_generation = 99;
    });
}

fn check_transition_times() {
    let (world, subject) = (changed_revision(), Subject::revision("r"));
    let now = Time::from_timestamp(world.snapshot.now);
    expect_violation(Invariant::TransitionTime, &world, &subject, |plan| {
        revision_status(plan).conditions.0[0].last_transition_time = Some(now);
    });
    expect_violation(Invariant::TransitionTime, &world, &subject, |plan| {
        let ready = &mut revision_status(plan).conditions.0[1];
        assert_eq!(ready.status, ConditionStatus::False);
        ready.last_transition_time = None;
    });
}

fn check_references() {
    let prune = world_before_prune();
    assert!(
        prune
            .plan(&istio())
            .actions()
            .any(|action| matches!(action, Action::DeleteRevision(_)))
    );
    let mut used = prune.clone();
    used.namespace("app", "istio.io/rev=my-v1-28-2");
    expect_violation(Invariant::NoDeleteInUse, &used, &istio(), |plan| {
        push_action(plan, delete_revision_action(&used, "my-v1-28-2"));
    });
    let mut running = prune.clone();
    running.pod("app", "p", "", "istio.io/rev=my-v1-28-2");
    expect_violation(Invariant::NoDeleteInUse, &running, &istio(), |plan| {
        push_action(plan, delete_revision_action(&running, "my-v1-28-2"));
    });
    let mut unreadable = prune.clone();
    unreadable.fail_source(Source::Pods, "forbidden");
    expect_violation(Invariant::NoDeleteInUse, &unreadable, &istio(), |plan| {
        push_action(plan, delete_revision_action(&unreadable, "my-v1-28-2"));
    });
    let mut early = world_before_prune();
    early.advance(-50);
    expect_violation(Invariant::NoDeleteInUse, &early, &istio(), |plan| {
        push_action(plan, delete_revision_action(&early, "my-v1-28-2"));
    });
    let mut unknown = prune.clone();
    unknown.edit::<RevisionSpec>("my-v1-28-2", |revision| {
        revision
            .status
            .conditions
            .0
            .retain(|one| one.kind.name() != "InUse");
    });
    expect_violation(Invariant::NoDeleteInUse, &unknown, &istio(), |plan| {
        push_action(plan, delete_revision_action(&unknown, "my-v1-28-2"));
    });
    let mut incomplete = prune.clone();
    incomplete.observe(Observation::Source(Source::Pods, SourceState::Pending));
    expect_violation(Invariant::NoDeleteInUse, &incomplete, &istio(), |plan| {
        push_action(plan, delete_revision_action(&incomplete, "my-v1-28-2"));
    });

    let mut tagged = World::default();
    tagged.istio("my", revision_based("v1.29.1", &["prod"]));
    tagged.settle();
    let tag = Precondition::for_object(
        Subject::tag("prod"),
        &tagged.snapshot.tags().get("prod").unwrap().metadata,
    );
    expect_violation(Invariant::NoDeleteInUse, &tagged, &istio(), |plan| {
        push_action(plan, Action::DeleteTag(tag));
    });
}

fn check_injectors() {
    let mut world = World::default();
    world.istio("my", revision_based("v1.28.2", &["prod"]));
    world.settle();
    world.ready = false;
    world.istio("my", revision_based("v1.29.1", &["prod"]));
    world.settle();
    let tag = world.snapshot.tags().get("prod").unwrap().clone();
    expect_violation(
        Invariant::OneInjectorPerNamespace,
        &world,
        &Subject::tag("prod"),
        |plan| {
            let mut status = tag.status.clone();
            status.istio_revision = "my-v1-29-1".into();
            let object = Precondition::for_object(Subject::tag("prod"), &tag.metadata);
            push_action(
                plan,
                Action::WriteStatus {
                    object,
                    status: NewStatus::Tag(status),
                },
            );
        },
    );

    let mut clash = World::default();
    clash.revision("other", revision_spec("other"));
    clash.tag("x", "IstioRevision", "other");
    clash.advance(1);
    clash.revision("x", revision_spec("x"));
    clash.settle();
    let mut alone = World::default();
    alone.revision("x", revision_spec("x"));
    alone.edit::<RevisionSpec>("x", |revision| {
        revision.metadata.finalizers = vec![names::FINALIZER.into()];
    });
    let install = alone.plan(&Subject::revision("x")).steps[0].action.clone();
    expect_violation(
        Invariant::OneInjectorPerNamespace,
        &clash,
        &Subject::revision("x"),
        |plan| {
            push_action(plan, install);
        },
    );
}

fn check_preconditions() {
    let prune = world_before_prune();
    expect_violation(Invariant::WritePreconditions, &prune, &istio(), |plan| {
        for step in &mut plan.steps {
            if let Action::DeleteRevision(seen) = &mut step.action {
                seen.resource_version.clear();
            }
        }
    });
    expect_violation(Invariant::WritePreconditions, &prune, &istio(), |plan| {
        for step in &mut plan.steps {
            if let Action::DeleteRevision(seen) = &mut step.action {
                seen.uid = "another".into();
            }
        }
    });
    let mut deleted = World::default();
    deleted.revision("r", revision_spec("r"));
    deleted.settle();
    deleted.delete::<RevisionSpec>("r");
    expect_violation(
        Invariant::WritePreconditions,
        &deleted,
        &Subject::revision("r"),
        |plan| {
            for step in &mut plan.steps {
                if let Action::Uninstall(key) = &mut step.action {
                    *key = ReleaseKey {
                        owner: String::new(),
                        ..key.clone()
                    };
                }
            }
        },
    );
}

fn check_owners() {
    let mut world = world_before_prune();
    world.revision("foreign", revision_spec("foreign"));
    expect_violation(Invariant::OwnedObjectsOnly, &world, &istio(), |plan| {
        push_action(plan, delete_revision_action(&world, "foreign"));
    });
    world.istio("other", revision_based("v1.29.1", &["theirs"]));
    world.settle();
    let theirs = world.snapshot.revisions().get("other-v1-29-1").unwrap().clone();
    expect_violation(Invariant::OwnedObjectsOnly, &world, &istio(), |plan| {
        let change = Change {
            object: revision_precondition(&world, "other-v1-29-1"),
            owner_references: theirs.metadata.owner_references.clone(),
            spec: RevisionSpec {
                version: "v1.28.2".into(),
                ..theirs.spec.clone()
            },
        };
        push_action(plan, Action::UpdateRevision(change));
    });
    let tag = world.snapshot.tags().get("theirs").unwrap().clone();
    expect_violation(Invariant::OwnedObjectsOnly, &world, &istio(), |plan| {
        let object = Precondition::for_object(Subject::tag("theirs"), &tag.metadata);
        let spec = TagSpec::default();
        push_action(
            plan,
            Action::UpdateTag(Change {
                object,
                owner_references: Vec::new(),
                spec,
            }),
        );
    });
}

fn check_minimal_plans() {
    let world = changed_revision();
    let subject = Subject::revision("r");
    expect_violation(Invariant::MinimalPlan, &world, &subject, |plan| {
        plan.steps.clear();
    });
    let now = world.snapshot.now;
    let mut settled = world.clone();
    settled.settle();
    expect_violation(Invariant::MinimalPlan, &settled, &subject, |plan| {
        assert!(plan.is_empty(), "{plan:?}");
        plan.requeue = mainstay_mesh::Requeue::At(now);
    });
    let same = world.snapshot.revisions().get("r").unwrap().status.clone();
    expect_violation(Invariant::MinimalPlan, &world, &subject, |plan| {
        *revision_status(plan) = same;
    });
    let mut istio_world = World::default();
    istio_world.istio("my", revision_based("v1.29.1", &[]));
    istio_world.settle();
    let revision = istio_world
        .snapshot
        .revisions()
        .get("my-v1-29-1")
        .unwrap()
        .clone();
    expect_violation(Invariant::MinimalPlan, &istio_world, &istio(), |plan| {
        let change = Change {
            object: revision_precondition(&istio_world, "my-v1-29-1"),
            owner_references: revision.metadata.owner_references.clone(),
            spec: revision.spec.clone(),
        };
        push_action(plan, Action::UpdateRevision(change));
    });
}

fn check_step_order() {
    let mut world = World::default();
    world.revision("default", revision_spec("default"));
    world.edit::<RevisionSpec>("default", |revision| {
        revision.metadata.finalizers = vec![names::FINALIZER.into()];
    });
    expect_violation(
        Invariant::StepOrder,
        &world,
        &Subject::revision("default"),
        |plan| {
            plan.steps.reverse();
        },
    );
    let mut fresh = World::default();
    fresh.istio("my", revision_based("v1.29.1", &["prod"]));
    expect_violation(Invariant::StepOrder, &fresh, &istio(), |plan| {
        let at = plan
            .steps
            .iter()
            .position(|step| matches!(step.action, Action::CreateTag(_)))
            .unwrap();
        let tag = plan.steps.remove(at);
        plan.steps.insert(0, tag);
    });
}

fn check_finalizers() {
    let mut world = World::default();
    world.revision("r", revision_spec("r"));
    world.settle();
    world.delete::<RevisionSpec>("r");
    let metadata = world.snapshot.revisions().get("r").unwrap().metadata.clone();
    let object = Precondition::for_object(Subject::revision("r"), &metadata);
    let remove = Action::RemoveFinalizer {
        object,
        finalizers: Vec::new(),
    };
    expect_violation(
        Invariant::FinalizerLast,
        &world,
        &Subject::revision("r"),
        |plan| {
            push_action(plan, remove.clone());
        },
    );
    let key = world
        .snapshot
        .releases_of(&metadata.uid)
        .next()
        .unwrap()
        .0
        .clone();
    world.observe(Observation::Release(key, ReleaseFact::Present));
    expect_violation(
        Invariant::FinalizerLast,
        &world,
        &Subject::revision("r"),
        |plan| {
            plan.steps = vec![Step {
                action: remove,
                reason: mainstay_api::Reason::CleanedUp,
            }];
        },
    );
}
