//! Tests for the reconciler, without client and clock.

use mainstay_api::{ObjectKind, Values};
use mainstay_mesh::ErrorClass;
use mainstay_mesh::workload::{Workload, WorkloadKey, WorkloadKind};
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn at_ms(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000_000 + millisecond).unwrap()
}

/// Returns a reconciler that has started planning, with all sources listed and empty.
fn reconciler(max_concurrent: usize) -> Reconciler {
    let mut library = Library::default();
    let profiles = [("default".to_owned(), Values::new())].into_iter().collect();
    library.add_version("1.29.1".parse().unwrap(), profiles);
    let mut reconciler = Reconciler::new(
        at(0),
        Arc::new(Settings::default()),
        Arc::new(library),
        max_concurrent,
    );
    for source in Source::ALL {
        reconciler.set_source_state(source, SourceState::Ready);
    }
    reconciler.start_planning();
    reconciler
}

fn istio(name: &str, version: u64) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(), "generation": 1},
        "spec": {"version": "v1.29.1", "namespace": "istio-system"},
    })
}

fn observe(reconciler: &mut Reconciler, object: Value) {
    reconciler.observe_object(ObjectKind::Istio, object).unwrap();
}

fn plan(reconciler: &mut Reconciler, now: Timestamp) -> Plan {
    match reconciler.next_plan(now) {
        Some(NextPlan::Execute(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

/// Describes the next plan. Returns `-` if there is none.
fn describe_next(reconciler: &mut Reconciler, now: Timestamp) -> String {
    match reconciler.next_plan(now) {
        None => "-".into(),
        Some(NextPlan::Idle(plan)) => format!("{} is idle", plan.subject),
        Some(NextPlan::Panicked(subject)) => format!("{subject} panicked"),
        Some(NextPlan::Execute(plan)) => {
            let actions = plan
                .actions()
                .map(|action| action.to_string().split(':').next().unwrap().to_owned());
            format!("{}: {}", plan.subject, actions.collect::<Vec<_>>().join(", "))
        }
    }
}

fn rejection(plan: &Plan, step: usize) -> PlanOutcome {
    failure(plan, step, ErrorClass::Other)
}

fn failure(plan: &Plan, step: usize, class: ErrorClass) -> PlanOutcome {
    PlanOutcome::Failed(Box::new(StepFailure {
        action: plan.steps[step].action.clone(),
        class,
        message: "no".into(),
        retry_after: None,
        panicked: false,
        others: Vec::new(),
    }))
}

const CREATES: &str = "Istio/a: create revision a v1.29.1, event RevisionCreated, status";

#[test]
fn no_plan_is_made_before_every_source_was_listed_and_planning_started() {
    let mut reconciler = Reconciler::new(
        at(0),
        Arc::new(Settings::default()),
        Arc::new(Library::default()),
        1,
    );
    observe(&mut reconciler, istio("a", 1));
    assert_eq!(describe_next(&mut reconciler, at(0)), "-", "not started");
    reconciler.start_planning();
    assert_eq!(
        describe_next(&mut reconciler, at(0)),
        "Istio/a is idle",
        "started, but not listed"
    );
    for source in Source::ALL {
        reconciler.set_source_state(source, SourceState::Ready);
    }
    let found = describe_next(&mut reconciler, at(0));
    assert!(found.starts_with("Istio/a: "), "{found}");
}

#[test]
fn a_subject_has_at_most_one_running_plan() {
    let mut reconciler = reconciler(2);
    observe(&mut reconciler, istio("a", 1));
    assert_eq!(describe_next(&mut reconciler, at(0)), CREATES);
    observe(&mut reconciler, istio("a", 2));
    assert_eq!(describe_next(&mut reconciler, at(0)), "-");
    observe(&mut reconciler, istio("b", 3));
    assert_eq!(
        describe_next(&mut reconciler, at(0)).split(':').next(),
        Some("Istio/b"),
        "another subject may run"
    );
    observe(&mut reconciler, istio("c", 4));
    assert_eq!(
        describe_next(&mut reconciler, at(0)),
        "-",
        "the maximum of two plans is running"
    );
}

/// Returns the Istio with the status that a plan writes.
fn istio_with_planned_status(plan: &Plan, version: u64) -> Value {
    let mut object = istio(plan.subject.name(), version);
    object["status"] = plan.status().unwrap().to_json().unwrap();
    object
}

#[test]
fn failures_back_off_and_are_reported_meanwhile() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let attempt = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&attempt, rejection(&attempt, 0), at_ms(0));
    let report = plan(&mut reconciler, at_ms(0));
    assert_eq!(report.steps.len(), 2, "status and event: {report:?}");
    observe(&mut reconciler, istio_with_planned_status(&report, 2));
    reconciler.finish_plan(&report, PlanOutcome::Succeeded, at_ms(0));
    let mut now = 0;
    for delay in [5, 10, 20, 40, 80] {
        assert_eq!(describe_next(&mut reconciler, at_ms(now)), "Istio/a is idle");
        assert_eq!(reconciler.next_due(), at_ms(now + delay));
        assert_eq!(describe_next(&mut reconciler, at_ms(now + delay - 1)), "-");
        now += delay;
        let attempt = plan(&mut reconciler, at_ms(now));
        reconciler.finish_plan(&attempt, rejection(&attempt, 0), at_ms(now));
    }
}

#[test]
fn a_retry_after_header_is_honored() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let attempt = plan(&mut reconciler, at(0));
    let PlanOutcome::Failed(mut failed) = rejection(&attempt, 0) else {
        panic!()
    };
    failed.retry_after = Some(Duration::from_secs(7));
    reconciler.finish_plan(&attempt, PlanOutcome::Failed(failed), at(0));
    let report = plan(&mut reconciler, at(0));
    observe(&mut reconciler, istio_with_planned_status(&report, 2));
    reconciler.finish_plan(&report, PlanOutcome::Succeeded, at(0));
    assert_eq!(describe_next(&mut reconciler, at(0)), "Istio/a is idle");
    assert_eq!(reconciler.next_due(), at(7));
}

#[test]
fn a_success_clears_the_failure() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let attempt = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&attempt, rejection(&attempt, 0), at_ms(0));
    let report = plan(&mut reconciler, at_ms(0));
    observe(&mut reconciler, istio_with_planned_status(&report, 2));
    reconciler.finish_plan(&report, PlanOutcome::Succeeded, at_ms(0));
    assert_eq!(describe_next(&mut reconciler, at_ms(0)), "Istio/a is idle");
    let attempt = plan(&mut reconciler, at_ms(5));
    assert!(reconciler.snapshot().last_failure(&attempt.subject).is_some());
    reconciler.finish_plan(&attempt, PlanOutcome::Succeeded, at_ms(5));
    assert!(reconciler.snapshot().last_failure(&attempt.subject).is_none());
}

