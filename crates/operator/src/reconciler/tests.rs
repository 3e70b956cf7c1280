//! The reconciler alone: what is told to it, and what it wants done.

use mainstay_api::{ObjectKind, Values};
use mainstay_mesh::ErrorClass;
use mainstay_mesh::workload::{Workload, WorkloadKey, WorkloadKind};
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn ms(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000_000 + millisecond).unwrap()
}

/// A reconciler for which everything was listed, and nothing was there.
fn reconciler(max_concurrent: usize) -> Reconciler {
    let mut library = Library::default();
    let profiles = [("default".to_owned(), Values::new())].into_iter().collect();
    library.put("1.29.1".parse().unwrap(), profiles);
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

fn see(reconciler: &mut Reconciler, object: Value) {
    reconciler.observe_object(ObjectKind::Istio, object).unwrap();
}

fn plan(reconciler: &mut Reconciler, now: Timestamp) -> Plan {
    match reconciler.next_plan(now) {
        Some(NextPlan::Execute(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

/// What is to be done, in short; `-` when nothing is.
fn next(reconciler: &mut Reconciler, now: Timestamp) -> String {
    match reconciler.next_plan(now) {
        None => "-".into(),
        Some(NextPlan::Idle(plan)) => format!("{} rests", plan.subject),
        Some(NextPlan::Panicked(subject)) => format!("{subject} panicked"),
        Some(NextPlan::Execute(plan)) => {
            let actions = plan
                .actions()
                .map(|action| action.to_string().split(':').next().unwrap().to_owned());
            format!("{}: {}", plan.subject, actions.collect::<Vec<_>>().join(", "))
        }
    }
}

fn refusal(plan: &Plan, step: usize) -> PlanOutcome {
    failure(plan, step, ErrorClass::Other)
}

fn failure(plan: &Plan, step: usize, class: ErrorClass) -> PlanOutcome {
    PlanOutcome::Failed(Box::new(StepFailure {
        action: plan.steps[step].action.clone(),
        class,
        message: "no".into(),
        retry_after: None,
        panicked: false,
    }))
}

const CREATES: &str = "Istio/a: create revision a v1.29.1, event RevisionCreated, status";

#[test]
fn no_plan_is_made_before_everything_was_listed_and_we_lead() {
    let mut reconciler = Reconciler::new(
        at(0),
        Arc::new(Settings::default()),
        Arc::new(Library::default()),
        1,
    );
    see(&mut reconciler, istio("a", 1));
    assert_eq!(next(&mut reconciler, at(0)), "-", "not open");
    reconciler.start_planning();
    assert_eq!(
        next(&mut reconciler, at(0)),
        "Istio/a rests",
        "open, but not listed"
    );
    for source in Source::ALL {
        reconciler.set_source_state(source, SourceState::Ready);
    }
    let found = next(&mut reconciler, at(0));
    assert!(found.starts_with("Istio/a: "), "{found}");
}

#[test]
fn a_subject_is_never_worked_on_twice_at_once() {
    let mut reconciler = reconciler(2);
    see(&mut reconciler, istio("a", 1));
    assert_eq!(next(&mut reconciler, at(0)), CREATES);
    see(&mut reconciler, istio("a", 2));
    assert_eq!(next(&mut reconciler, at(0)), "-");
    see(&mut reconciler, istio("b", 3));
    assert_eq!(
        next(&mut reconciler, at(0)).split(':').next(),
        Some("Istio/b"),
        "another one may be"
    );
    see(&mut reconciler, istio("c", 4));
    assert_eq!(next(&mut reconciler, at(0)), "-", "but not three");
}

/// The status a plan writes, as if it had been written.
fn written(plan: &Plan, version: u64) -> Value {
    let mut object = istio(plan.subject.name(), version);
    object["status"] = plan.status().unwrap().to_json().unwrap();
    object
}

#[test]
fn what_failed_waits_longer_each_time_and_is_told_meanwhile() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let tried = plan(&mut reconciler, ms(0));
    reconciler.finish_plan(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut reconciler, ms(0));
    assert_eq!(told.steps.len(), 2, "status and event: {told:?}");
    see(&mut reconciler, written(&told, 2));
    reconciler.finish_plan(&told, PlanOutcome::Succeeded, ms(0));
    let mut now = 0;
    for delay in [5, 10, 20, 40, 80] {
        assert_eq!(next(&mut reconciler, ms(now)), "Istio/a rests");
        assert_eq!(reconciler.next_due(), ms(now + delay));
        assert_eq!(next(&mut reconciler, ms(now + delay - 1)), "-");
        now += delay;
        let tried = plan(&mut reconciler, ms(now));
        reconciler.finish_plan(&tried, refusal(&tried, 0), ms(now));
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let tried = plan(&mut reconciler, at(0));
    let PlanOutcome::Failed(mut failed) = refusal(&tried, 0) else {
        panic!()
    };
    failed.retry_after = Some(Duration::from_secs(7));
    reconciler.finish_plan(&tried, PlanOutcome::Failed(failed), at(0));
    let told = plan(&mut reconciler, at(0));
    see(&mut reconciler, written(&told, 2));
    reconciler.finish_plan(&told, PlanOutcome::Succeeded, at(0));
    assert_eq!(next(&mut reconciler, at(0)), "Istio/a rests");
    assert_eq!(reconciler.next_due(), at(7));
}

#[test]
fn a_success_is_forgiven_what_came_before() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let tried = plan(&mut reconciler, ms(0));
    reconciler.finish_plan(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut reconciler, ms(0));
    see(&mut reconciler, written(&told, 2));
    reconciler.finish_plan(&told, PlanOutcome::Succeeded, ms(0));
    assert_eq!(next(&mut reconciler, ms(0)), "Istio/a rests");
    let tried = plan(&mut reconciler, ms(5));
    assert!(reconciler.snapshot().last_failure(&tried.subject).is_some());
    reconciler.finish_plan(&tried, PlanOutcome::Succeeded, ms(5));
    assert!(reconciler.snapshot().last_failure(&tried.subject).is_none());
}

#[test]
fn a_plan_that_changed_nothing_is_not_carried_out_again_at_once() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let done = plan(&mut reconciler, ms(0));
    reconciler.finish_plan(&done, PlanOutcome::Succeeded, ms(0));
    assert_eq!(next(&mut reconciler, ms(0)), "-", "the same plan again");
    assert_eq!(reconciler.next_due(), ms(5));
    assert_eq!(next(&mut reconciler, ms(5)), CREATES);
}

#[test]
fn nothing_goes_back_to_an_older_version() {
    let mut reconciler = reconciler(1);
    let version = |reconciler: &Reconciler| reconciler.known_version_of(ObjectKind::Istio, "a");
    see(&mut reconciler, istio("a", 5));
    see(&mut reconciler, istio("a", 4));
    assert_eq!(
        version(&reconciler),
        Some(5),
        "a watch that lags behind our write"
    );
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 3));
    assert_eq!(version(&reconciler), Some(5), "the end of the one before");
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 6));
    assert_eq!(version(&reconciler), None);
    see(&mut reconciler, istio("a", 5));
    assert_eq!(version(&reconciler), None, "an answer that comes after the end");
    see(&mut reconciler, istio("a", 7));
    assert_eq!(version(&reconciler), Some(7), "a new one of the same name");
}

