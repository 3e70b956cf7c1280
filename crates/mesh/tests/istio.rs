//! Tests `Istio`: validation, revision names, grace periods, ownership and status. Includes upstream's test
//! cases with their names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{ConditionType, Istio, IstioSpec, ObjectKind, RevisionSpec};
use mainstay_mesh::snapshot::{Failure, Source};
use mainstay_mesh::{ErrorClass, Observation, Requeue, Subject, active_revision_name, grace_period};
use serde_json::{Value, json};
use support::{World, actions, condition, revision_spec};

fn istio(spec: Value) -> Istio {
    Istio {
        spec: serde_json::from_value(spec).unwrap(),
        ..Istio::default()
    }
}

/// Checks the `Reconciled` condition and the requeue of an Istio with this spec.
fn check_error(name: &str, spec: Value, expected: &str, requeue: Requeue) {
    let mut world = World::default();
    world.istio("my-istio", spec);
    let subject = Subject::istio("my-istio");
    assert_eq!(
        condition(&world, &subject, &ConditionType::Reconciled),
        format!("Reconciled=False/ReconcileError: {expected}"),
        "{name}"
    );
    assert_eq!(
        condition(&world, &subject, &ConditionType::Ready),
        "Ready=Unknown/ReconcileError: cannot determine readiness due to reconciliation error",
        "{name}"
    );
    assert_eq!(world.plan(&subject).requeue, requeue, "{name}");
    world.settle_and_check_idle();
    assert_eq!(world.conditions(&subject)[0], "state=ReconcileError", "{name}");
    assert!(world.revisions().is_empty(), "{name}");
}

#[test]
fn errors_of_an_istio_are_reported() {
    let namespace = "istio-system";
    check_error(
        "no version",
        json!({"namespace": namespace}),
        "validation error: spec.version not set",
        Requeue::OnEvent,
    );
    check_error(
        "no namespace",
        json!({"version": "v1.29.1"}),
        "validation error: spec.namespace not set",
        Requeue::OnEvent,
    );
    check_error(
        "no spec at all",
        json!({}),
        "validation error: spec.version not set",
        Requeue::OnEvent,
    );
    check_error(
        "end of life",
        json!({"version": "v1.23.4", "namespace": namespace}),
        "validation error: version \"v1.23.4\" is end-of-life and cannot be installed; use a supported version",
        Requeue::OnEvent,
    );
    check_error(
        "unknown version",
        json!({"version": "v9.9.9", "namespace": namespace}),
        "failed to resolve Istio version for \"my-istio\": version \"v9.9.9\" not found",
        Requeue::Backoff,
    );
    check_error(
        "charts not here",
        json!({"version": "v1.30.3", "namespace": namespace}),
        "the charts of Istio 1.30.3 are not available; run `mainstay charts pull 1.30.3` and add the version with the printed digest \
         to `charts.pull` of the operator's Helm chart",
        Requeue::Backoff,
    );
    check_error(
        "values computation failure",
        json!({"version": "v1.29.1", "namespace": namespace, "profile": "external"}),
        "failed to apply profile: failed to get values from profile [\"default\" \"external\"]: failed to read profile file \
         v1.29.1/profiles/external.yaml: open v1.29.1/profiles/external.yaml: file does not exist",
        Requeue::Backoff,
    );
    check_error(
        "path traversal",
        json!({"version": "v1.29.1", "namespace": namespace, "profile": "../../etc/passwd"}),
        "failed to apply profile: failed to get values from profile [\"default\" \"../../etc/passwd\"]: validation error: invalid \
         profile name ../../etc/passwd",
        Requeue::OnEvent,
    );
}