#[test]
fn a_plan_that_changed_nothing_is_not_repeated_at_once() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let done = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&done, PlanOutcome::Succeeded, at_ms(0));
    assert_eq!(
        describe_next(&mut reconciler, at_ms(0)),
        "-",
        "the same plan again"
    );
    assert_eq!(reconciler.next_due(), at_ms(5));
    assert_eq!(describe_next(&mut reconciler, at_ms(5)), CREATES);
}

#[test]
fn an_object_is_never_replaced_by_an_older_version() {
    let mut reconciler = reconciler(1);
    let version = |reconciler: &Reconciler| reconciler.known_version(ObjectKind::Istio, "a");
    observe(&mut reconciler, istio("a", 5));
    observe(&mut reconciler, istio("a", 4));
    assert_eq!(
        version(&reconciler),
        Some(5),
        "a watch that lags behind our write"
    );
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 3));
    assert_eq!(version(&reconciler), Some(5), "an outdated deletion");
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 6));
    assert_eq!(version(&reconciler), None);
    observe(&mut reconciler, istio("a", 5));
    assert_eq!(version(&reconciler), None, "a response after the deletion");
    observe(&mut reconciler, istio("a", 7));
    assert_eq!(version(&reconciler), Some(7), "a new object of the same name");
}

#[test]
fn a_list_removes_missing_objects_except_newer_ones() {
    let mut reconciler = reconciler(1);
    for (name, version) in [("a", 1), ("b", 2), ("c", 9)] {
        observe(&mut reconciler, istio(name, version));
    }
    reconciler.finish_list(ObjectKind::Istio, &["a".to_owned()].into(), "5");
    let names: Vec<&str> = reconciler
        .snapshot()
        .istios()
        .iter()
        .map(mainstay_api::Resource::name)
        .collect();
    assert_eq!(names, ["a", "c"], "b was deleted, c was written after the list");
}

