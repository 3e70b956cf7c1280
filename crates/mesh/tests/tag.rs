//! Tests `IstioRevisionTag`: targets, use, name conflicts and moves. Includes upstream's test cases with
//! their names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{ConditionType, IstioSpec, ObjectKind, RevisionSpec, TagSpec, names};
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::{Action, Requeue, Subject};
use serde_json::{Value, json};
use support::{World, actions, condition, revision_spec};

fn with_tag(kind: &str, target: &str) -> World {
    let mut world = World::default();
    put_tag(&mut world, "prod", kind, target);
    world
}

fn put_tag(world: &mut World, name: &str, kind: &str, target: &str) {
    world.tag(name, kind, target);
    world.edit::<TagSpec>(name, |tag| {
        tag.metadata.finalizers = vec![names::FINALIZER.into()];
    });
}

fn reconciled(world: &World) -> String {
    condition(world, &Subject::tag("prod"), &ConditionType::Reconciled)
}

fn revision_based(version: &str) -> Value {
    json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": []}})
}

#[test]
fn a_target_must_exist() {
    let check = |name: &str, world: &World, expected: &str, requeue: Requeue| {
        assert_eq!(
            reconciled(world),
            format!("Reconciled=False/{expected}"),
            "{name}"
        );
        assert_eq!(world.plan(&Subject::tag("prod")).requeue, requeue, "{name}");
    };
    let unset = "ReconcileError: error reconciling resource: validation error: spec.targetRef not set";
    check("targetRef not set", &with_tag("", ""), unset, Requeue::OnEvent);
    check("only a kind", &with_tag("Istio", ""), unset, Requeue::OnEvent);
    check(
        "Istio reference not found",
        &with_tag("Istio", "x"),
        "RefNotFound: referenced Istio resource does not exist",
        Requeue::Immediately,
    );
    check(
        "IstioRevision reference not found",
        &with_tag("IstioRevision", "x"),
        "RefNotFound: referenced IstioRevision resource does not exist",
        Requeue::Immediately,
    );
    check(
        "unknown kind",
        &with_tag("Deployment", "x"),
        "ReconcileError: error reconciling resource: validation error: unknown targetRef.kind",
        Requeue::OnEvent,
    );
    let mut world = with_tag("Istio", "x");
    world.istio("x", revision_based("v1.29.1"));
    check(
        "Istio reference without active revision",
        &world,
        "ReconcileError: error reconciling resource: transient error: referenced Istio has no active revision",
        Requeue::Immediately,
    );
    world.edit::<IstioSpec>("x", |istio| {
        istio.status.active_revision_name = "x-v1-29-1".into();
    });
    check(
        "the active revision is not there",
        &world,
        "ReconcileError: error reconciling resource: istiorevisions.sailoperator.io \"x-v1-29-1\" not found",
        Requeue::Immediately,
    );
    let mut world = with_tag("IstioRevision", "far");
    let mut spec = revision_spec("far");
    spec["values"]["profile"] = "remote".into();
    world.revision("far", spec);
    check(
        "remote IstioRevision",
        &world,
        "ReconcileError: error reconciling resource: validation error: IstioRevisionTag cannot reference a remote IstioRevision",
        Requeue::OnEvent,
    );
}

#[test]
fn a_tag_installs_its_webhooks_in_the_namespace_of_its_revision() {
    let mut world = with_tag("IstioRevision", "my-rev");
    world.revision("my-rev", revision_spec("my-rev"));
    let plan = world.plan(&Subject::tag("prod"));
    assert_eq!(
        actions(&plan),
        [
            "install revisiontags v1.29.1 as istio-system/prod-revisiontags",
            "status"
        ],
        "IstioRevision reference"
    );
    let Action::Install(release) = &plan.steps[0].action else {
        panic!()
    };
    assert_eq!(
        Value::Object(release.values.clone()),
        json!({"revision": "my-rev", "global": {"istioNamespace": "istio-system"}, "revisionTags": ["prod"]})
    );
    world.settle_and_check_idle();
    let status = &world.snapshot.tags().get("prod").unwrap().status;
    assert_eq!(
        (status.istio_revision.as_str(), status.istiod_namespace.as_str()),
        ("my-rev", "istio-system")
    );
    assert_eq!(
        world.conditions(&Subject::tag("prod")),
        [
            "state=NotReferencedByAnything",
            "Reconciled=True/Reconciled",
            "InUse=False/NotReferencedByAnything: Not referenced by any pod or namespace"
        ]
    );
    world.namespace("app", "istio.io/rev=prod");
    world.settle_and_check_idle();
    assert_eq!(world.conditions(&Subject::tag("prod"))[0], "state=Healthy");
}

