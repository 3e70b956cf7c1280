//! Tests the labels of migrated workloads, and the workloads that are skipped with their reasons.

use mainstay_api::IstioSpec;
use mainstay_mesh::Observation;
use mainstay_mesh::migration::WorkloadState;
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use serde_json::json;

use super::{
    NEW, OLD, batched, complete_rollouts, condition, events, finish_migration, mesh, migration_actions,
    summary, upgrade, wait,
};
use crate::support::World;
use crate::support::workloads::deployment;

#[test]
fn a_namespace_of_the_default_revision_names_the_new_one_afterwards() {
    // The revision `default` remains from the time when the update strategy was `InPlace`.
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    let spec = json!({"version": "v1.28.2", "namespace": "istio-system"});
    world.apply::<IstioSpec>("default", spec);
    world.settle();
    world.namespace("shop", "istio-injection=enabled team=a");
    world.app("shop", "cart", "", "");
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        migration_actions(&executed),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("restart Deployment/shop/cart on {NEW} in batch 1"),
        ]
    );
    assert_eq!(
        world.namespace_labels("shop"),
        format!("istio.io/rev={NEW} team=a")
    );
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+0 of 1, batch 1 of 1");
}

#[test]
fn a_template_on_the_default_revision_is_relabeled() {
    let mut world = World::default();
    world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
    world.apply::<IstioSpec>(
        "default",
        json!({"version": "v1.28.2", "namespace": "istio-system"}),
    );
    world.settle();
    world.namespace("shop", "");
    let cart = world.app("shop", "cart", "sidecar.istio.io/inject=true", "");
    upgrade(&mut world, batched(1, "0s"));
    let labels = &world.workloads[&cart]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({"sidecar.istio.io/inject": "true", "istio.io/rev": NEW})
    );
}

#[test]
fn workloads_on_a_tag_are_restarted_after_it_moves_and_never_relabeled() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("prod", "Istio", "default");
    world.settle();
    world.namespace("tagged", "istio.io/rev=prod");
    world.app("tagged", "cart", "", "");
    world.namespace("injected", "istio-injection=enabled");
    world.app("injected", "web", "", "");
    world.namespace("silent", "");
    let tool = world.app("silent", "tool", "istio.io/rev=prod", "");
    world.ready = false;
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(
        summary(&world),
        "Idle 0+0+0 of 3, batch 0 of 0",
        "they wait for their tags"
    );
    world.deployment("istio-system", &format!("istiod-{NEW}"), 1, 1);
    let executed = world.settle();
    assert_eq!(
        migration_actions(&executed),
        [format!("restart Deployment/injected/web on {NEW} in batch 1")]
    );
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 3+0+0 of 3, batch 3 of 3");
    assert_eq!(world.namespace_labels("tagged"), "istio.io/rev=prod");
    assert_eq!(world.namespace_labels("injected"), "istio-injection=enabled");
    let labels = &world.workloads[&tool]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(*labels, json!({"istio.io/rev": "prod"}));
}

#[test]
fn skipped_workloads_are_reported_before_their_tag_moves() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("prod", "Istio", "default");
    world.settle();
    world.namespace("tagged", "istio.io/rev=prod");
    world.app("tagged", "cart", "", "");
    let audit = world.app("tagged", "audit", "", "sailoperator.io/skip-migration=true");
    world.ready = false;
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(summary(&world), "Idle 0+0+1 of 2, batch 0 of 0");
    let istio = world.snapshot.istios().get("default").unwrap().clone();
    let preview = mainstay_mesh::preview(&world.snapshot, &istio).unwrap();
    assert_eq!(
        preview.skipped,
        [(audit, mainstay_api::Reason::SkippedByAnnotation)]
    );
    assert_eq!(preview.batches.concat().len(), 1);
}

#[test]
fn a_tag_that_is_pinned_to_an_old_revision_keeps_its_workloads() {
    let mut world = mesh(batched(1, "0s"));
    world.tag("stable", "IstioRevision", OLD);
    world.settle();
    world.namespace("pinned", "istio.io/rev=stable");
    let cart = world.app("pinned", "cart", "", "");
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(migration_actions(&executed), Vec::<&str>::new());
    assert_eq!(summary(&world), "Completed 0+0+1 of 1, batch 0 of 0");
    let index = world.snapshot.migration_index("default").unwrap();
    assert_eq!(
        index.state(&cart),
        Some(&WorkloadState::Skipped(mainstay_api::Reason::PinnedByTag))
    );
    wait(&mut world, 3_600);
    assert_eq!(world.revisions(), [OLD, NEW]);
}