#[test]
fn a_missing_object_is_removed_unless_a_newer_version_is_known() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    reconciler.confirm_missing(ObjectKind::Istio, "a", Some(0));
    assert_eq!(reconciler.known_version(ObjectKind::Istio, "a"), Some(1));
    reconciler.confirm_missing(ObjectKind::Istio, "a", Some(1));
    assert_eq!(reconciler.known_version(ObjectKind::Istio, "a"), None);
}

#[test]
fn an_object_that_cannot_be_decoded_does_not_affect_others() {
    let mut reconciler = reconciler(1);
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "1"}, "spec": {"version": 7}});
    let error = reconciler.observe_object(ObjectKind::Istio, bad).unwrap_err();
    assert_eq!(error.to_string(), "Istio \"bad\" cannot be read");
    observe(&mut reconciler, istio("a", 2));
    assert_eq!(describe_next(&mut reconciler, at(0)), CREATES);
}

#[test]
fn a_full_pass_runs_every_ten_minutes() {
    let mut reconciler = reconciler(1);
    let mut object = istio("a", 1);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    observe(&mut reconciler, object);
    assert_eq!(describe_next(&mut reconciler, at(0)), "Istio/a is idle");
    assert_eq!(describe_next(&mut reconciler, at(599)), "-");
    assert_eq!(describe_next(&mut reconciler, at(600)), "Istio/a is idle");
    assert_eq!(reconciler.next_due(), at(1200));
}

#[test]
fn a_failed_action_and_its_failed_report_both_back_off() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let attempt = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&attempt, rejection(&attempt, 0), at_ms(0));
    let report = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&report, rejection(&report, 0), at_ms(0));
    assert_eq!(describe_next(&mut reconciler, at_ms(0)), "-");
    assert_eq!(reconciler.next_due(), at_ms(10));
    assert_eq!(describe_next(&mut reconciler, at_ms(10)), CREATES);
}

#[test]
fn a_requeue_time_in_the_past_is_delayed() {
    let mut reconciler = reconciler(1);
    let subject = Subject::istio("a");
    let mut idle = Plan::empty(subject.clone());
    idle.requeue = Requeue::At(at(0));
    reconciler.queue.enqueue(subject);
    assert!(reconciler.queue.start_next(at(5)).is_some());
    reconciler.finish_idle(&idle, at(5));
    assert_eq!(describe_next(&mut reconciler, at(5)), "-", "not due immediately");
    assert!(
        reconciler.next_due() > at(5) && reconciler.next_due() < at(6),
        "due after a delay"
    );
}

