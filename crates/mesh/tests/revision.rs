//! Tests `IstioRevision`: validation, readiness, dependencies, use and name conflicts. Includes upstream's
//! test cases with their names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{ConditionType, ObjectKind, RevisionSpec, TagSpec, names};
use mainstay_mesh::plan::NewStatus;
use mainstay_mesh::snapshot::{ReleaseFact, Source, Webhook};
use mainstay_mesh::{Action, Observation, Platform, Requeue, Settings, Subject};
use serde_json::{Value, json};
use support::{World, actions, condition, pairs, revision_spec};

/// Returns a world with a revision that has our finalizer.
fn with_revision(name: &str, spec: Value) -> World {
    let mut world = World::default();
    put_revision(&mut world, name, spec);
    world
}

fn put_revision(world: &mut World, name: &str, spec: Value) {
    world.revision(name, spec);
    world.edit::<RevisionSpec>(name, |revision| {
        revision.metadata.finalizers = vec![names::FINALIZER.into()];
    });
}

fn check_valid(case: &str, name: &str, spec: Value, expected: Result<(), &str>) {
    let world = with_revision(name, spec);
    let subject = Subject::revision(name);
    let expected = match expected {
        Ok(()) => "Reconciled=True/Reconciled".to_owned(),
        Err(error) => format!("Reconciled=False/ReconcileError: error reconciling resource: {error}"),
    };
    assert_eq!(
        condition(&world, &subject, &ConditionType::Reconciled),
        expected,
        "{case}"
    );
    let installs = actions(&world.plan(&subject))
        .iter()
        .any(|line| line.starts_with("install"));
    assert_eq!(installs, expected.contains("True"), "{case}");
}

#[test]
fn name_and_namespace_must_match_the_values() {
    let global = json!({"istioNamespace": "istio-system"});
    let spec = |values: Value| json!({"version": "v1.29.1", "namespace": "istio-system", "values": values});
    check_valid("success", "default", revision_spec("default"), Ok(()));
    check_valid("success, non-default", "my-rev", revision_spec("my-rev"), Ok(()));
    check_valid(
        "no version",
        "default",
        json!({"namespace": "istio-system", "values": {"global": global}}),
        Err("validation error: version not set"),
    );
    check_valid(
        "no namespace",
        "default",
        json!({"version": "v1.29.1", "values": {"global": {"istioNamespace": ""}}}),
        Err("validation error: namespace not set"),
    );
    check_valid(
        "namespace not found",
        "default",
        json!({"version": "v1.29.1", "namespace": "nowhere", "values": {"global": {"istioNamespace": "nowhere"}}}),
        Err("validation error: namespace \"nowhere\" doesn't exist"),
    );
    check_valid(
        "no values",
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system"}),
        Err("validation error: values not set"),
    );
    check_valid(
        "invalid istioNamespace",
        "default",
        spec(json!({"global": {"istioNamespace": "other"}})),
        Err("validation error: values.global.istioNamespace does not match namespace"),
    );
    check_valid(
        "no global",
        "default",
        spec(json!({})),
        Err("validation error: values.global.istioNamespace does not match namespace"),
    );
    check_valid(
        "invalid revision default",
        "default",
        spec(json!({"global": global, "revision": "my-revision"})),
        Err("validation error: values.revision must be \"\" when revision name is default"),
    );
    check_valid(
        "invalid revision non-default",
        "my-revision",
        spec(json!({"global": global, "revision": "other-revision"})),
        Err("validation error: values.revision does not match revision name"),
    );
    check_valid(
        "revision missing, non-default",
        "my-revision",
        spec(json!({"global": global})),
        Err("validation error: values.revision does not match revision name"),
    );
    let mut old = revision_spec("default");
    old["version"] = "v1.25.5".into();
    check_valid(
        "charts not here",
        "default",
        old,
        Err("failed to install/update Helm chart \"istiod\": the charts of Istio v1.25.5 are not available"),
    );
}

#[test]
fn a_deleted_or_created_namespace_affects_its_revisions() {
    let mut world = with_revision("default", revision_spec("default"));
    world.settle();
    let affected = world.observe(Observation::Namespace {
        name: "istio-system".into(),
        labels: pairs(""),
        terminating: true,
        uid: String::new(),
        resource_version: String::new(),
        annotations: std::collections::BTreeMap::new(),
    });
    assert!(affected.contains(&Subject::revision("default")));
    assert_eq!(
        condition(&world, &Subject::revision("default"), &ConditionType::Reconciled),
        "Reconciled=False/ReconcileError: error reconciling resource: validation error: namespace \"istio-system\" is being deleted"
    );
    assert_eq!(
        world.plan(&Subject::revision("default")).requeue,
        Requeue::OnEvent
    );
}

