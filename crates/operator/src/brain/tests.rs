//! The brain alone: what is told to it, and what it wants done.

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

/// A brain for which everything was listed, and nothing was there.
fn brain(max_concurrent: usize) -> Brain {
    let mut library = Library::default();
    let profiles = [("default".to_owned(), Values::new())].into_iter().collect();
    library.put("1.29.1".parse().unwrap(), profiles);
    let mut brain = Brain::new(
        at(0),
        Arc::new(Settings::default()),
        Arc::new(library),
        max_concurrent,
    );
    for source in Source::ALL {
        brain.source(source, SourceState::Ready);
    }
    brain.open();
    brain
}

fn istio(name: &str, version: u64) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(), "generation": 1},
        "spec": {"version": "v1.29.1", "namespace": "istio-system"},
    })
}

fn see(brain: &mut Brain, object: Value) {
    brain.object_seen(ObjectKind::Istio, object).unwrap();
}

fn plan(brain: &mut Brain, now: Timestamp) -> Plan {
    match brain.next(now) {
        Some(Next::Plan(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

/// What is to be done, in short; `-` when nothing is.
fn next(brain: &mut Brain, now: Timestamp) -> String {
    match brain.next(now) {
        None => "-".into(),
        Some(Next::Idle(plan)) => format!("{} rests", plan.subject),
        Some(Next::Panicked(subject)) => format!("{subject} panicked"),
        Some(Next::Plan(plan)) => {
            let actions = plan
                .actions()
                .map(|action| action.to_string().split(':').next().unwrap().to_owned());
            format!("{}: {}", plan.subject, actions.collect::<Vec<_>>().join(", "))
        }
    }
}

fn refusal(plan: &Plan, step: usize) -> Ended {
    failure(plan, step, ErrorClass::Other)
}

fn failure(plan: &Plan, step: usize, class: ErrorClass) -> Ended {
    Ended::Failed(Box::new(Failed {
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
    let mut brain = Brain::new(
        at(0),
        Arc::new(Settings::default()),
        Arc::new(Library::default()),
        1,
    );
    see(&mut brain, istio("a", 1));
    assert_eq!(next(&mut brain, at(0)), "-", "not open");
    brain.open();
    assert_eq!(next(&mut brain, at(0)), "Istio/a rests", "open, but not listed");
    for source in Source::ALL {
        brain.source(source, SourceState::Ready);
    }
    let found = next(&mut brain, at(0));
    assert!(found.starts_with("Istio/a: "), "{found}");
}

#[test]
fn a_subject_is_never_worked_on_twice_at_once() {
    let mut brain = brain(2);
    see(&mut brain, istio("a", 1));
    assert_eq!(next(&mut brain, at(0)), CREATES);
    see(&mut brain, istio("a", 2));
    assert_eq!(next(&mut brain, at(0)), "-");
    see(&mut brain, istio("b", 3));
    assert_eq!(
        next(&mut brain, at(0)).split(':').next(),
        Some("Istio/b"),
        "another one may be"
    );
    see(&mut brain, istio("c", 4));
    assert_eq!(next(&mut brain, at(0)), "-", "but not three");
}

/// The status a plan writes, as if it had been written.
fn written(plan: &Plan, version: u64) -> Value {
    let mut object = istio(plan.subject.name(), version);
    object["status"] = plan.status().unwrap().to_json().unwrap();
    object
}

#[test]
fn what_failed_waits_longer_each_time_and_is_told_meanwhile() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let tried = plan(&mut brain, ms(0));
    brain.done(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut brain, ms(0));
    assert_eq!(told.steps.len(), 2, "status and event: {told:?}");
    see(&mut brain, written(&told, 2));
    brain.done(&told, Ended::Done, ms(0));
    let mut now = 0;
    for delay in [5, 10, 20, 40, 80] {
        assert_eq!(next(&mut brain, ms(now)), "Istio/a rests");
        assert_eq!(brain.wake_at(), ms(now + delay));
        assert_eq!(next(&mut brain, ms(now + delay - 1)), "-");
        now += delay;
        let tried = plan(&mut brain, ms(now));
        brain.done(&tried, refusal(&tried, 0), ms(now));
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_is() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let tried = plan(&mut brain, at(0));
    let Ended::Failed(mut failed) = refusal(&tried, 0) else {
        panic!()
    };
    failed.retry_after = Some(Duration::from_secs(7));
    brain.done(&tried, Ended::Failed(failed), at(0));
    let told = plan(&mut brain, at(0));
    see(&mut brain, written(&told, 2));
    brain.done(&told, Ended::Done, at(0));
    assert_eq!(next(&mut brain, at(0)), "Istio/a rests");
    assert_eq!(brain.wake_at(), at(7));
}

#[test]
fn a_success_is_forgiven_what_came_before() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let tried = plan(&mut brain, ms(0));
    brain.done(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut brain, ms(0));
    see(&mut brain, written(&told, 2));
    brain.done(&told, Ended::Done, ms(0));
    assert_eq!(next(&mut brain, ms(0)), "Istio/a rests");
    let tried = plan(&mut brain, ms(5));
    assert!(brain.snapshot().last_failure(&tried.subject).is_some());
    brain.done(&tried, Ended::Done, ms(5));
    assert!(brain.snapshot().last_failure(&tried.subject).is_none());
}

#[test]
fn a_plan_that_changed_nothing_is_not_carried_out_again_at_once() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let done = plan(&mut brain, ms(0));
    brain.done(&done, Ended::Done, ms(0));
    assert_eq!(next(&mut brain, ms(0)), "-", "the same plan again");
    assert_eq!(brain.wake_at(), ms(5));
    assert_eq!(next(&mut brain, ms(5)), CREATES);
}

#[test]
fn nothing_goes_back_to_an_older_version() {
    let mut brain = brain(1);
    let version = |brain: &Brain| brain.version_of(ObjectKind::Istio, "a");
    see(&mut brain, istio("a", 5));
    see(&mut brain, istio("a", 4));
    assert_eq!(version(&brain), Some(5), "a watch that lags behind our write");
    brain.object_gone(ObjectKind::Istio, &istio("a", 3));
    assert_eq!(version(&brain), Some(5), "the end of the one before");
    brain.object_gone(ObjectKind::Istio, &istio("a", 6));
    assert_eq!(version(&brain), None);
    see(&mut brain, istio("a", 5));
    assert_eq!(version(&brain), None, "an answer that comes after the end");
    see(&mut brain, istio("a", 7));
    assert_eq!(version(&brain), Some(7), "a new one of the same name");
}

#[test]
fn a_list_replaces_what_was_known_but_for_what_is_newer() {
    let mut brain = brain(1);
    for (name, version) in [("a", 1), ("b", 2), ("c", 9)] {
        see(&mut brain, istio(name, version));
    }
    brain.objects_listed(ObjectKind::Istio, &["a".to_owned()].into(), "5");
    let names: Vec<&str> = brain
        .snapshot()
        .istios()
        .iter()
        .map(mainstay_api::Resource::name)
        .collect();
    assert_eq!(names, ["a", "c"], "b is gone, c was written after the list");
}

#[test]
fn what_was_read_again_and_is_not_there_is_gone_unless_it_came_back() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    brain.object_missing(ObjectKind::Istio, "a", Some(0));
    assert_eq!(brain.version_of(ObjectKind::Istio, "a"), Some(1));
    brain.object_missing(ObjectKind::Istio, "a", Some(1));
    assert_eq!(brain.version_of(ObjectKind::Istio, "a"), None);
}

#[test]
fn an_object_that_cannot_be_read_stops_no_other() {
    let mut brain = brain(1);
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "1"}, "spec": {"version": 7}});
    let error = brain.object_seen(ObjectKind::Istio, bad).unwrap_err();
    assert_eq!(error.to_string(), "Istio \"bad\" cannot be read");
    see(&mut brain, istio("a", 2));
    assert_eq!(next(&mut brain, at(0)), CREATES);
}

#[test]
fn everything_is_looked_at_again_every_ten_minutes() {
    let mut brain = brain(1);
    let mut object = istio("a", 1);
    object["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    see(&mut brain, object);
    assert_eq!(next(&mut brain, at(0)), "Istio/a rests");
    assert_eq!(next(&mut brain, at(599)), "-");
    assert_eq!(next(&mut brain, at(600)), "Istio/a rests");
    assert_eq!(brain.wake_at(), at(1200));
}

#[test]
fn when_telling_of_a_failure_fails_too_all_of_it_waits() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let tried = plan(&mut brain, ms(0));
    brain.done(&tried, refusal(&tried, 0), ms(0));
    let told = plan(&mut brain, ms(0));
    brain.done(&told, refusal(&told, 0), ms(0));
    assert_eq!(next(&mut brain, ms(0)), "-");
    assert_eq!(brain.wake_at(), ms(10));
    assert_eq!(next(&mut brain, ms(10)), CREATES);
}

#[test]
fn a_moment_that_has_passed_does_not_come_again_and_again() {
    let mut brain = brain(1);
    let subject = Subject::istio("a");
    let mut rested = Plan::empty(subject.clone());
    rested.again = Again::At(at(0));
    brain.queue.wake(subject);
    assert!(brain.queue.take(at(5)).is_some());
    brain.rest(&rested, at(5));
    assert_eq!(next(&mut brain, at(5)), "-", "not at once");
    assert!(brain.wake_at() > at(5) && brain.wake_at() < at(6), "but soon");
}

#[test]
fn what_one_list_lacked_lives_if_the_next_one_has_it() {
    let mut brain = brain(1);
    let list = |brain: &mut Brain, names: &[&str], at: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        brain.objects_listed(ObjectKind::Istio, &names, at);
    };
    see(&mut brain, istio("a", 1));
    brain.objects_listing(ObjectKind::Istio);
    list(&mut brain, &[], "5");
    assert!(brain.snapshot().istios().is_empty());
    see(&mut brain, istio("a", 1));
    assert!(brain.snapshot().istios().is_empty(), "an answer that came late");
    brain.objects_listing(ObjectKind::Istio);
    see(&mut brain, istio("a", 1));
    list(&mut brain, &["a"], "6");
    assert_eq!(brain.version_of(ObjectKind::Istio, "a"), Some(1));
    list(&mut brain, &[], "7");
    let grave = brain.grave_of(ObjectKind::Istio, "a");
    brain
        .object_found(ObjectKind::Istio, istio("a", 1), grave)
        .unwrap();
    assert_eq!(
        brain.version_of(ObjectKind::Istio, "a"),
        Some(1),
        "it was asked for, and is there"
    );
    brain.object_gone(ObjectKind::Istio, &istio("a", 8));
    brain
        .object_found(ObjectKind::Istio, istio("a", 1), grave)
        .unwrap();
    assert!(
        brain.snapshot().istios().is_empty(),
        "it went after it was asked for"
    );
}