#[test]
fn a_list_replaces_what_was_known_but_for_what_is_newer() {
    let mut reconciler = reconciler(1);
    for (name, version) in [("a", 1), ("b", 2), ("c", 9)] {
        see(&mut reconciler, istio(name, version));
    }
    reconciler.finish_list(ObjectKind::Istio, &["a".to_owned()].into(), "5");
    let names: Vec<&str> = reconciler
        .snapshot()
        .istios()
        .iter()
        .map(mainstay_api::Resource::name)
        .collect();
    assert_eq!(names, ["a", "c"], "b is gone, c was written after the list");
}

#[test]
fn what_was_read_again_and_is_not_there_is_gone_unless_it_came_back() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    reconciler.confirm_missing(ObjectKind::Istio, "a", Some(0));
    assert_eq!(reconciler.known_version_of(ObjectKind::Istio, "a"), Some(1));
    reconciler.confirm_missing(ObjectKind::Istio, "a", Some(1));
    assert_eq!(reconciler.known_version_of(ObjectKind::Istio, "a"), None);
}

#[test]
fn an_object_that_cannot_be_read_stops_no_other() {
    let mut reconciler = reconciler(1);
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "1"}, "spec": {"version": 7}});
    let error = reconciler.observe_object(ObjectKind::Istio, bad).unwrap_err();
    assert_eq!(error.to_string(), "Istio \"bad\" cannot be read");
    see(&mut reconciler, istio("a", 2));
    assert_eq!(next(&mut reconciler, at(0)), CREATES);
}

#[test]
fn everything_is_looked_at_again_every_ten_minutes() {
    let mut reconciler = reconciler(1);
    let mut object = istio("a", 1);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    see(&mut reconciler, object);
    assert_eq!(next(&mut reconciler, at(0)), "Istio/a rests");
    assert_eq!(next(&mut reconciler, at(599)), "-");
    assert_eq!(next(&mut reconciler, at(600)), "Istio/a rests");
    assert_eq!(reconciler.next_due(), at(1200));
}