#[test]
fn the_default_tag_makes_its_revision_the_default() {
    let mut world = World::default();
    world.revision("my-rev", revision_spec("my-rev"));
    put_tag(&mut world, "default", "IstioRevision", "my-rev");
    let plan = world.plan(&Subject::tag("default"));
    assert_eq!(
        actions(&plan)[..2],
        [
            "install revisiontags v1.29.1 as istio-system/default-revisiontags",
            "install base v1.29.1 as sail-operator/default-base",
        ]
    );
    let Action::Install(base) = &plan.steps[1].action else {
        panic!()
    };
    assert_eq!(base.values["defaultRevision"], "my-rev");
    assert_eq!(base.values["revisionTags"], json!(["default"]));
}

/// Checks the tag in use, given the labels of a namespace and the labels and annotations of a pod.
fn check_used(namespace: &str, pod: &str, annotations: &str, in_use: &str) {
    for name in ["default", "my-rev"] {
        let mut world = World::default();
        world.revision("some-rev", revision_spec("some-rev"));
        put_tag(&mut world, name, "IstioRevision", "some-rev");
        world.namespace("bookinfo", namespace);
        world.pod("bookinfo", "some-pod", pod, annotations);
        let expected = if name == in_use {
            "InUse=True/ReferencedByWorkloads: Referenced by at least one pod or namespace"
        } else {
            "InUse=False/NotReferencedByAnything: Not referenced by any pod or namespace"
        };
        let found = condition(&world, &Subject::tag(name), &ConditionType::InUse);
        assert_eq!(found, expected, "{name}: {namespace:?} {pod:?} {annotations:?}");
    }
}

#[test]
fn a_tag_is_in_use_by_labels_only() {
    check_used("", "", "", "");
    check_used("", "", "istio.io/rev=default", "");
    check_used("istio-injection=enabled", "", "", "default");
    check_used("istio.io/rev=my-rev", "", "", "my-rev");
    check_used("istio.io/rev=my-rev istio-injection=enabled", "", "", "default");
    check_used("", "istio.io/rev=my-rev", "", "my-rev");
    check_used("", "sidecar.istio.io/inject=true", "", "default");
    check_used(
        "istio.io/rev=my-rev",
        "sidecar.istio.io/inject=true",
        "",
        "my-rev",
    );
    // Annotation and label differ.
    check_used("", "istio.io/rev=some-rev", "istio.io/rev=default", "");
}

#[test]
fn a_default_tag_for_all_namespaces_is_in_use() {
    for (name, used) in [("default", "InUse=True"), ("other", "InUse=False")] {
        let mut world = World::default();
        let mut spec = revision_spec("my-rev");
        spec["values"]["sidecarInjectorWebhook"] = json!({"enableNamespacesByDefault": true});
        world.revision("my-rev", spec);
        put_tag(&mut world, name, "IstioRevision", "my-rev");
        assert!(
            condition(&world, &Subject::tag(name), &ConditionType::InUse).starts_with(used),
            "{name}"
        );
    }
}

