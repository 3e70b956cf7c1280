//! Who is woken by an event: everybody whose plan may differ by it, and nobody for an event that changes nothing.

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
use support::{World, pairs, plane};

fn shown(woken: &AffectedSubjects) -> Vec<String> {
    woken.iter().map(ToString::to_string).collect()
}

fn settled(strategy: &Value) -> World {
    let mut world = World::default();
    world.istio(
        "my",
        json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": strategy}),
    );
    world.settle_for_good();
    world
}

#[test]
fn a_label_that_changes_wakes_the_old_name_and_the_new() {
    let mut world = settled(&Value::Null);
    world.revision("other", plane("other"));
    world.settle();
    assert_eq!(
        shown(&world.namespace("app", "istio.io/rev=my")),
        ["Istio/my", "IstioRevision/my"]
    );
    assert_eq!(
        shown(&world.namespace("app", "istio.io/rev=other")),
        ["Istio/my", "IstioRevision/my", "IstioRevision/other"]
    );
    assert_eq!(
        shown(&world.namespace("app", "")),
        ["IstioRevision/other"],
        "a removed label wakes what it used to name"
    );
}

#[test]
fn a_pod_that_vanishes_wakes_the_revision_that_injected_it() {
    let mut world = settled(&Value::Null);
    world.pod("app", "p", "", "istio.io/rev=my");
    world.settle();
    assert_eq!(
        shown(&world.pod_gone("app", "p")),
        ["Istio/my", "IstioRevision/my"]
    );
    assert_eq!(shown(&world.pod_gone("app", "p")), [""; 0], "once");
}

#[test]
fn events_that_change_nothing_wake_nobody() {
    let mut world = settled(&Value::Null);
    world.namespace("app", "istio.io/rev=my");
    world.pod("app", "p", "", "istio.io/rev=my");
    world.settle_for_good();
    assert_eq!(
        shown(&world.pod("app", "p", "app=x", "istio.io/rev=my other=y")),
        [""; 0]
    );
    assert_eq!(
        shown(&world.pod("app", "q", "", "istio.io/rev=my")),
        [""; 0],
        "one more of the same"
    );
    assert_eq!(shown(&world.namespace("app", "istio.io/rev=my team=x")), [""; 0]);
    assert_eq!(shown(&world.namespace("elsewhere", "team=x")), [""; 0]);
    assert_eq!(shown(&world.pod("elsewhere", "p", "app=x", "")), [""; 0]);
    assert_eq!(
        shown(&world.namespace("app2", "istio.io/rev=nobody")),
        [""; 0],
        "a name that is nothing"
    );
    let fact = *world.snapshot.deployment("istio-system", "istiod-my").unwrap();
    let again = Observation::Deployment("istio-system".into(), "istiod-my".into(), Some(fact));
    assert_eq!(shown(&world.see(again)), [""; 0]);
    let other = Observation::Deployment("app".into(), "web".into(), Some(fact));
    assert_eq!(shown(&world.see(other)), [""; 0]);
}

#[test]
fn a_namespace_wakes_those_who_install_into_it_only_when_it_comes_or_goes() {
    let mut world = settled(&Value::Null);
    let seen = |labels: &str, terminating| Observation::Namespace {
        name: "istio-system".into(),
        labels: pairs(labels),
        terminating,
        uid: String::new(),
        resource_version: String::new(),
        annotations: std::collections::BTreeMap::new(),
    };
    assert_eq!(shown(&world.see(seen("a=b", false))), [""; 0]);
    assert_eq!(shown(&world.see(seen("a=b", true))), ["IstioRevision/my"]);
    let gone = Observation::ReferrerGone(ReferrerKey::Namespace("istio-system".into()));
    assert_eq!(shown(&world.see(gone)), ["IstioRevision/my"]);
    assert_eq!(
        shown(&world.namespace("istio-system", "")),
        ["IstioRevision/my"],
        "namespace created later"
    );
}

#[test]
fn an_istio_wakes_what_points_to_it_by_spec() {
    let mut world = settled(&json!({"type": "RevisionBased", "revisionTags": []}));
    world.tag("prod", "Istio", "my");
    world.ztunnel(
        json!({"version": "v1.29.1", "namespace": "ztunnel", "targetRef": {"kind": "Istio", "name": "my"}}),
    );
    world.settle_for_good();
    let istio = world.snapshot.istios().get("my").cloned().unwrap();
    let woken = world.see(Observation::Istio(istio));
    assert_eq!(
        shown(&woken),
        ["Istio/my", "IstioRevisionTag/prod", "ZTunnel/default"]
    );
}

