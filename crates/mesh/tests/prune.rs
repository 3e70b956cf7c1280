//! Tests pruning: deleted and kept revisions, and the requeue. Includes upstream's test cases with their
//! names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, IstioSpec, ObjectKind, Reason, RevisionSpec, Time,
};
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::{Action, Requeue, Subject};
use serde_json::{Value, json};
use support::{World, revision_spec};

const GRACE: i64 = 30;

/// Returns a world with an Istio and inactive revisions, each unused for this many seconds.
fn world(unused: &[(&str, i64)], values: &Value) -> World {
    let mut world = World::default();
    let strategy = json!({"type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": GRACE, "revisionTags": []});
    world.istio("my", json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": strategy, "values": values}));
    world.settle();
    for (name, seconds) in unused {
        world.revision(name, revision_spec(name));
        let owner = world.snapshot.istios().get("my").unwrap().owner_reference();
        world.edit::<RevisionSpec>(name, |revision| revision.metadata.owner_references = vec![owner]);
        set_in_use(&mut world, name, Some(ConditionStatus::False), *seconds);
    }
    world
}

/// Sets the `InUse` condition with a transition time this many seconds ago.
fn set_in_use(world: &mut World, name: &str, status: Option<ConditionStatus>, seconds: i64) {
    let since = world.snapshot.now - jiff::SignedDuration::from_secs(seconds);
    world.edit::<RevisionSpec>(name, |revision| {
        revision
            .status
            .conditions
            .0
            .retain(|known| known.kind != ConditionType::InUse);
        if let Some(status) = status {
            let mut condition =
                Condition::new(ConditionType::InUse, status, Reason::NotReferencedByAnything, "");
            condition.last_transition_time = Some(Time::from_timestamp(since));
            revision.status.conditions.0.push(condition);
        }
    });
}

/// Checks the revisions that the plan deletes, and the seconds until the Istio is requeued.
fn check(name: &str, world: &World, deleted: &[&str], requeue: Option<i64>) {
    let plan = world.plan(&Subject::istio("my"));
    let found: Vec<&str> = plan
        .actions()
        .filter_map(|action| match action {
            Action::DeleteRevision(object) => Some(object.name()),
            _ => None,
        })
        .collect();
    assert_eq!(found, deleted, "{name}");
    let seconds = match plan.requeue {
        Requeue::At(time) => Some(time.as_second() - world.snapshot.now.as_second()),
        _ => None,
    };
    assert_eq!(seconds, requeue, "{name}");
}

#[test]
fn only_revisions_unused_for_the_grace_period_are_deleted() {
    let none = || &Value::Null;
    let mut active = world(&[], none());
    set_in_use(&mut active, "my-v1-29-1", Some(ConditionStatus::False), 1000);
    check(
        "preserves active IstioRevision even if not in use",
        &active,
        &[],
        None,
    );

    let mut used = world(&[("old", 1000)], none());
    set_in_use(&mut used, "old", Some(ConditionStatus::True), 1000);
    check(
        "preserves non-active IstioRevision that's in use",
        &used,
        &[],
        None,
    );

    check(
        "preserves unused non-active IstioRevision during grace period",
        &world(&[("old", 10)], none()),
        &[],
        Some(20),
    );

    let mut foreign = world(&[("old", 1000)], none());
    foreign.edit::<RevisionSpec>("old", |revision| {
        revision.metadata.owner_references[0].uid = "other-uid".into();
    });
    check(
        "preserves IstioRevision owned by a different Istio",
        &foreign,
        &[],
        None,
    );

    check(
        "deletes non-active IstioRevision that's not in use",
        &world(&[("old", 31)], none()),
        &["old"],
        None,
    );
    check(
        "deletes at the exact time",
        &world(&[("old", 30)], none()),
        &["old"],
        None,
    );

    check(
        "returns requeueAfter of earliest IstioRevision requiring pruning",
        &world(&[("old-a", 5), ("old-b", 25), ("old-c", 15)], none()),
        &[],
        Some(5),
    );

    let mut unknown = world(&[("old", 1000)], none());
    set_in_use(&mut unknown, "old", Some(ConditionStatus::Unknown), 1000);
    check(
        "preserves non-active IstioRevision with unknown usage status",
        &unknown,
        &[],
        None,
    );

    let mut missing = world(&[("old", 1000)], none());
    set_in_use(&mut missing, "old", None, 0);
    check(
        "preserves non-active IstioRevision with missing InUse condition",
        &missing,
        &[],
        None,
    );
}

#[test]
fn an_outdated_status_deletes_nothing() {
    let mut world = world(&[("old", 1000)], &Value::Null);
    world.namespace("app", "istio.io/rev=old");
    check(
        "a label was put on after the status was written",
        &world,
        &[],
        None,
    );
    world.namespace("app", "");
    world.pod("app", "p", "", "istio.io/rev=old");
    check(
        "a proxy began to run after the status was written",
        &world,
        &[],
        None,
    );
    world.pod_gone("app", "p");
    check("nothing refers to it", &world, &["old"], None);
    for source in [
        Source::Pods,
        Source::Namespaces,
        Source::Objects(ObjectKind::IstioRevisionTag),
    ] {
        let mut blind = world.clone();
        blind.fail_source(source, "forbidden");
        check("use is unknown", &blind, &[], None);
    }
}

#[test]
fn a_revision_being_deleted_is_not_deleted_again() {
    let mut world = world(&[("old", 1000)], &Value::Null);
    world.edit::<RevisionSpec>("old", |revision| {
        revision.metadata.finalizers = vec!["x/y".into()];
    });
    world.delete::<RevisionSpec>("old");
    check("going", &world, &[], None);
}

#[test]
fn an_external_control_plane_is_never_pruned() {
    let check_values = |name: &str, values: &Value, external: bool| {
        let deleted: &[&str] = if external { &[] } else { &["old"] };
        check(name, &world(&[("old", 1000)], values), deleted, None);
    };
    check_values("Empty spec.values does not manage", &Value::Null, false);
    check_values(
        "Empty spec.values.pilot does not manage",
        &json!({"pilot": {}}),
        false,
    );
    check_values(
        "Empty spec.values.pilot.env does not manage",
        &json!({"pilot": {"env": {}}}),
        false,
    );
    check_values(
        "EXTERNAL_ISTIOD=false does not manage",
        &json!({"pilot": {"env": {"EXTERNAL_ISTIOD": "false"}}}),
        false,
    );
    check_values(
        "env with EXTERNAL_ISTIOD=true does manage",
        &json!({"pilot": {"env": {"EXTERNAL_ISTIOD": "true"}}}),
        true,
    );
}

#[test]
fn every_deletion_has_a_precondition() {
    let world = world(&[("old", 1000)], &Value::Null);
    let old = &world.snapshot.revisions().get("old").unwrap().metadata;
    let plan = world.plan(&Subject::istio("my"));
    let precondition = plan.actions().find_map(Action::precondition).unwrap();
    assert_eq!(
        (&precondition.uid, &precondition.resource_version),
        (&old.uid, &old.resource_version)
    );
    assert!(!precondition.uid.is_empty() && !precondition.resource_version.is_empty());
}

#[test]
fn an_istio_with_an_error_deletes_nothing() {
    let mut world = world(&[("old", 1000)], &Value::Null);
    world.edit::<IstioSpec>("my", |istio| istio.spec.version = "v1.23.4".into());
    check("end of life", &world, &[], None);
}
