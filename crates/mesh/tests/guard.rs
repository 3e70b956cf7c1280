//! Tests finalizers and failures, which are common to all kinds, and the kinds with a single release:
//! `IstioCNI` and `ZTunnel`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::{CniSpec, ConditionType, ObjectKind, RevisionSpec, ZTunnelSpec, names};
use mainstay_mesh::snapshot::{Failure, ReleaseFact, Source};
use mainstay_mesh::{Action, ErrorClass, Observation, Platform, Requeue, Settings, Subject};
use serde_json::{Value, json};
use support::{World, actions, condition, revision_spec};

fn cni(version: &str, namespace: &str) -> Value {
    json!({"version": version, "namespace": namespace})
}

#[test]
fn absent_objects_have_no_plan() {
    let world = World::default();
    for kind in ObjectKind::ALL {
        assert!(
            world.plan(&Subject::Object(kind, "x".into())).is_empty(),
            "skips reconciliation when resource not found"
        );
    }
    assert!(world.plan(&Subject::Webhook("x".into())).is_empty());
}

#[test]
fn a_finalizer_comes_first_and_alone() {
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.edit::<CniSpec>("default", |cni| {
        cni.metadata.finalizers = vec!["example.com/x".into()];
    });
    let plan = world.plan(&Subject::cni("default"));
    assert_eq!(
        actions(&plan),
        ["add finalizer"],
        "adds finalizer when resource doesn't have it"
    );
    let Action::AddFinalizer { finalizers, .. } = &plan.steps[0].action else {
        panic!()
    };
    assert_eq!(finalizers, &["example.com/x", names::FINALIZER]);
}

#[test]
fn deleted_objects_without_our_finalizer_are_ignored() {
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.edit::<CniSpec>("default", |cni| {
        cni.metadata.finalizers = vec!["example.com/x".into()];
    });
    world.delete::<CniSpec>("default");
    assert!(
        world.plan(&Subject::cni("default")).is_empty(),
        "skips reconciliation when resource deleted"
    );
}

#[test]
fn the_finalizer_is_removed_once_all_releases_are_absent() {
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.settle();
    world.delete::<CniSpec>("default");
    let subject = Subject::cni("default");
    let plan = world.plan(&subject);
    assert_eq!(
        actions(&plan),
        ["uninstall istio-cni/istio-cni"],
        "finalizes resource when resource deleted"
    );
    let Action::Uninstall(key) = plan.steps[0].action.clone() else {
        panic!()
    };
    world.observe(Observation::Release(key.clone(), ReleaseFact::Present));
    assert_eq!(
        actions(&world.plan(&subject)),
        ["uninstall istio-cni/istio-cni"],
        "objects of the release remain"
    );
    world.observe(Observation::Release(key, ReleaseFact::Absent));
    assert_eq!(actions(&world.plan(&subject)), ["remove finalizer"]);
}

#[test]
fn a_failed_finalization_keeps_the_finalizer_and_waits() {
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.settle();
    world.delete::<CniSpec>("default");
    let subject = Subject::cni("default");
    let retry_at = world.snapshot.now + jiff::SignedDuration::from_secs(5);
    let failure = Failure {
        action: world.plan(&subject).steps[0].action.clone(),
        class: ErrorClass::Other,
        message: "simulated error".into(),
        retry_at,
    };
    world.observe(Observation::Failed(subject.clone(), failure));
    let plan = world.plan(&subject);
    assert!(
        plan.is_empty(),
        "preserves finalizer and returns error when finalization fails"
    );
    assert_eq!(plan.requeue, Requeue::At(retry_at));
    world.advance(5);
    assert!(!world.plan(&subject).is_empty());
}

#[test]
fn after_a_restart_releases_are_compared_again() {
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.settle_and_check_idle();
    let mut restarted = World::default();
    let object = world.snapshot.cnis().get("default").cloned().unwrap();
    restarted.observe(Observation::Cni(object));
    restarted.daemonset("istio-cni", "istio-cni-node", 1, 1);
    assert_eq!(
        actions(&restarted.plan(&Subject::cni("default"))),
        ["install cni v1.29.1 as istio-cni/istio-cni"]
    );
}

