//! Tests the subjects that an event affects: those whose plan may change. An event without a change affects
//! none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{IstioSpec, Reason, RevisionSpec, TagSpec};
use mainstay_mesh::references::ReferrerKey;
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{AffectedSubjects, Observation, Subject};
use serde_json::{Value, json};
use support::{World, pairs, revision_spec};

fn format_subjects(affected: &AffectedSubjects) -> Vec<String> {
    affected.iter().map(ToString::to_string).collect()
}

fn settled_world(strategy: &Value) -> World {
    let mut world = World::default();
    world.istio(
        "my",
        json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": strategy}),
    );
    world.settle_and_check_idle();
    world
}

#[test]
fn a_changed_label_affects_the_old_and_the_new_name() {
    let mut world = settled_world(&Value::Null);
    world.revision("other", revision_spec("other"));
    world.settle();
    assert_eq!(
        format_subjects(&world.namespace("app", "istio.io/rev=my")),
        ["Istio/my", "IstioRevision/my"]
    );
    assert_eq!(
        format_subjects(&world.namespace("app", "istio.io/rev=other")),
        ["Istio/my", "IstioRevision/my", "IstioRevision/other"]
    );
    assert_eq!(
        format_subjects(&world.namespace("app", "")),
        ["IstioRevision/other"],
        "a removed label affects the name it referred to"
    );
}

#[test]
fn a_deleted_pod_affects_the_revision_that_injected_it() {
    let mut world = settled_world(&Value::Null);
    world.pod("app", "p", "", "istio.io/rev=my");
    world.settle();
    assert_eq!(
        format_subjects(&world.pod_gone("app", "p")),
        ["Istio/my", "IstioRevision/my"]
    );
    assert_eq!(
        format_subjects(&world.pod_gone("app", "p")),
        [""; 0],
        "a repeated deletion"
    );
}

#[test]
fn events_that_change_nothing_affect_no_subject() {
    let mut world = settled_world(&Value::Null);
    world.namespace("app", "istio.io/rev=my");
    world.pod("app", "p", "", "istio.io/rev=my");
    world.settle_and_check_idle();
    assert_eq!(
        format_subjects(&world.pod("app", "p", "app=x", "istio.io/rev=my other=y")),
        [""; 0]
    );
    assert_eq!(
        format_subjects(&world.pod("app", "q", "", "istio.io/rev=my")),
        [""; 0],
        "another pod on the same revision"
    );
    assert_eq!(
        format_subjects(&world.namespace("app", "istio.io/rev=my team=x")),
        [""; 0]
    );
    assert_eq!(format_subjects(&world.namespace("elsewhere", "team=x")), [""; 0]);
    assert_eq!(
        format_subjects(&world.pod("elsewhere", "p", "app=x", "")),
        [""; 0]
    );
    assert_eq!(
        format_subjects(&world.namespace("app2", "istio.io/rev=unknown")),
        [""; 0],
        "no object has this name"
    );
    let fact = *world.snapshot.deployment("istio-system", "istiod-my").unwrap();
    let again = Observation::Deployment("istio-system".into(), "istiod-my".into(), Some(fact));
    assert_eq!(format_subjects(&world.observe(again)), [""; 0]);
    let other = Observation::Deployment("app".into(), "web".into(), Some(fact));
    assert_eq!(format_subjects(&world.observe(other)), [""; 0]);
}

#[test]
fn a_namespace_affects_its_installers_only_when_created_or_deleted() {
    let mut world = settled_world(&Value::Null);
    let observation = |labels: &str, terminating| Observation::Namespace {
        name: "istio-system".into(),
        labels: pairs(labels),
        terminating,
        uid: String::new(),
        resource_version: String::new(),
        annotations: std::collections::BTreeMap::new(),
    };
    assert_eq!(
        format_subjects(&world.observe(observation("a=b", false))),
        [""; 0]
    );
    assert_eq!(
        format_subjects(&world.observe(observation("a=b", true))),
        ["IstioRevision/my"]
    );
    let gone = Observation::ReferrerGone(ReferrerKey::Namespace("istio-system".into()));
    assert_eq!(format_subjects(&world.observe(gone)), ["IstioRevision/my"]);
    assert_eq!(
        format_subjects(&world.namespace("istio-system", "")),
        ["IstioRevision/my"],
        "namespace created later"
    );
}

#[test]
fn an_istio_affects_the_objects_that_refer_to_it() {
    let mut world = settled_world(&json!({"type": "RevisionBased", "revisionTags": []}));
    world.tag("prod", "Istio", "my");
    world.ztunnel(
        json!({"version": "v1.29.1", "namespace": "ztunnel", "targetRef": {"kind": "Istio", "name": "my"}}),
    );
    world.settle_and_check_idle();
    let istio = world.snapshot.istios().get("my").cloned().unwrap();
    let affected = world.observe(Observation::Istio(istio));
    assert_eq!(
        format_subjects(&affected),
        ["Istio/my", "IstioRevisionTag/prod", "ZTunnel/default"]
    );
}