#[test]
fn an_object_missing_from_one_list_returns_with_the_next() {
    let mut reconciler = reconciler(1);
    let list = |reconciler: &mut Reconciler, names: &[&str], at: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        reconciler.finish_list(ObjectKind::Istio, &names, at);
    };
    observe(&mut reconciler, istio("a", 1));
    reconciler.begin_list(ObjectKind::Istio);
    list(&mut reconciler, &[], "5");
    assert!(reconciler.snapshot().istios().is_empty());
    observe(&mut reconciler, istio("a", 1));
    assert!(reconciler.snapshot().istios().is_empty(), "a late response");
    reconciler.begin_list(ObjectKind::Istio);
    observe(&mut reconciler, istio("a", 1));
    list(&mut reconciler, &["a"], "6");
    assert_eq!(reconciler.known_version(ObjectKind::Istio, "a"), Some(1));
    list(&mut reconciler, &[], "7");
    let tombstone = reconciler.tombstone(ObjectKind::Istio, "a");
    reconciler
        .confirm_object(ObjectKind::Istio, istio("a", 1), tombstone)
        .unwrap();
    assert_eq!(
        reconciler.known_version(ObjectKind::Istio, "a"),
        Some(1),
        "it was read again and exists"
    );
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 8));
    reconciler
        .confirm_object(ObjectKind::Istio, istio("a", 1), tombstone)
        .unwrap();
    assert!(
        reconciler.snapshot().istios().is_empty(),
        "it was deleted after the read"
    );
}

#[test]
fn a_write_without_a_response_counts_as_rejected_only_after_a_long_back_off() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let subject = Subject::Object(ObjectKind::Istio, "a".into());
    let mut classes = Vec::new();
    for _ in 0..20 {
        let now = reconciler.next_due().max(reconciler.snapshot().now);
        let Some(NextPlan::Execute(attempt)) = reconciler.next_plan(now) else {
            continue;
        };
        reconciler.finish_plan(&attempt, failure(&attempt, 0, ErrorClass::Unavailable), now);
        classes.push(reconciler.snapshot().last_failure(&subject).unwrap().class);
    }
    let first = classes
        .iter()
        .position(|class| *class == ErrorClass::Other)
        .unwrap();
    assert!(first > 3, "{classes:?}");
    let (waiting, rest) = classes.split_at(first);
    assert!(
        waiting.iter().all(|class| *class == ErrorClass::Unavailable),
        "{classes:?}"
    );
    assert!(
        rest.iter().all(|class| *class == ErrorClass::Other),
        "{classes:?}"
    );
}

fn deployment(version: u64) -> (WorkloadKey, Workload) {
    let object = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "resourceVersion": version.to_string()},
        "spec": {"template": {"metadata": {}}},
    });
    Workload::from_object(WorkloadKind::Deployment, &object).unwrap()
}

#[test]
fn late_responses_neither_restore_nor_downgrade_a_workload() {
    let mut reconciler = reconciler(1);
    let (key, seen) = deployment(5);
    let version = |reconciler: &Reconciler| {
        let known = reconciler.snapshot().workload(&deployment(0).0);
        known.map(|known| known.resource_version.clone())
    };
    reconciler.observe_workload(key.clone(), seen);
    reconciler.observe_written_workload(key.clone(), deployment(4).1);
    assert_eq!(
        version(&reconciler).as_deref(),
        Some("5"),
        "the watch was ahead of the response"
    );
    reconciler.observe_written_workload(key.clone(), deployment(6).1);
    assert_eq!(version(&reconciler).as_deref(), Some("6"));
    reconciler.observe_workload(key.clone(), deployment(5).1);
    assert_eq!(
        version(&reconciler).as_deref(),
        Some("6"),
        "the response was ahead of the watch"
    );
    reconciler.remove_workload(&key);
    reconciler.observe_written_workload(key, deployment(7).1);
    assert_eq!(version(&reconciler), None);
}

/// Lets the plans of an Istio fail until the back-off is longer than 10 s, and returns the time.
fn fail_until_long_back_off(reconciler: &mut Reconciler) -> Timestamp {
    let mut now = at_ms(0);
    loop {
        match reconciler.next_plan(now) {
            Some(NextPlan::Execute(attempt)) => {
                reconciler.finish_plan(&attempt, rejection(&attempt, 0), now);
            }
            Some(_) => {}
            None if reconciler.next_due() > add_delay(now, Duration::from_secs(10)) => return now,
            None => now = reconciler.next_due(),
        }
    }
}