#[test]
fn a_failed_install_is_reported_once_and_retried() {
    let mut world = World::default();
    world.revision("my-rev", revision_spec("my-rev"));
    world.edit::<RevisionSpec>("my-rev", |revision| {
        revision.metadata.finalizers = vec![names::FINALIZER.into()];
    });
    let subject = Subject::revision("my-rev");
    let action = world.plan(&subject).steps[0].action.clone();
    for round in 0..3 {
        let failure = Failure {
            action: action.clone(),
            class: ErrorClass::Other,
            message: "no such host".into(),
            retry_at: world.snapshot.now + jiff::SignedDuration::from_secs(60),
        };
        world.observe(Observation::Failed(subject.clone(), failure));
        let executed = world.settle();
        assert_eq!(
            executed
                .iter()
                .filter(|line| line.ends_with("status (StatusChanged)"))
                .count(),
            usize::from(round == 0),
            "{executed:#?}"
        );
        assert_eq!(
            world.conditions(&subject)[1],
            "Reconciled=False/ReconcileError: error reconciling resource: failed to install/update Helm chart \"istiod\": no such host"
        );
        world.advance(60);
    }
    world.observe(Observation::Succeeded(subject.clone()));
    world.settle_and_check_idle();
    assert_eq!(world.conditions(&subject)[0], "state=Healthy");
}

fn check_version_and_namespace(case: &str, spec: &Value, expected: &str) {
    for kind in [ObjectKind::IstioCni, ObjectKind::ZTunnel] {
        let mut world = World::default();
        world.observe(Observation::Namespace {
            name: "going".into(),
            labels: support::pairs(""),
            terminating: true,
            uid: String::new(),
            resource_version: String::new(),
            annotations: std::collections::BTreeMap::new(),
        });
        let finalizers = vec![names::FINALIZER.to_owned()];
        if kind == ObjectKind::IstioCni {
            world.cni(spec.clone());
            world.edit::<CniSpec>("default", |cni| cni.metadata.finalizers = finalizers);
        } else {
            world.ztunnel(spec.clone());
            world.edit::<ZTunnelSpec>("default", |ztunnel| ztunnel.metadata.finalizers = finalizers);
        }
        let subject = Subject::Object(kind, "default".into());
        let name = if kind == ObjectKind::IstioCni {
            "CNI"
        } else {
            "ZTunnel"
        };
        let expected = expected.replace("KIND", name);
        assert_eq!(
            condition(&world, &subject, &ConditionType::Reconciled),
            expected,
            "{case}: {name}"
        );
    }
}

#[test]
fn cni_and_ztunnel_require_a_version_and_a_namespace() {
    let error = |text: &str| format!("Reconciled=False/ReconcileError: error reconciling resource: {text}");
    check_version_and_namespace(
        "success",
        &cni("v1.29.1", "istio-system"),
        "Reconciled=True/Reconciled",
    );
    check_version_and_namespace(
        "no version",
        &json!({"namespace": "istio-system"}),
        &error("validation error: version not set"),
    );
    check_version_and_namespace(
        "no namespace",
        &json!({"version": "v1.29.1"}),
        &error("validation error: namespace not set"),
    );
    check_version_and_namespace(
        "namespace not found",
        &cni("v1.29.1", "x"),
        &error("validation error: namespace \"x\" doesn't exist"),
    );
    check_version_and_namespace(
        "namespace is being deleted",
        &cni("v1.29.1", "going"),
        &error("validation error: namespace \"going\" is being deleted"),
    );
    check_version_and_namespace(
        "end of life",
        &cni("v1.23.4", "istio-system"),
        &error(
            "validation error: version \"v1.23.4\" is end-of-life and cannot be installed; use a supported version",
        ),
    );
    check_version_and_namespace(
        "unknown",
        &cni("v9", "istio-system"),
        &error("failed to resolve KIND version: version \"v9\" not found"),
    );
}

