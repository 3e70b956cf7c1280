//! Tests complete lifecycles (installation, upgrade, tags, pruning, deletion), each executed until all
//! plans are empty.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use mainstay_api::IstioSpec;
use mainstay_mesh::{Requeue, Subject};
use serde_json::json;
use support::World;

fn in_place(version: &str) -> serde_json::Value {
    json!({"version": version, "namespace": "istio-system"})
}

fn revision_based(version: &str) -> serde_json::Value {
    json!({"version": version, "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": []}})
}

#[test]
fn an_installation_needs_few_writes() {
    let mut world = World::default();
    world.istio("default", in_place("v1.29.1"));
    assert_eq!(
        world.settle_and_check_idle(),
        [
            "Istio/default: create revision default v1.29.1 (RevisionCreated)",
            "Istio/default: event RevisionCreated: created IstioRevision \"default\" of v1.29.1 (RevisionCreated)",
            "Istio/default: status (StatusChanged)",
            "IstioRevision/default: install istiod v1.29.1 as istio-system/default-istiod (ReleaseMissing)",
            "IstioRevision/default: install base v1.29.1 as sail-operator/default-base (ReleaseMissing)",
            "IstioRevision/default: status (StatusChanged)",
            "IstioRevision/default: event !IstiodNotReady: istiod Deployment not found (IstiodNotReady)",
            "Istio/default: status (StatusChanged)",
            "IstioRevision/default: status (StatusChanged)",
            "IstioRevision/default: event Ready: Ready is True (Ready)",
            "Istio/default: status (StatusChanged)",
        ]
    );
    assert_eq!(
        world.conditions(&Subject::istio("default")),
        [
            "state=Healthy",
            "Reconciled=True/Reconciled",
            "Ready=True/Ready",
            "DependenciesHealthy=True/DependenciesHealthy"
        ]
    );
    let istio = world.snapshot.istios().get("default").unwrap();
    assert_eq!(istio.status.active_revision_name, "default");
    assert_eq!(
        (
            istio.status.revisions.total,
            istio.status.revisions.ready,
            istio.status.revisions.in_use
        ),
        (1, 1, 0)
    );
}

#[test]
fn an_in_place_upgrade_changes_the_revision() {
    let mut world = World::default();
    world.istio("default", in_place("v1.28.2"));
    world.settle();
    world.istio("default", in_place("v1.29.1"));
    let executed = world.settle_and_check_idle();
    assert_eq!(
        executed[0],
        "Istio/default: update revision default v1.29.1 (RevisionUpdated)"
    );
    assert!(executed.iter().any(|line| {
        line.contains("install istiod v1.29.1 as istio-system/default-istiod (ReleaseOutdated)")
    }));
    assert_eq!(world.revisions(), ["default"]);
}

#[test]
fn a_revision_based_upgrade_keeps_the_old_revision_while_in_use() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    world.settle();
    world.namespace("app", "istio.io/rev=default-v1-28-2");
    world.settle();
    world.istio("default", revision_based("v1.29.1"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-28-2", "default-v1-29-1"]);
    world.advance(3600);
    world.settle_and_check_idle();
    assert_eq!(world.revisions().len(), 2, "referred to for an hour");

    world.namespace("app", "istio.io/rev=default-v1-29-1");
    world.settle_and_check_idle();
    assert_eq!(
        world.revisions().len(),
        2,
        "not deleted immediately after the move"
    );
    let again = world.plan(&Subject::istio("default")).requeue;
    let Requeue::At(due) = again else {
        panic!("{again:?}")
    };
    assert_eq!(due.as_second() - world.snapshot.now.as_second(), 30);

    world.advance(30);
    world.queue.insert(Subject::istio("default"));
    assert_eq!(
        world.settle_and_check_idle(),
        [
            "Istio/default: delete revision default-v1-28-2 (RevisionPruned)",
            "Istio/default: event RevisionPruned: deleted IstioRevision \"default-v1-28-2\": unused for the whole grace \
             period (RevisionPruned)",
            "IstioRevision/default-v1-28-2: uninstall istio-system/default-v1-28-2-istiod (ObjectDeleted)",
            "IstioRevision/default-v1-28-2: remove finalizer (CleanedUp)",
            "Istio/default: status (StatusChanged)",
        ]
    );
    assert_eq!(world.revisions(), ["default-v1-29-1"]);
}

#[test]
fn a_running_proxy_keeps_the_old_revision_after_its_label_is_removed() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.28.2"));
    world.settle();
    world.namespace("app", "istio.io/rev=default-v1-28-2");
    world.pod("app", "p", "", "istio.io/rev=default-v1-28-2");
    world.istio("default", revision_based("v1.29.1"));
    world.namespace("app", "istio.io/rev=default-v1-29-1");
    world.settle();
    world.advance(3600);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions().len(), 2);
    world.pod_gone("app", "p");
    world.settle();
    world.advance(31);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-29-1"]);
}