#[test]
fn a_failed_write_is_reported_and_retried_when_due() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    let subject = Subject::istio("default");
    let failed = world.plan(&subject).steps[0].action.clone();
    let retry_at = world.snapshot.now + jiff::SignedDuration::from_secs(10);
    let failure = Failure {
        action: failed,
        class: ErrorClass::Other,
        message: "simulated error".into(),
        retry_at,
    };
    world.observe(Observation::Failed(subject.clone(), failure));
    assert_eq!(
        condition(&world, &subject, &ConditionType::Reconciled),
        "Reconciled=False/ReconcileError: failed to create IstioRevision \"default\": simulated error"
    );
    assert_eq!(world.plan(&subject).requeue, Requeue::At(retry_at));
    let executed = world.settle();
    assert_eq!(
        executed.len(),
        2,
        "a status and an event, and no second attempt: {executed:#?}"
    );
    assert!(
        world.plan(&subject).is_empty(),
        "nothing to do until the retry is due"
    );
    world.advance(10);
    world.queue.insert(subject.clone());
    world.settle_and_check_idle();
    assert_eq!(world.conditions(&subject)[0], "state=Healthy");
}

#[test]
fn a_changed_spec_is_not_held_back_by_an_old_failure() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.28.2", "namespace": "istio-system"}),
    );
    let subject = Subject::istio("default");
    let failure = Failure {
        action: world.plan(&subject).steps[0].action.clone(),
        class: ErrorClass::Other,
        message: "simulated error".into(),
        retry_at: world.snapshot.now + jiff::SignedDuration::from_hours(1),
    };
    world.observe(Observation::Failed(subject.clone(), failure));
    world.settle();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    assert_eq!(
        actions(&world.plan(&subject))[0],
        "create revision default v1.29.1"
    );
}

#[test]
fn active_revision_name_depends_on_strategy_and_version() {
    let world = World::default();
    let check = |name: &str, strategy: Value, version: &str, expected: &str| {
        let mut istio = istio(json!({"version": version, "namespace": "x", "updateStrategy": strategy}));
        istio.metadata.name = "test-istio".into();
        assert_eq!(
            active_revision_name(&world.snapshot, &istio).unwrap(),
            expected,
            "{name}"
        );
    };
    check(
        "No update strategy specified",
        Value::Null,
        "v1.29.1",
        "test-istio",
    );
    check("InPlace", json!({"type": "InPlace"}), "v1.29.1", "test-istio");
    check(
        "RevisionBased v1.28.2",
        json!({"type": "RevisionBased"}),
        "v1.28.2",
        "test-istio-v1-28-2",
    );
    check(
        "RevisionBased v1.29.1",
        json!({"type": "RevisionBased"}),
        "v1.29.1",
        "test-istio-v1-29-1",
    );
    check(
        "an alias is replaced by its version",
        json!({"type": "RevisionBased"}),
        "v1.29-latest",
        "test-istio-v1-29-1",
    );
    check(
        "an unknown strategy",
        json!({"type": "Sideways"}),
        "v1.29.1",
        "test-istio",
    );
}

#[test]
fn grace_periods_have_a_default_and_a_minimum() {
    let check = |name: &str, strategy: Value, seconds: i64| {
        assert_eq!(
            grace_period(&istio(json!({"updateStrategy": strategy}))).as_secs(),
            seconds,
            "{name}"
        );
    };
    check("Nil update strategy", Value::Null, 30);
    check("Nil grace period", json!({}), 30);
    check(
        "Grace period less than minimum",
        json!({"inactiveRevisionDeletionGracePeriodSeconds": -10}),
        0,
    );
    check(
        "Grace period more than minimum",
        json!({"inactiveRevisionDeletionGracePeriodSeconds": 15}),
        15,
    );
    check(
        "a grace period that overflows",
        json!({"inactiveRevisionDeletionGracePeriodSeconds": i64::MAX}),
        i64::MAX,
    );
}