#[test]
fn a_daemonset_is_ready_when_all_its_pods_are() {
    let check = |case: &str, fact: Option<(i32, i32)>, expected: &str| {
        for (subject, name, namespace) in [
            (Subject::cni("default"), "istio-cni-node", "istio-cni"),
            (Subject::ztunnel("default"), "ztunnel", "ztunnel"),
        ] {
            let mut world = World::default();
            world.cni(cni("v1.29.1", "istio-cni"));
            world.edit::<CniSpec>("default", |cni| {
                cni.metadata.finalizers = vec![names::FINALIZER.into()];
            });
            world.ztunnel(cni("v1.29.1", "ztunnel"));
            world.edit::<ZTunnelSpec>("default", |ztunnel| {
                ztunnel.metadata.finalizers = vec![names::FINALIZER.into()];
            });
            if let Some((scheduled, ready)) = fact {
                world.daemonset(namespace, name, scheduled, ready);
            }
            assert_eq!(
                condition(&world, &subject, &ConditionType::Ready),
                expected.replace("NAME", name),
                "{case}"
            );
        }
    };
    check("ready", Some((3, 3)), "Ready=True/Ready");
    check(
        "not ready",
        Some((3, 2)),
        "Ready=False/DaemonSetNotReady: not all NAME pods are ready",
    );
    check(
        "pods not scheduled",
        Some((0, 0)),
        "Ready=False/DaemonSetNotReady: no NAME pods are currently scheduled",
    );
    check(
        "not found",
        None,
        "Ready=False/DaemonSetNotReady: NAME DaemonSet not found",
    );
    let mut world = World::default();
    world.cni(cni("v1.29.1", "istio-cni"));
    world.edit::<CniSpec>("default", |cni| {
        cni.metadata.finalizers = vec![names::FINALIZER.into()];
    });
    world.fail_source(Source::DaemonSets, "simulated error");
    assert_eq!(
        condition(&world, &Subject::cni("default"), &ConditionType::Ready),
        "Ready=Unknown/ReadinessCheckFailed: failed to get readiness: simulated error",
        "client error on get"
    );
}

#[test]
fn ztunnel_uses_its_control_plane() {
    let mut world = World::default();
    let with_target = |kind: &str, name: &str| json!({"version": "v1.29.1", "namespace": "ztunnel", "targetRef": {"kind": kind, "name": name}});
    world.ztunnel(with_target("Istio", "default"));
    world.settle();
    let subject = Subject::ztunnel("default");
    assert_eq!(
        world.conditions(&subject)[1],
        "Reconciled=False/ReconcileError: error reconciling resource: istios.sailoperator.io \"default\" not found"
    );
    world.istio(
        "default",
        json!({"version": "v1.29.1", "namespace": "istio-system", "values": {"global": {"network": "n1"}}}),
    );
    world.settle_and_check_idle();
    let ztunnel = world.snapshot.ztunnels().get("default").unwrap();
    assert_eq!(
        (
            ztunnel.status.istio_revision.as_str(),
            ztunnel.status.state.name()
        ),
        ("default", "Healthy")
    );
    let (_, fact) = world.snapshot.releases_of(&ztunnel.metadata.uid).next().unwrap();
    let ReleaseFact::Applied(release) = fact else {
        panic!()
    };
    assert_eq!(release.values["global"]["network"], "n1");
    assert_eq!(release.values["profile"], "ambient");

    world.ztunnel(with_target("IstioRevision", "nowhere"));
    world.settle_and_check_idle();
    let ztunnel = world.snapshot.ztunnels().get("default").unwrap();
    assert_eq!(ztunnel.status.istio_revision, "", "emptied when unresolved");
}

#[test]
fn a_moved_ztunnel_uninstalls_its_old_release() {
    let mut world = World::default();
    world.ztunnel(cni("v1.29.1", "ztunnel"));
    world.settle();
    world.ztunnel(cni("v1.29.1", "istio-system"));
    assert_eq!(
        actions(&world.plan(&Subject::ztunnel("default")))[..2],
        [
            "uninstall ztunnel/ztunnel",
            "install ztunnel v1.29.1 as istio-system/ztunnel"
        ]
    );
    world.settle_and_check_idle();
}

#[test]
fn the_platform_determines_the_profile_of_cni() {
    let mut world = World::with_settings(Settings {
        platform: Platform::OpenShift,
        operator_namespace: "sail-operator".into(),
        ..Settings::default()
    });
    world.cni(cni("v1.29.1", "istio-cni"));
    world.settle_and_check_idle();
    let uid = &world.snapshot.cnis().get("default").unwrap().metadata.uid;
    let (_, fact) = world.snapshot.releases_of(uid).next().unwrap();
    let ReleaseFact::Applied(release) = fact else {
        panic!()
    };
    assert_eq!(release.values["global"]["platform"], "openshift");
}