#[test]
fn a_change_of_strategy_keeps_the_old_revision_while_in_use() {
    let mut world = World::default();
    world.istio("default", in_place("v1.29.1"));
    world.namespace("app", "istio-injection=enabled");
    world.settle();
    world.istio("default", revision_based("v1.29.1"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default", "default-v1-29-1"]);
    world.namespace("app", "istio.io/rev=default-v1-29-1");
    world.settle();
    world.advance(31);
    world.queue.insert(Subject::istio("default"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-29-1"]);

    world.istio("default", in_place("v1.29.1"));
    world.settle_and_check_idle();
    assert_eq!(
        world.revisions(),
        ["default", "default-v1-29-1"],
        "in use, so it stays"
    );
}

#[test]
fn the_name_of_a_revision_contains_the_version_of_an_alias() {
    let mut world = World::default();
    world.istio("default", revision_based("v1.29-latest"));
    world.settle_and_check_idle();
    assert_eq!(world.revisions(), ["default-v1-29-1"]);
}

#[test]
fn deleting_an_istio_deletes_all_its_objects() {
    let mut world = World::default();
    world.istio("default", in_place("v1.29.1"));
    world.settle();
    world.delete::<IstioSpec>("default");
    assert_eq!(
        world.settle_and_check_idle(),
        [
            "IstioRevision/default: uninstall istio-system/default-istiod (ObjectDeleted)",
            "IstioRevision/default: uninstall sail-operator/default-base (ObjectDeleted)",
            "IstioRevision/default: remove finalizer (CleanedUp)",
        ]
    );
    assert!(world.snapshot.subjects().is_empty());
}

#[test]
fn a_deleted_revision_is_recreated_once_it_is_gone() {
    let mut world = World::default();
    world.istio("default", in_place("v1.29.1"));
    world.settle();
    let old = world
        .snapshot
        .revisions()
        .get("default")
        .unwrap()
        .metadata
        .uid
        .clone();
    world.delete::<mainstay_api::RevisionSpec>("default");
    world.settle_and_check_idle();
    let new = &world.snapshot.revisions().get("default").unwrap().metadata.uid;
    assert_ne!(*new, old);
}

#[test]
fn cni_and_ztunnel_are_installed_and_removed() {
    let mut world = World::default();
    world.cni(json!({"version": "v1.29.1", "namespace": "istio-cni"}));
    world.ztunnel(json!({"version": "v1.29-latest", "namespace": "ztunnel"}));
    let executed = world.settle_and_check_idle();
    for line in [
        "IstioCNI/default: install cni v1.29.1 as istio-cni/istio-cni (ReleaseMissing)",
        "ZTunnel/default: install ztunnel v1.29.1 as ztunnel/ztunnel (ReleaseMissing)",
    ] {
        assert!(
            executed.iter().any(|one| one == line),
            "{line} not in {executed:#?}"
        );
    }
    assert_eq!(world.conditions(&Subject::cni("default"))[0], "state=Healthy");
    assert_eq!(world.conditions(&Subject::ztunnel("default"))[0], "state=Healthy");
    world.delete::<mainstay_api::CniSpec>("default");
    world.delete::<mainstay_api::ZTunnelSpec>("default");
    world.settle_and_check_idle();
    assert!(world.snapshot.subjects().is_empty());
}