fn check_ready(name: &str, deployment: Option<(i32, i32)>, expected: &str) {
    for (revision, istiod) in [("default", "istiod"), ("my-rev", "istiod-my-rev")] {
        let mut world = with_revision(revision, revision_spec(revision));
        if let Some((replicas, ready)) = deployment {
            world.deployment("istio-system", istiod, replicas, ready);
        }
        assert_eq!(
            condition(&world, &Subject::revision(revision), &ConditionType::Ready),
            expected,
            "{name}: {revision}"
        );
    }
}

#[test]
fn readiness_is_that_of_istiod() {
    check_ready("Istiod ready", Some((2, 2)), "Ready=True/Ready");
    check_ready(
        "Istiod not ready",
        Some((2, 1)),
        "Ready=False/IstiodNotReady: not all istiod pods are ready",
    );
    check_ready(
        "Istiod scaled to zero",
        Some((0, 0)),
        "Ready=False/IstiodNotReady: istiod Deployment is scaled to zero replicas",
    );
    check_ready(
        "Istiod not found",
        None,
        "Ready=False/IstiodNotReady: istiod Deployment not found",
    );
    let mut world = with_revision("default", revision_spec("default"));
    world.fail_source(Source::Deployments, "simulated error");
    assert_eq!(
        condition(&world, &Subject::revision("default"), &ConditionType::Ready),
        "Ready=Unknown/ReadinessCheckFailed: failed to get readiness: simulated error",
        "client error on get"
    );
}

#[test]
fn readiness_of_a_remote_control_plane_is_read_from_its_webhook() {
    let mut spec = revision_spec("default");
    spec["values"]["profile"] = "remote".into();
    let check = |name: &str, annotations: Option<&str>, expected: &str| {
        let mut world = with_revision("default", spec.clone());
        if let Some(annotations) = annotations {
            let mut webhook = Webhook::default();
            webhook.metadata.name = "istio-sidecar-injector".into();
            webhook.metadata.annotations = pairs(annotations);
            world.observe(Observation::Webhook(webhook));
        }
        assert_eq!(
            condition(&world, &Subject::revision("default"), &ConditionType::Ready),
            expected,
            "{name}"
        );
    };
    let missing = "Ready=False/RemoteIstiodNotReady: invalid or missing annotation sailoperator.io/readinessProbe.status on \
                   MutatingWebhookConfiguration istio-sidecar-injector";
    check(
        "Istiod-remote ready",
        Some("sailoperator.io/readinessProbe.status=true"),
        "Ready=True/Ready",
    );
    check(
        "Istiod-remote not ready",
        Some("sailoperator.io/readinessProbe.status=false"),
        "Ready=False/RemoteIstiodNotReady: readiness probe on remote istiod failed",
    );
    check(
        "Istiod-remote no readiness probe status annotation",
        Some(""),
        missing,
    );
    check(
        "an unknown value",
        Some("sailoperator.io/readinessProbe.status=perhaps"),
        missing,
    );
    check(
        "Istiod-remote webhook config not found",
        None,
        "Ready=False/RemoteIstiodNotReady: MutatingWebhookConfiguration istio-sidecar-injector not found",
    );
    let mut world = with_revision("default", spec.clone());
    world.fail_source(Source::Webhooks, "simulated error");
    assert_eq!(
        condition(&world, &Subject::revision("default"), &ConditionType::Ready),
        "Ready=Unknown/ReadinessCheckFailed: failed to get readiness: simulated error",
        "Istiod-remote client error on get"
    );
}