#[test]
fn excluded_workloads_are_skipped_with_a_reason() {
    let mut world = mesh(batched(10, "0s"));
    let old = format!("istio.io/rev={OLD}");
    world.namespace("shop", &old);
    world.app("shop", "skipped", "", "sailoperator.io/skip-migration=true");
    let paused = world.app("shop", "paused", "", "");
    world.change_workload(&paused, |object| object["spec"]["paused"] = json!(true));
    let set = WorkloadKey::new("shop", WorkloadKind::StatefulSet, "set");
    world.workload(set.clone(), "", "");
    world.app("shop", "opted-out", "sidecar.istio.io/inject=false", "");
    world.put_namespace(
        "quiet",
        crate::support::pairs(&old),
        crate::support::pairs("sailoperator.io/skip-migration=true"),
    );
    world.app("quiet", "cart", "", "");
    world.app("shop", "moved", "", "");
    let executed = upgrade(&mut world, batched(10, "0s"));
    assert_eq!(
        migration_actions(&executed),
        [
            format!("relabel namespace shop to {NEW}"),
            format!("restart Deployment/shop/moved on {NEW} in batch 1"),
        ]
    );
    complete_rollouts(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+4 of 5, batch 1 of 1");
    let index = world.snapshot.migration_index("default").unwrap();
    let why = |key: &WorkloadKey| match index.state(key) {
        Some(WorkloadState::Skipped(reason)) => reason.name().to_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(why(&deployment("shop", "skipped")), "SkippedByAnnotation");
    assert_eq!(why(&deployment("quiet", "cart")), "SkippedByAnnotation");
    assert_eq!(why(&paused), "WorkloadPaused");
    assert_eq!(why(&set), "KindNotSelected");
    assert_eq!(why(&deployment("shop", "opted-out")), "None");
    assert_eq!(world.namespace_labels("quiet"), old);
    // A paused workload is migrated once it is resumed.
    world.change_workload(&paused, |object| object["spec"]["paused"] = json!(false));
    assert_eq!(
        migration_actions(&world.settle()),
        [format!("restart Deployment/shop/paused on {NEW} in batch 2")]
    );
}

#[test]
fn stateful_and_daemon_sets_are_migrated_when_selected() {
    let settings = || json!({"kinds": ["Deployment", "StatefulSet", "DaemonSet"], "batched": {"delayBetweenBatches": "0s"}});
    let mut world = mesh(settings());
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let set = WorkloadKey::new("shop", WorkloadKind::StatefulSet, "db");
    world.workload(set.clone(), "", "");
    let stuck = WorkloadKey::new("shop", WorkloadKind::StatefulSet, "manual");
    world.workload(stuck.clone(), "", "");
    world.change_workload(&stuck, |object| {
        object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    });
    let executed = upgrade(&mut world, settings());
    assert_eq!(
        migration_actions(&executed).last().copied(),
        Some(format!("restart {set} on {NEW} in batch 1").as_str())
    );
    finish_migration(&mut world);
    assert_eq!(summary(&world), "Completed 1+0+1 of 2, batch 1 of 1");
    let standing = world.snapshot.migration_index("default").unwrap().state(&stuck);
    assert_eq!(
        standing,
        Some(&WorkloadState::Skipped(mainstay_api::Reason::UpdatesOnDelete))
    );
}

#[test]
fn pods_without_a_workload_are_reported() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("batch", "");
    world.pod(
        "batch",
        "nightly-x",
        &format!("istio.io/rev={OLD}"),
        &format!("istio.io/rev={OLD}"),
    );
    upgrade(&mut world, batched(1, "0s"));
    assert_eq!(summary(&world), "Completed 0+0+0 of 0, batch 0 of 0");
    assert!(
        condition(&world).ends_with("; not restarted, because no workload owns them: Pod/batch/nightly-x"),
        "{}",
        condition(&world)
    );
}

#[test]
fn a_workload_without_a_reference_keeps_its_proxy() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("shop", &format!("istio.io/rev={OLD}"));
    let cart = world.app("shop", "cart", "", "");
    world.namespace("shop", "");
    let executed = upgrade(&mut world, batched(1, "0s"));
    assert_eq!(migration_actions(&executed), Vec::<&str>::new());
    let standing = world.snapshot.migration_index("default").unwrap().state(&cart);
    assert_eq!(
        standing,
        Some(&WorkloadState::Skipped(mainstay_api::Reason::NoReference))
    );
}

#[test]
fn a_namespace_without_workloads_is_also_relabeled() {
    let mut world = mesh(batched(1, "0s"));
    world.namespace("empty", &format!("istio.io/rev={OLD}"));
    let executed = upgrade(&mut world, batched(1, "0s"));
    let reported = events(&executed);
    assert!(
        reported
            .iter()
            .any(|event| event.starts_with(&format!("MigrationStarted: relabeling namespaces for {NEW}"))),
        "{reported:#?}"
    );
    let labels = world.snapshot.references().selected_by_namespace("empty");
    assert_eq!(labels, Some(NEW));
    assert_eq!(summary(&world), "Completed 0+0+0 of 0, batch 0 of 0");
    wait(&mut world, 60);
    assert_eq!(world.revisions(), [NEW], "nothing keeps the old one");
}