#[test]
fn use_is_unknown_when_a_source_cannot_be_read() {
    let use_of = |world: &World| condition(world, &Subject::tag("prod"), &ConditionType::InUse);
    let head = "InUse=Unknown/UsageCheckFailed: failed to determine if revision tag is in use: ";
    assert_eq!(
        use_of(&with_tag("Istio", "x")),
        format!("{head}istios.sailoperator.io \"x\" not found"),
        "a target that does not exist"
    );
    let mut world = with_tag("IstioRevision", "my-rev");
    world.revision("my-rev", revision_spec("my-rev"));
    world.fail_source(Source::Namespaces, "simulated error");
    assert_eq!(
        use_of(&world),
        format!("{head}failed to list namespaces: simulated error")
    );
    let mut world = with_tag("IstioRevision", "my-rev");
    world.revision("my-rev", revision_spec("my-rev"));
    world.fail_source(Source::Pods, "simulated error");
    assert_eq!(
        use_of(&world),
        format!("{head}failed to list pods: simulated error")
    );
    world.fail_source(Source::Objects(ObjectKind::IstioRevision), "simulated error");
    assert!(
        reconciled(&world).ends_with("error reconciling resource: simulated error"),
        "{}",
        reconciled(&world)
    );
}

#[test]
fn an_older_revision_of_the_same_name_has_precedence() {
    let mut world = World::default();
    world.revision("other", revision_spec("other"));
    world.revision("prod", revision_spec("prod"));
    world.advance(1);
    put_tag(&mut world, "prod", "IstioRevision", "other");
    world.settle();
    assert_eq!(
        world.conditions(&Subject::tag("prod"))[1],
        "Reconciled=False/NameAlreadyExists: an IstioRevision exists with this name"
    );
    assert_eq!(
        world.conditions(&Subject::revision("prod"))[1],
        "Reconciled=True/Reconciled",
        "the revision keeps reconciling"
    );
    world.delete::<RevisionSpec>("prod");
    world.settle_and_check_idle();
    assert_eq!(
        world.conditions(&Subject::tag("prod"))[1],
        "Reconciled=True/Reconciled",
        "without a requeue"
    );
}

#[test]
fn a_floating_tag_moves_when_the_new_revision_is_ready_and_not_before() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    put_tag(&mut world, "prod", "Istio", "default");
    world.namespace("app", "istio.io/rev=prod");
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
    assert_eq!(points_to(&world), "default-v1-28-2");

    world.ready = false;
    world.istio("default", revision_based("v1.29.1"));
    world.settle_and_check_idle();
    assert_eq!(points_to(&world), "default-v1-28-2", "the new one is not ready");
    assert_eq!(
        world.conditions(&Subject::tag("prod")),
        [
            "state=Healthy",
            "Reconciled=True/Reconciled: stays on IstioRevision \"default-v1-28-2\" until \"default-v1-29-1\" is ready",
            "InUse=True/ReferencedByWorkloads: Referenced by at least one pod or namespace"
        ]
    );
    world.advance(86_400);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions().len(), 2, "the tag keeps the old one");

    world.deployment("istio-system", "istiod-default-v1-29-1", 1, 1);
    let executed = world.settle_and_check_idle();
    assert_eq!(points_to(&world), "default-v1-29-1");
    let reported: Vec<_> = executed
        .iter()
        .filter(|line| line.starts_with("IstioRevisionTag/prod"))
        .collect();
    assert_eq!(
        reported,
        [
            "IstioRevisionTag/prod: install revisiontags v1.29.1 as istio-system/prod-revisiontags (ReleaseOutdated)",
            "IstioRevisionTag/prod: status (StatusChanged)",
            "IstioRevisionTag/prod: event TagMoved: moved from IstioRevision \"default-v1-28-2\" to \"default-v1-29-1\" (TagMoved)",
        ]
    );
    world.advance(30);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(
        world.revisions(),
        ["default-v1-29-1"],
        "the old revision is no longer in use"
    );
}

#[test]
fn a_floating_tag_leaves_a_deleted_revision() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    put_tag(&mut world, "prod", "Istio", "default");
    world.settle();
    world.ready = false;
    world.istio("default", revision_based("v1.29.1"));
    world.settle();
    world.delete::<RevisionSpec>("default-v1-28-2");
    world.settle_and_check_idle();
    assert_eq!(
        world.snapshot.tags().get("prod").unwrap().status.istio_revision,
        "default-v1-29-1"
    );
}