#[test]
fn a_server_that_does_not_answer_is_no_refusal_until_it_has_been_silent_for_long() {
    let mut brain = brain(1);
    see(&mut brain, istio("a", 1));
    let subject = Subject::Object(ObjectKind::Istio, "a".into());
    let mut classes = Vec::new();
    for _ in 0..20 {
        let now = brain.wake_at().max(brain.snapshot().now);
        let Some(Next::Plan(tried)) = brain.next(now) else {
            continue;
        };
        brain.done(&tried, failure(&tried, 0, ErrorClass::Unanswered), now);
        classes.push(brain.snapshot().last_failure(&subject).unwrap().class);
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
    Workload::of(WorkloadKind::Deployment, &object).unwrap()
}

#[test]
fn an_answer_that_comes_late_brings_no_workload_back_and_none_to_an_older_version() {
    let mut brain = brain(1);
    let (key, seen) = deployment(5);
    let version = |brain: &Brain| {
        let known = brain.snapshot().workload(&deployment(0).0);
        known.map(|known| known.resource_version.clone())
    };
    brain.workload_seen(key.clone(), seen);
    brain.workload_written(key.clone(), deployment(4).1);
    assert_eq!(
        version(&brain).as_deref(),
        Some("5"),
        "a watch was ahead of the answer"
    );
    brain.workload_written(key.clone(), deployment(6).1);
    assert_eq!(version(&brain).as_deref(), Some("6"));
    brain.workload_seen(key.clone(), deployment(5).1);
    assert_eq!(
        version(&brain).as_deref(),
        Some("6"),
        "the answer was ahead of a watch"
    );
    brain.workload_gone(&key);
    brain.workload_written(key, deployment(7).1);
    assert_eq!(version(&brain), None);
}