#[test]
fn a_revision_wakes_its_owner_and_the_tags_of_its_owner() {
    let mut world = settled(&json!({"type": "RevisionBased", "revisionTags": []}));
    world.tag("prod", "Istio", "my");
    world.tag("pinned", "IstioRevision", "my-v1-29-1");
    world.settle_for_good();
    let revision = world.snapshot.revisions().get("my-v1-29-1").cloned().unwrap();
    let woken = world.see(Observation::Revision(revision));
    assert_eq!(
        shown(&woken),
        [
            "Istio/my",
            "IstioRevision/my-v1-29-1",
            "IstioRevisionTag/pinned",
            "IstioRevisionTag/prod"
        ]
    );
}

#[test]
fn a_tag_that_moves_wakes_the_revision_it_leaves() {
    let mut world = World::default();
    world.revision("a", plane("a"));
    world.revision("b", plane("b"));
    world.tag("prod", "IstioRevision", "a");
    world.settle();
    world.queue.clear();
    world.edit::<TagSpec>("prod", |tag| tag.status.istio_revision = "b".into());
    assert_eq!(
        shown(&world.queue),
        ["IstioRevision/a", "IstioRevision/b", "IstioRevisionTag/prod"]
    );
}

#[test]
fn objects_of_one_name_wake_each_other() {
    let mut world = World::default();
    world.revision("x", plane("x"));
    world.settle();
    world.queue.clear();
    world.tag("x", "IstioRevision", "elsewhere");
    assert_eq!(shown(&world.queue), ["IstioRevision/x", "IstioRevisionTag/x"]);
    world.settle();
    world.queue.clear();
    world.edit::<RevisionSpec>("x", |revision| revision.metadata.finalizers.clear());
    world.delete::<RevisionSpec>("x");
    assert!(world.queue.contains(&Subject::tag("x")));
}

#[test]
fn revisions_hear_of_plug_in_and_node_proxy_only_when_their_state_changes() {
    let mut world = settled(&Value::Null);
    let mut cni = world.cni(json!({"version": "v1.29.1", "namespace": "istio-cni"}));
    world.settle();
    cni = world.snapshot.cnis().get(cni.name()).cloned().unwrap();
    assert_eq!(
        shown(&world.see(Observation::Cni(cni.clone()))),
        ["IstioCNI/default"]
    );
    cni.status.state = Reason::DaemonSetNotReady;
    assert_eq!(
        shown(&world.see(Observation::Cni(cni))),
        ["IstioRevision/my", "IstioCNI/default"]
    );
    assert_eq!(
        shown(&world.see(Observation::Gone(Subject::cni("default")))),
        ["IstioRevision/my"]
    );
}

#[test]
fn istios_that_list_one_tag_wake_each_other() {
    let mut world = World::default();
    let strategy = json!({"type": "RevisionBased", "revisionTags": ["prod"]});
    let spec = json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": strategy});
    world.istio("a", spec.clone());
    world.istio("b", spec);
    world.settle_for_good();
    world.queue.clear();
    world.edit::<IstioSpec>("a", |istio| istio.spec.update_strategy = None);
    assert!(world.queue.contains(&Subject::istio("b")), "{:?}", world.queue);
}

#[test]
fn a_source_that_breaks_or_heals_wakes_everybody_once() {
    let mut world = settled(&Value::Null);
    let failing = SourceState::Failing("forbidden".into());
    let woken = world.see(Observation::Source(Source::Pods, failing.clone()));
    assert_eq!(shown(&woken), ["Istio/my", "IstioRevision/my"]);
    assert_eq!(
        shown(&world.see(Observation::Source(Source::Pods, failing))),
        [""; 0]
    );
}

#[test]
fn a_failure_that_is_over_wakes_its_subject() {
    let mut world = settled(&Value::Null);
    assert_eq!(
        shown(&world.see(Observation::Succeeded(Subject::istio("my")))),
        [""; 0],
        "nothing had failed"
    );
}

#[test]
fn a_revision_nobody_owns_wakes_the_tags_of_the_istio_that_would_take_it() {
    let mut world = World::default();
    world.istio("my", json!({"version": "v1.23.4", "namespace": "istio-system"}));
    world.edit::<IstioSpec>("my", |istio| istio.status.active_revision_name = "my".into());
    world.tag("prod", "Istio", "my");
    world.settle_for_good();
    assert!(world.told(&Subject::tag("prod"))[1].starts_with("Reconciled=False"));
    world.revision("my", plane("my"));
    world.settle_for_good();
    assert_eq!(world.told(&Subject::tag("prod"))[1], "Reconciled=True/Reconciled");
}

#[test]
fn a_revision_that_goes_wakes_the_tag_that_stays_on_it() {
    let mut world = World::default();
    world.revision("old", plane("old"));
    world.tag("prod", "IstioRevision", "old");
    world.settle();
    world.ready = false;
    world.istio("my", json!({"version": "v1.29.1", "namespace": "istio-system"}));
    world.tag("prod", "Istio", "my");
    world.settle_for_good();
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
    world.settle_for_good();
    assert_eq!(points_to(&world), "my");
}