#[test]
fn dependencies_must_be_healthy() {
    let mut spec = revision_spec("default");
    spec["values"]["pilot"] = json!({"cni": {"enabled": true}, "env": {"PILOT_ENABLE_AMBIENT": "true"}});
    let mut world = with_revision("default", spec);
    let subject = Subject::revision("default");
    let reported = |world: &World| condition(world, &subject, &ConditionType::DependenciesHealthy);
    assert_eq!(
        reported(&world),
        "DependenciesHealthy=False/IstioCNINotFound: IstioCNI resource does not exist"
    );

    world.cni(json!({"version": "v1.29.1", "namespace": "istio-cni"}));
    assert_eq!(
        reported(&world),
        "DependenciesHealthy=False/IstioCNINotHealthy: IstioCNI resource status indicates that the component is not healthy"
    );
    world.settle();
    assert_eq!(
        world.conditions(&subject)[3],
        "DependenciesHealthy=False/ZTunnelNotFound: ZTunnel resource does not exist",
        "IstioCNI first, then ZTunnel"
    );
    world.ready = false;
    world.ztunnel(json!({"version": "v1.29.1", "namespace": "ztunnel"}));
    world.settle();
    assert_eq!(
        world.conditions(&subject)[..],
        [
            "state=ZTunnelNotHealthy",
            "Reconciled=True/Reconciled",
            "Ready=True/Ready",
            "DependenciesHealthy=False/ZTunnelNotHealthy: ZTunnel resource status indicates that the component is not healthy",
            "InUse=False/NotReferencedByAnything: Not referenced by any pod or namespace",
        ]
    );
    world.daemonset("ztunnel", "ztunnel", 1, 1);
    world.settle_and_check_idle();
    assert_eq!(world.conditions(&subject)[0], "state=Healthy");
    world.fail_source(Source::Objects(ObjectKind::IstioCni), "simulated error");
    assert_eq!(
        reported(&world),
        "DependenciesHealthy=Unknown/DependencyCheckFailed: failed to get IstioCNI status: simulated error"
    );
}

#[test]
fn the_platform_may_require_the_cni() {
    let mut world = World::with_settings(Settings {
        platform: Platform::OpenShift,
        operator_namespace: "sail-operator".into(),
        ..Settings::default()
    });
    put_revision(&mut world, "default", revision_spec("default"));
    assert_eq!(
        condition(
            &world,
            &Subject::revision("default"),
            &ConditionType::DependenciesHealthy
        ),
        "DependenciesHealthy=False/IstioCNINotFound: IstioCNI resource does not exist"
    );
}

/// Checks the revision in use, given the labels of a namespace and the labels and annotations of a pod.
fn check_used(namespace: &str, pod: &str, annotations: &str, in_use: &str) {
    for name in ["default", "my-rev"] {
        let mut world = with_revision(name, revision_spec(name));
        world.namespace("bookinfo", namespace);
        world.pod("bookinfo", "some-pod", pod, annotations);
        let expected = if name == in_use {
            "InUse=True/ReferencedByWorkloads: Referenced by at least one pod or namespace"
        } else {
            "InUse=False/NotReferencedByAnything: Not referenced by any pod or namespace"
        };
        let found = condition(&world, &Subject::revision(name), &ConditionType::InUse);
        assert_eq!(found, expected, "{name}: {namespace:?} {pod:?} {annotations:?}");
    }
}

#[test]
fn the_in_use_condition_follows_the_index() {
    check_used("", "", "", "");
    check_used("", "", "istio.io/rev=default", "default");
    check_used("istio-injection=enabled", "istio.io/rev=my-rev", "", "default");
    check_used("istio.io/rev=my-rev", "istio.io/rev=default", "", "my-rev");
    check_used(
        "",
        "sidecar.istio.io/inject=true istio.io/rev=my-rev",
        "",
        "my-rev",
    );
    check_used("", "sidecar.istio.io/inject=false istio.io/rev=my-rev", "", "");
}

#[test]
fn a_default_revision_for_all_namespaces_is_in_use() {
    for (name, used) in [
        ("default", "InUse=True/ReferencedByWorkloads"),
        ("my-rev", "InUse=False/NotReferencedByAnything"),
    ] {
        let mut spec = revision_spec(name);
        spec["values"]["sidecarInjectorWebhook"] = json!({"enableNamespacesByDefault": true});
        let world = with_revision(name, spec);
        assert!(
            condition(&world, &Subject::revision(name), &ConditionType::InUse).starts_with(used),
            "{name}"
        );
    }
}

#[test]
fn use_is_unknown_if_a_source_cannot_be_listed() {
    let check = |source: Source, expected: &str| {
        let mut world = with_revision("default", revision_spec("default"));
        world.fail_source(source, "simulated error");
        let found = condition(&world, &Subject::revision("default"), &ConditionType::InUse);
        assert_eq!(
            found,
            format!("InUse=Unknown/UsageCheckFailed: failed to determine if revision is in use: {expected}")
        );
    };
    check(
        Source::Objects(ObjectKind::IstioRevisionTag),
        "failed to list IstioRevisionTags: simulated error",
    );
    check(Source::Namespaces, "failed to list namespaces: simulated error");
    check(Source::Pods, "failed to list pods: simulated error");
}