fn deleted_istio(version: u64) -> Value {
    let mut object = istio("a", version);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["sailoperator.io/sail-operator"]);
    object
}

#[test]
fn an_event_during_a_failing_execution_is_not_lost() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let now = fail_until_long_back_off(&mut reconciler);
    // Causes a second failure during the back-off: writing the status with the first failure fails, too.
    reconciler.queue.enqueue(Subject::istio("a"));
    let Some(NextPlan::Execute(attempt)) = reconciler.next_plan(now) else {
        panic!("the failure is reported")
    };
    observe(&mut reconciler, deleted_istio(2));
    reconciler.finish_plan(&attempt, rejection(&attempt, 0), now);
    let next = describe_next(&mut reconciler, now);
    assert!(next.starts_with("Istio/a"), "handled at once: {next}");
}

#[test]
fn an_event_that_changes_the_object_resets_its_back_off() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let now = fail_until_long_back_off(&mut reconciler);
    let mut edited = istio("a", 2);
    edited["metadata"]["generation"] = json!(2);
    observe(&mut reconciler, edited);
    assert!(reconciler.snapshot().last_failure(&Subject::istio("a")).is_none());
    let attempt = plan(&mut reconciler, now);
    assert!(
        attempt
            .actions()
            .any(|action| matches!(action, Action::CreateRevision(_))),
        "the failed action is retried at once: {attempt:?}"
    );
    reconciler.finish_plan(&attempt, rejection(&attempt, 0), now);
    let retry_at = reconciler
        .snapshot()
        .last_failure(&Subject::istio("a"))
        .unwrap()
        .retry_at;
    assert_eq!(
        retry_at,
        add_delay(now, Duration::from_millis(5)),
        "the shortest delay"
    );
}

#[test]
fn an_event_that_changes_only_the_status_does_not_reset_the_back_off() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let now = fail_until_long_back_off(&mut reconciler);
    let mut object = istio("a", 2);
    object["status"] = json!({"state": "ReconcileError"});
    observe(&mut reconciler, object);
    let failure = reconciler.snapshot().last_failure(&Subject::istio("a"));
    assert!(failure.is_some_and(|failure| failure.retry_at > now));
}

#[test]
fn a_conflict_is_no_failure_until_it_persists() {
    let mut reconciler = reconciler(1);
    observe(&mut reconciler, istio("a", 1));
    let subject = Subject::istio("a");
    for _ in 0..10 {
        let attempt = plan(&mut reconciler, at_ms(0));
        assert!(
            matches!(attempt.steps[0].action, Action::CreateRevision(_)),
            "retried at once"
        );
        reconciler.finish_plan(&attempt, failure(&attempt, 0, ErrorClass::Conflict), at_ms(0));
        assert!(reconciler.snapshot().last_failure(&subject).is_none());
    }
    let attempt = plan(&mut reconciler, at_ms(0));
    reconciler.finish_plan(&attempt, failure(&attempt, 0, ErrorClass::Conflict), at_ms(0));
    assert!(reconciler.snapshot().last_failure(&subject).is_some());
}

#[test]
fn plans_of_a_migration_are_executed_one_at_a_time() {
    let mut reconciler = reconciler(5);
    let migration = json!({"strategy": "Batched"});
    for (name, version) in [("a", 1), ("b", 2)] {
        let mut object = istio(name, version);
        object["spec"]["updateStrategy"] = json!({"type": "RevisionBased", "workloadMigration": migration});
        observe(&mut reconciler, object);
    }
    let first = plan(&mut reconciler, at_ms(0));
    assert_eq!(
        describe_next(&mut reconciler, at_ms(0)),
        "-",
        "the second one waits"
    );
    reconciler.finish_plan(&first, PlanOutcome::Succeeded, at_ms(0));
    let second = plan(&mut reconciler, at_ms(0));
    assert_ne!(first.subject, second.subject);
}