#[test]
fn a_pinned_tag_does_not_move_and_keeps_its_revision() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    world.settle();
    put_tag(&mut world, "prod", "IstioRevision", "default-v1-28-2");
    world.settle();
    world.istio("default", revision_based("v1.29.1"));
    world.settle();
    world.advance(3600);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-28-2", "default-v1-29-1"]);
    assert_eq!(
        world.snapshot.tags().get("prod").unwrap().status.istio_revision,
        "default-v1-28-2"
    );
}

#[test]
fn a_tag_with_a_new_fixed_target_moves_at_once_also_to_another_namespace() {
    let mut world = World::default();
    world.namespace("mesh", "");
    world.revision("a", revision_spec("a"));
    world.ready = false;
    world.revision("b", json!({"version": "v1.29.1", "namespace": "mesh", "values": {"revision": "b", "global": {"istioNamespace": "mesh"}}}));
    put_tag(&mut world, "prod", "IstioRevision", "a");
    world.settle();
    world.tag("prod", "IstioRevision", "b");
    assert_eq!(
        actions(&world.plan(&Subject::tag("prod")))[..3],
        [
            "uninstall istio-system/prod-revisiontags",
            "install revisiontags v1.29.1 as mesh/prod-revisiontags",
            "status"
        ]
    );
    world.settle_and_check_idle();
    world.delete::<TagSpec>("prod");
    let executed = world.settle_and_check_idle();
    assert!(
        executed.contains(&"IstioRevisionTag/prod: uninstall mesh/prod-revisiontags (ObjectDeleted)".into()),
        "still deletable: {executed:#?}"
    );
    assert!(world.tags().is_empty());
}

/// COMPATIBILITY.md documents the difference from upstream, which moves the tag immediately.
#[test]
fn a_tag_with_another_istio_as_its_target_moves_when_that_is_ready() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    put_tag(&mut world, "prod", "Istio", "default");
    world.settle_and_check_idle();
    world.ready = false;
    world.istio("other", revision_based("v1.29.1"));
    world.settle_and_check_idle();
    world.tag("prod", "Istio", "other");
    world.settle_and_check_idle();
    let status = |world: &World| {
        world
            .snapshot
            .tags()
            .get("prod")
            .unwrap()
            .status
            .istio_revision
            .clone()
    };
    assert_eq!(status(&world), "default-v1-28-2");
    assert_eq!(
        world.conditions(&Subject::tag("prod"))[1],
        "Reconciled=True/Reconciled: stays on IstioRevision \"default-v1-28-2\" until \"other-v1-29-1\" is ready"
    );
    world.deployment("istio-system", "istiod-other-v1-29-1", 1, 1);
    world.settle_and_check_idle();
    assert_eq!(status(&world), "other-v1-29-1");
}

#[test]
fn after_a_restart_the_old_namespace_is_read_from_the_status() {
    let mut world = World::default();
    world.namespace("mesh", "");
    world.revision("b", json!({"version": "v1.29.1", "namespace": "mesh", "values": {"revision": "b", "global": {"istioNamespace": "mesh"}}}));
    put_tag(&mut world, "prod", "IstioRevision", "b");
    world.edit::<TagSpec>("prod", |tag| tag.status.istiod_namespace = "istio-system".into());
    assert_eq!(
        actions(&world.plan(&Subject::tag("prod")))[0],
        "uninstall istio-system/prod-revisiontags"
    );
}

#[test]
fn a_tag_with_an_error_keeps_its_releases() {
    let mut world = with_tag("IstioRevision", "my-rev");
    world.revision("my-rev", revision_spec("my-rev"));
    world.settle();
    world.tag("prod", "IstioRevision", "nowhere");
    let plan = world.plan(&Subject::tag("prod"));
    assert!(
        !actions(&plan).iter().any(|line| line.starts_with("uninstall")),
        "{plan:?}"
    );
    world.settle_and_check_idle();
    let status = &world.snapshot.tags().get("prod").unwrap().status;
    assert_eq!(
        (status.istio_revision.as_str(), status.istiod_namespace.as_str()),
        ("my-rev", "istio-system")
    );
    assert_eq!(status.state.name(), "RefNotFound");
}