#[test]
fn the_status_copies_the_conditions_of_the_active_revision() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.settle();
    world.deployment("istio-system", "istiod", 2, 1);
    world.settle_and_check_idle();
    assert_eq!(
        world.conditions(&Subject::istio("default")),
        [
            "state=IstiodNotReady",
            "Reconciled=True/Reconciled",
            "Ready=False/IstiodNotReady: not all istiod pods are ready",
            "DependenciesHealthy=True/DependenciesHealthy"
        ]
    );
}

#[test]
fn the_status_counts_its_own_revisions() {
    let mut world = World::default();
    let spec = |version: &str| json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": []}});
    for version in ["v1.27.9", "v1.28.2", "v1.29.1"] {
        let name = format!("default-{}", version.replace('.', "-"));
        world.namespace(&format!("app-{name}"), &format!("istio.io/rev={name}"));
        world.istio("default", spec(version));
        world.settle();
    }
    world.revision("foreign", revision_spec("foreign"));
    world.deployment("istio-system", "istiod-default-v1-27-9", 1, 0);
    world.namespace("app-default-v1-29-1", "");
    world.settle_and_check_idle();
    let counts = world.snapshot.istios().get("default").unwrap().status.revisions;
    assert_eq!((counts.total, counts.ready, counts.in_use), (3, 2, 2));
}

#[test]
fn new_revision_is_reported_as_missing() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    let subject = Subject::istio("default");
    assert_eq!(
        condition(&world, &subject, &ConditionType::Ready),
        "Ready=False/ActiveRevisionNotFound: active IstioRevision not found"
    );
}

#[test]
fn revisions_that_cannot_be_read_are_reported_and_not_changed() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.28.2", "namespace": "istio-system"}),
    );
    world.settle();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.fail_source(Source::Objects(ObjectKind::IstioRevision), "simulated error");
    world
        .queue
        .retain(|subject| *subject == Subject::istio("default"));
    let executed = world.settle();
    assert_eq!(executed, ["Istio/default: status (StatusChanged)"]);
    assert_eq!(
        world.conditions(&Subject::istio("default"))[..3],
        [
            "state=FailedToGetActiveRevision",
            "Reconciled=Unknown/FailedToGetActiveRevision: failed to get active IstioRevision: get failed: simulated error",
            "Ready=Unknown/FailedToGetActiveRevision: failed to get active IstioRevision: get failed: simulated error",
        ]
    );
    let counts = world.snapshot.istios().get("default").unwrap().status.revisions;
    assert_eq!((counts.total, counts.ready, counts.in_use), (-1, -1, -1));
}

#[test]
fn an_unchanged_status_is_not_written() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.settle();
    world.advance(86_400);
    assert!(world.plan(&Subject::istio("default")).is_empty());
}

#[test]
fn an_error_keeps_the_active_revision_in_the_status() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.settle();
    world.istio(
        "default",
        json!({"version": "v1.23.4", "namespace": "istio-system"}),
    );
    world.settle_and_check_idle();
    let status = &world.snapshot.istios().get("default").unwrap().status;
    assert_eq!(
        (status.active_revision_name.as_str(), status.state.name()),
        ("default", "ReconcileError")
    );
    assert_eq!(status.observed_generation, 2);
    assert_eq!(world.revisions(), ["default"], "and nothing is deleted");
}

#[test]
fn a_revision_without_an_owner_is_adopted() {
    let mut world = World::default();
    world.revision("default", revision_spec("default"));
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    let executed = world.settle_and_check_idle();
    assert_eq!(
        executed[0],
        "Istio/default: update revision default v1.29.1 (RevisionUpdated)"
    );
    let uid = &world.snapshot.istios().get("default").unwrap().metadata.uid;
    assert!(
        world
            .snapshot
            .revisions()
            .get("default")
            .unwrap()
            .metadata
            .is_owned_by(uid)
    );
}