#[test]
fn a_revision_affects_its_owner_and_the_tags_of_its_owner() {
    let mut world = settled_world(&json!({"type": "RevisionBased", "revisionTags": []}));
    world.tag("prod", "Istio", "my");
    world.tag("pinned", "IstioRevision", "my-v1-29-1");
    world.settle_and_check_idle();
    let revision = world.snapshot.revisions().get("my-v1-29-1").cloned().unwrap();
    let affected = world.observe(Observation::Revision(revision));
    assert_eq!(
        format_subjects(&affected),
        [
            "Istio/my",
            "IstioRevision/my-v1-29-1",
            "IstioRevisionTag/pinned",
            "IstioRevisionTag/prod"
        ]
    );
}

#[test]
fn a_moved_tag_affects_its_previous_revision() {
    let mut world = World::default();
    world.revision("a", revision_spec("a"));
    world.revision("b", revision_spec("b"));
    world.tag("prod", "IstioRevision", "a");
    world.settle();
    world.queue.clear();
    world.edit::<TagSpec>("prod", |tag| tag.status.istio_revision = "b".into());
    assert_eq!(
        format_subjects(&world.queue),
        ["IstioRevision/a", "IstioRevision/b", "IstioRevisionTag/prod"]
    );
}

#[test]
fn objects_with_the_same_name_affect_each_other() {
    let mut world = World::default();
    world.revision("x", revision_spec("x"));
    world.settle();
    world.queue.clear();
    world.tag("x", "IstioRevision", "elsewhere");
    assert_eq!(
        format_subjects(&world.queue),
        ["IstioRevision/x", "IstioRevisionTag/x"]
    );
    world.settle();
    world.queue.clear();
    world.edit::<RevisionSpec>("x", |revision| revision.metadata.finalizers.clear());
    world.delete::<RevisionSpec>("x");
    assert!(world.queue.contains(&Subject::tag("x")));
}

#[test]
fn cni_and_ztunnel_affect_revisions_only_when_their_state_changes() {
    let mut world = settled_world(&Value::Null);
    let mut cni = world.cni(json!({"version": "v1.29.1", "namespace": "istio-cni"}));
    world.settle();
    cni = world.snapshot.cnis().get(cni.name()).cloned().unwrap();
    assert_eq!(
        format_subjects(&world.observe(Observation::Cni(cni.clone()))),
        ["IstioCNI/default"]
    );
    cni.status.state = Reason::DaemonSetNotReady;
    assert_eq!(
        format_subjects(&world.observe(Observation::Cni(cni))),
        ["IstioRevision/my", "IstioCNI/default"]
    );
    assert_eq!(
        format_subjects(&world.observe(Observation::Gone(Subject::cni("default")))),
        ["IstioRevision/my"]
    );
}

#[test]
fn istios_that_request_the_same_tag_affect_each_other() {
    let mut world = World::default();
    let strategy = json!({"type": "RevisionBased", "revisionTags": ["prod"]});
    let spec = json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": strategy});
    world.istio("a", spec.clone());
    world.istio("b", spec);
    world.settle_and_check_idle();
    world.queue.clear();
    world.edit::<IstioSpec>("a", |istio| istio.spec.update_strategy = None);
    assert!(world.queue.contains(&Subject::istio("b")), "{:?}", world.queue);
}

#[test]
fn a_source_that_fails_or_recovers_affects_all_subjects_once() {
    let mut world = settled_world(&Value::Null);
    let failing = SourceState::Failing("forbidden".into());
    let affected = world.observe(Observation::Source(Source::Pods, failing.clone()));
    assert_eq!(format_subjects(&affected), ["Istio/my", "IstioRevision/my"]);
    assert_eq!(
        format_subjects(&world.observe(Observation::Source(Source::Pods, failing))),
        [""; 0]
    );
}

#[test]
fn a_resolved_failure_affects_its_subject() {
    let mut world = settled_world(&Value::Null);
    assert_eq!(
        format_subjects(&world.observe(Observation::Succeeded(Subject::istio("my")))),
        [""; 0],
        "nothing had failed"
    );
}

#[test]
fn a_revision_without_owner_affects_the_tags_of_the_istio_that_may_adopt_it() {
    let mut world = World::default();
    world.istio("my", json!({"version": "v1.23.4", "namespace": "istio-system"}));
    world.edit::<IstioSpec>("my", |istio| istio.status.active_revision_name = "my".into());
    world.tag("prod", "Istio", "my");
    world.settle_and_check_idle();
    assert!(world.conditions(&Subject::tag("prod"))[1].starts_with("Reconciled=False"));
    world.revision("my", revision_spec("my"));
    world.settle_and_check_idle();
    assert_eq!(
        world.conditions(&Subject::tag("prod"))[1],
        "Reconciled=True/Reconciled"
    );
}

#[test]
fn a_deleted_revision_affects_the_tag_that_stays_on_it() {
    let mut world = World::default();
    world.revision("old", revision_spec("old"));
    world.tag("prod", "IstioRevision", "old");
    world.settle();
    world.ready = false;
    world.istio("my", json!({"version": "v1.29.1", "namespace": "istio-system"}));
    world.tag("prod", "Istio", "my");
    world.settle_and_check_idle();
    let points_to = |world: &World| {
        world
            .snapshot
            .tags()
            .get("prod")
            .unwrap()
            .status
            .istio_revision
            .clone()
    };
    assert_eq!(points_to(&world), "old", "the new one is not ready");
    world.delete::<RevisionSpec>("old");
    world.settle_and_check_idle();
    assert_eq!(points_to(&world), "my");
}