#[test]
fn when_telling_of_a_failure_fails_too_all_of_it_waits() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let tried = plan(&mut reconciler, ms(0));
    reconciler.finish_plan(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut reconciler, ms(0));
    reconciler.finish_plan(&told, refusal(&told, 0), ms(0));
    assert_eq!(next(&mut reconciler, ms(0)), "-");
    assert_eq!(reconciler.next_due(), ms(10));
    assert_eq!(next(&mut reconciler, ms(10)), CREATES);
}

#[test]
fn a_moment_that_has_passed_does_not_come_again_and_again() {
    let mut reconciler = reconciler(1);
    let subject = Subject::istio("a");
    let mut rested = Plan::empty(subject.clone());
    rested.requeue = Requeue::At(at(0));
    reconciler.queue.wake(subject);
    assert!(reconciler.queue.take(at(5)).is_some());
    reconciler.rest(&rested, at(5));
    assert_eq!(next(&mut reconciler, at(5)), "-", "not at once");
    assert!(
        reconciler.next_due() > at(5) && reconciler.next_due() < at(6),
        "but soon"
    );
}

#[test]
fn what_one_list_lacked_lives_if_the_next_one_has_it() {
    let mut reconciler = reconciler(1);
    let list = |reconciler: &mut Reconciler, names: &[&str], at: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        reconciler.finish_list(ObjectKind::Istio, &names, at);
    };
    see(&mut reconciler, istio("a", 1));
    reconciler.begin_list(ObjectKind::Istio);
    list(&mut reconciler, &[], "5");
    assert!(reconciler.snapshot().istios().is_empty());
    see(&mut reconciler, istio("a", 1));
    assert!(
        reconciler.snapshot().istios().is_empty(),
        "an answer that came late"
    );
    reconciler.begin_list(ObjectKind::Istio);
    see(&mut reconciler, istio("a", 1));
    list(&mut reconciler, &["a"], "6");
    assert_eq!(reconciler.known_version_of(ObjectKind::Istio, "a"), Some(1));
    list(&mut reconciler, &[], "7");
    let grave = reconciler.tombstone(ObjectKind::Istio, "a");
    reconciler
        .confirm_object(ObjectKind::Istio, istio("a", 1), grave)
        .unwrap();
    assert_eq!(
        reconciler.known_version_of(ObjectKind::Istio, "a"),
        Some(1),
        "it was asked for, and is there"
    );
    reconciler.remove_object(ObjectKind::Istio, &istio("a", 8));
    reconciler
        .confirm_object(ObjectKind::Istio, istio("a", 1), grave)
        .unwrap();
    assert!(
        reconciler.snapshot().istios().is_empty(),
        "it went after it was asked for"
    );
}

#[test]
fn a_server_that_does_not_answer_is_no_refusal_until_it_has_been_silent_for_long() {
    let mut reconciler = reconciler(1);
    see(&mut reconciler, istio("a", 1));
    let subject = Subject::Object(ObjectKind::Istio, "a".into());
    let mut classes = Vec::new();
    for _ in 0..20 {
        let now = reconciler.next_due().max(reconciler.snapshot().now);
        let Some(NextPlan::Execute(tried)) = reconciler.next_plan(now) else {
            continue;
        };
        reconciler.finish_plan(&tried, failure(&tried, 0, ErrorClass::Unanswered), now);
        classes.push(reconciler.snapshot().last_failure(&subject).unwrap().class);
    }
    let first = classes
        .iter()
        .position(|class| *class == ErrorClass::Other)
        .unwrap();
    assert!(first > 3, "{classes:?}");
    let (patient, rest) = classes.split_at(first);
    assert!(
        patient.iter().all(|class| *class == ErrorClass::Unanswered),
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
fn an_answer_that_comes_late_brings_no_workload_back_and_none_to_an_older_version() {
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
        "a watch was ahead of the answer"
    );
    reconciler.observe_written_workload(key.clone(), deployment(6).1);
    assert_eq!(version(&reconciler).as_deref(), Some("6"));
    reconciler.observe_workload(key.clone(), deployment(5).1);
    assert_eq!(
        version(&reconciler).as_deref(),
        Some("6"),
        "the answer was ahead of a watch"
    );
    reconciler.remove_workload(&key);
    reconciler.observe_written_workload(key, deployment(7).1);
    assert_eq!(version(&reconciler), None);
}