#[test]
fn a_revision_with_another_owner_is_not_changed() {
    let mut world = World::default();
    world.istio("a", json!({"version": "v1.29.1", "namespace": "istio-system"}));
    world.settle();
    let other = world.snapshot.istios().get("a").unwrap().owner_reference();
    world.revision("b", revision_spec("b"));
    world.edit::<RevisionSpec>("b", |revision| revision.metadata.owner_references = vec![other]);
    world.istio("b", json!({"version": "v1.28.2", "namespace": "istio-system"}));
    let subject = Subject::istio("b");
    assert_eq!(
        condition(&world, &subject, &ConditionType::Reconciled),
        "Reconciled=False/ReconcileError: IstioRevision \"b\" is controlled by Istio \"a\""
    );
    world.settle();
    assert_eq!(
        world.snapshot.revisions().get("b").unwrap().spec.version,
        "v1.29.1"
    );
}

#[test]
fn a_revision_in_another_namespace_is_not_changed() {
    let mut world = World::default();
    world.namespace("elsewhere", "");
    world.revision("default", revision_spec("default"));
    world.istio("default", json!({"version": "v1.29.1", "namespace": "elsewhere"}));
    assert_eq!(
        condition(&world, &Subject::istio("default"), &ConditionType::Reconciled),
        "Reconciled=False/ReconcileError: IstioRevision \"default\" is in namespace \"istio-system\", which cannot be changed"
    );
}

#[test]
fn a_removed_owner_reference_is_restored() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.settle();
    world.edit::<RevisionSpec>("default", |revision| revision.metadata.owner_references.clear());
    world.queue.insert(Subject::istio("default"));
    assert_eq!(
        world.settle_and_check_idle()[0],
        "Istio/default: update revision default v1.29.1 (RevisionUpdated)"
    );
}

#[test]
fn values_change_the_active_revision_in_place() {
    let mut world = World::default();
    let spec = |values: Value| json!({"version": "v1.29.1", "namespace": "istio-system", "values": values, "updateStrategy": {"type": "RevisionBased"}});
    world.istio("default", spec(json!({"pilot": {"a": 1}})));
    world.settle();
    world.istio("default", spec(json!({"pilot": {"a": 2}})));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-29-1"]);
    let revision = world.snapshot.revisions().get("default-v1-29-1").unwrap();
    assert_eq!(
        revision.spec.values.clone().map(Value::Object),
        Some(json!({
            "global": {"configValidation": true, "istioNamespace": "istio-system"},
            "pilot": {"a": 2},
            "revision": "default-v1-29-1",
        }))
    );
}

#[test]
fn nothing_is_planned_before_all_sources_were_listed() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    for source in Source::ALL {
        let mut half = world.clone();
        half.observe(Observation::Source(
            source,
            mainstay_mesh::snapshot::SourceState::Pending,
        ));
        assert!(half.plan(&Subject::istio("default")).is_empty(), "{source:?}");
    }
    assert!(!world.plan(&Subject::istio("default")).is_empty());
}

#[test]
fn a_deleted_istio_is_left_to_the_garbage_collector() {
    let mut world = World::default();
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
    );
    world.edit::<IstioSpec>("default", |istio| {
        istio.metadata.finalizers = vec!["example.com/x".into()];
    });
    world.delete::<IstioSpec>("default");
    assert!(world.plan(&Subject::istio("default")).is_empty());
}

#[test]
fn a_field_without_effect_is_reported_once_per_change() {
    let mut world = World::default();
    let spec = |version: &str| json!({"version": version, "namespace": "istio-system", "updateStrategy": {"updateWorkloads": true}});
    let reported = |executed: &[String]| {
        executed
            .iter()
            .filter(|line| line.contains("event !DeprecatedField"))
            .count()
    };
    world.istio("default", spec("v1.28.2"));
    assert_eq!(reported(&world.settle_and_check_idle()), 1);
    world.deployment("istio-system", "istiod", 2, 1);
    assert_eq!(reported(&world.settle_and_check_idle()), 0);
    world.istio("default", spec("v1.29.1"));
    assert_eq!(reported(&world.settle_and_check_idle()), 1);
}