#[test]
fn a_tag_keeps_its_revision_in_use() {
    let mut world = with_revision("default", revision_spec("default"));
    world.tag("prod", "IstioRevision", "default");
    world.settle();
    assert!(world.conditions(&Subject::revision("default"))[4].starts_with("InUse=True"));
    world.delete::<TagSpec>("prod");
    world.settle_and_check_idle();
    assert!(world.conditions(&Subject::revision("default"))[4].starts_with("InUse=False"));
}

#[test]
fn the_older_of_two_objects_with_the_same_name_is_reconciled() {
    let mut world = World::default();
    put_revision(&mut world, "other", revision_spec("other"));
    world.tag("default", "IstioRevision", "other");
    world.advance(1);
    put_revision(&mut world, "default", revision_spec("default"));
    let (revision, tag) = (Subject::revision("default"), Subject::tag("default"));
    world.settle();
    assert_eq!(
        world.conditions(&revision)[1],
        "Reconciled=False/NameAlreadyExists: an IstioRevisionTag exists with this name"
    );
    assert_eq!(
        world.conditions(&tag)[1],
        "Reconciled=True/Reconciled",
        "the tag keeps reconciling"
    );
    assert_eq!(world.plan(&revision).requeue, Requeue::Backoff);

    world.delete::<TagSpec>("default");
    world.settle_and_check_idle();
    assert_eq!(
        world.conditions(&revision)[1],
        "Reconciled=True/Reconciled",
        "without a requeue"
    );
}

#[test]
fn only_the_default_revision_installs_the_base_chart() {
    let check = |name: &str, expected: &[&str]| {
        let plan = with_revision(name, revision_spec(name)).plan(&Subject::revision(name));
        let installs: Vec<String> = actions(&plan)
            .into_iter()
            .filter(|line| line.starts_with("install"))
            .collect();
        assert_eq!(installs, expected);
    };
    check(
        "default",
        &[
            "install istiod v1.29.1 as istio-system/default-istiod",
            "install base v1.29.1 as sail-operator/default-base",
        ],
    );
    check(
        "my-rev",
        &["install istiod v1.29.1 as istio-system/my-rev-istiod"],
    );
}

#[test]
fn a_release_contains_the_values_and_owner_of_its_revision() {
    let world = with_revision("my-rev", revision_spec("my-rev"));
    let revision = world.snapshot.revisions().get("my-rev").unwrap();
    let plan = world.plan(&Subject::revision("my-rev"));
    let release = plan.actions().find_map(|action| match action {
        Action::Install(release) => Some(release),
        _ => None,
    });
    let release = release.unwrap();
    assert_eq!(Some(&release.values), revision.spec.values.as_ref());
    assert_eq!(release.owner, revision.owner_reference());
    assert_eq!(release.key.owner, revision.metadata.uid);
}

#[test]
fn only_drift_is_repaired() {
    let mut world = with_revision("my-rev", revision_spec("my-rev"));
    world.settle_and_check_idle();
    let uid = world
        .snapshot
        .revisions()
        .get("my-rev")
        .unwrap()
        .metadata
        .uid
        .clone();
    let key = world.snapshot.releases_of(&uid).next().unwrap().0.clone();
    let affected = world.observe(Observation::Release(key, ReleaseFact::Drifted));
    assert_eq!(
        affected.into_iter().collect::<Vec<_>>(),
        [Subject::revision("my-rev")]
    );
    assert_eq!(
        world.settle_and_check_idle(),
        ["IstioRevision/my-rev: install istiod v1.29.1 as istio-system/my-rev-istiod (ReleaseDrifted)"]
    );
}

#[test]
fn the_status_contains_the_observed_generation() {
    let mut world = with_revision("my-rev", revision_spec("my-rev"));
    world.settle();
    let mut spec = revision_spec("my-rev");
    spec["version"] = "v1.28.2".into();
    world.revision("my-rev", spec);
    let plan = world.plan(&Subject::revision("my-rev"));
    let Some(NewStatus::Revision(status)) = plan.status() else {
        panic!("{plan:?}")
    };
    assert_eq!(status.observed_generation, 2);
}

#[test]
fn two_control_planes_are_independent() {
    let mut world = World::default();
    put_revision(&mut world, "a", revision_spec("a"));
    put_revision(&mut world, "b", revision_spec("b"));
    world.namespace("app", "istio.io/rev=a");
    world.settle_and_check_idle();
    assert!(world.conditions(&Subject::revision("a"))[4].starts_with("InUse=True"));
    assert!(world.conditions(&Subject::revision("b"))[4].starts_with("InUse=False"));
}
