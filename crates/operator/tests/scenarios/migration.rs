//! Migration scenarios from the integration and end-to-end lists of the proposal, for any cluster with
//! injection. `migration.txt` maps the lines of the proposal to scenarios.

#![allow(
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    reason = "settings are built where they are used, and every module uses most helpers"
)]

pub mod availability;
pub mod batches;
pub mod edges;
pub mod flow;
pub mod options;
pub mod readiness;
pub mod recovery;
pub mod revisions;
pub mod settings;
pub mod tags;
pub mod versions;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

pub const OLD_REVISION: &str = "default-v1-28-2";
pub const NEW_REVISION: &str = "default-v1-29-1";

/// Passes all migration scenarios to a macro, grouped by module.
macro_rules! each_migration {
    ($macro:ident) => {
        $macro! {
            settings {
                invalid_settings_are_rejected,
                defaults_are_applied,
            }
            flow {
                namespaces_are_relabeled_before_workloads_restart,
                revision_labels_of_templates_are_updated,
                injection_enabled_follows_the_default_tag,
                a_version_change_migrates_every_kind_of_label,
            }
            batches {
                ten_deployments_three_at_a_time,
            }
            readiness {
                a_workload_that_is_ready_in_time_has_migrated,
                a_workload_that_is_never_ready_fails_and_does_not_stop_others,
            }
            versions {
                no_workload_migrates_to_a_version_above_the_maximum,
            }
            revisions {
                several_old_revisions_migrate_to_the_active_one,
                templates_may_differ_from_their_namespace,
                the_target_changes_during_a_migration,
            }
            tags {
                a_tag_moves_before_workloads_and_labels_are_kept,
            }
            edges {
                a_migration_without_workloads_completes_at_once,
                migrated_workloads_are_not_changed,
                a_deployment_is_deleted_during_its_migration,
                the_istio_is_deleted_during_a_migration,
                the_operator_is_killed_during_a_migration,
            }
            recovery {
                a_disruption_budget_and_pods_that_never_become_ready,
                an_injector_that_rejects_pods,
            }
            options {
                annotations_of_workloads_are_honored,
                a_paused_migration_continues_when_resumed,
                fail_fast_ends_after_the_running_batch,
                stateful_sets_and_daemon_sets_migrate_if_configured,
            }
            availability {
                every_service_stays_available,
                a_state_with_too_few_endpoints_is_detected,
            }
        }
    };
}
pub(crate) use each_migration;

/// Returns the delay between two batches in seconds.
pub fn delay_seconds(world: &World) -> u64 {
    if world.is_real() { 1 } else { 10 }
}

/// Returns the readiness timeout in seconds.
pub fn timeout_seconds(world: &World) -> u64 {
    if world.is_real() { 30 } else { 60 }
}

/// Returns the settings of a migration with this batch size. `extra` is merged into them.
pub fn batched(world: &World, size: u64, extra: Value) -> Value {
    let settings = json!({
        "batchSize": size,
        "delayBetweenBatches": format!("{}s", delay_seconds(world)),
        "readinessTimeout": format!("{}s", timeout_seconds(world)),
    });
    fixtures::merged(json!({"strategy": "Batched", "batched": settings}), extra)
}

/// Returns a `RevisionBased` Istio of the old version that migrates its workloads.
pub fn istio(world: &World, migration: Value) -> Value {
    let strategy = json!({
        "type": "RevisionBased",
        "inactiveRevisionDeletionGracePeriodSeconds": world.grace_seconds(),
        "workloadMigration": migration,
    });
    fixtures::istio("default", OLD, json!({"updateStrategy": strategy}))
}

/// Creates a healthy mesh of the old version.
pub async fn create_mesh(world: &World, migration: Value) {
    world.create(istio(world, migration)).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
        .until_state(&path::tag("default"), "NotReferencedByAnything")
        .await;
}

/// Changes the version of the Istio to the new one.
pub async fn upgrade(world: &World) {
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
}

/// Creates a Deployment with two pods and these template labels, and a Service of the same name.
pub async fn create_app(world: &World, namespace: &str, name: &str, labels: &str) {
    create_app_with(world, namespace, name, labels, json!({"replicas": 2})).await;
}

/// Like [`create_app`], with `spec` merged into the spec of the Deployment.
pub async fn create_app_with(world: &World, namespace: &str, name: &str, labels: &str, spec: Value) {
    // The deletion of a namespace waits for the termination of its pods.
    let short = json!({"template": {"spec": {"terminationGracePeriodSeconds": 1}}});
    let deployment = fixtures::deployment(namespace, name, labels, "");
    let deployment = fixtures::merged(deployment, json!({"spec": fixtures::merged(short, spec)}));
    world.create(deployment).await;
    world
        .create(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        }))
        .await;
}

pub fn deployment(namespace: &str, name: &str) -> ObjectPath {
    ObjectPath::namespaced("Deployment", namespace, name)
}

/// Creates a namespace with these labels and with workloads that are injected by the old revision.
pub async fn injected_apps(world: &World, labels: &str, apps: &[&str]) -> String {
    let namespace = world.namespace(labels).await;
    for name in apps {
        create_app(world, &namespace, name, "").await;
    }
    until_served_by(world, &namespace, OLD_REVISION).await;
    namespace
}

/// Waits until all workloads of a namespace are complete, have all endpoints, and are injected by this
/// revision.
pub async fn until_served_by(world: &World, namespace: &str, revision: &str) {
    world
        .until(&format!("{namespace} is served by {revision}"), async |world| {
            for deployment in list_items(world, "Deployment", namespace).await {
                let name = deployment["metadata"]["name"].as_str().unwrap().to_owned();
                let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
                let complete = status["observedGeneration"] == deployment["metadata"]["generation"]
                    && ["replicas", "updatedReplicas", "availableReplicas"]
                        .iter()
                        .all(|count| status[*count] == *wanted);
                if !complete {
                    return Err(format!("{name}: {status}"));
                }
                let ready = endpoints(world, namespace, &name).await;
                if Some(ready) != wanted.as_u64() {
                    return Err(format!("{name}: {ready} endpoints"));
                }
            }
            let by = injecting_revisions(world, namespace).await;
            let one = by.iter().map(String::as_str).eq([revision]);
            one.then_some(()).ok_or(format!("injected by {by:?}"))
        })
        .await;
}

async fn endpoints(world: &World, namespace: &str, service: &str) -> u64 {
    let mut ready = 0;
    for slice in list_items(world, "EndpointSlice", namespace).await {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == service {
            let endpoints = slice["endpoints"].as_array();
            ready += endpoints
                .into_iter()
                .flatten()
                .filter(|one| one["conditions"]["ready"] == true)
                .count() as u64;
        }
    }
    ready
}

/// Returns the objects of a kind in a namespace.
pub async fn list_items(world: &World, kind: &str, namespace: &str) -> Vec<Value> {
    let path = ObjectPath::namespaced(kind, namespace, "").collection();
    let (code, mut list) = world.call("GET", &path, "", None).await;
    assert_eq!(code, 200, "{path}: {list}");
    match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// Returns the revisions that injected the pods of a namespace. `-` stands for pods without a revision.
pub async fn injecting_revisions(world: &World, namespace: &str) -> BTreeSet<String> {
    let pods = list_items(world, "Pod", namespace).await;
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    let by = |pod: &Value| {
        let revision = pod["metadata"]["annotations"]["istio.io/rev"].as_str();
        revision.unwrap_or("-").to_owned()
    };
    pods.iter().filter(stays).map(by).collect()
}

/// Returns the migration status.
pub async fn status(world: &World) -> Value {
    let istio = world.get(&path::istio("default")).await.unwrap();
    istio["status"]["workloadMigration"].clone()
}

/// Waits until the migration to the new revision is in this state, and returns its status.
pub async fn until_migration(world: &World, state: &str) -> Value {
    let istio = world
        .until_object(&path::istio("default"), &format!("migration {state}"), |istio| {
            let migration = &istio["status"]["workloadMigration"];
            migration["state"] == state && migration["targetRevision"] == NEW_REVISION
        })
        .await;
    istio["status"]["workloadMigration"].clone()
}

/// Formats the counts of a status as `migrated+failed+skipped of total`.
pub fn format_counts(status: &Value) -> String {
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    format!(
        "{}+{}+{} of {}",
        count("migratedWorkloads"),
        count("failedWorkloads"),
        count("skippedWorkloads"),
        count("totalWorkloads")
    )
}

/// Formats the batches of a status as `current of total`.
pub fn format_batch(status: &Value) -> String {
    let count = |key: &str| status["batched"][key].as_i64().unwrap_or_default();
    format!("{} of {}", count("currentBatch"), count("totalBatches"))
}

/// Waits until a Deployment has a migration record for a revision.
pub async fn until_migrating(world: &World, namespace: &str, name: &str, revision: &str) {
    world
        .until_object(&deployment(namespace, name), "is migrating", |object| {
            let mark = object["metadata"]["annotations"]["sailoperator.io/migration"].as_str();
            mark.is_some_and(|mark| mark.contains(&format!("\"revision\":\"{revision}\"")))
        })
        .await;
}

/// Changes the settings of the migration.
pub async fn patch_migration(world: &World, migration: Value) {
    let spec = json!({"spec": {"updateStrategy": {"workloadMigration": migration}}});
    world.patch(&path::istio("default"), spec).await;
}

/// Returns the metadata of a Deployment's template.
pub async fn template_metadata(world: &World, namespace: &str, name: &str) -> Value {
    let object = world.get(&deployment(namespace, name)).await.unwrap();
    object["spec"]["template"]["metadata"].clone()
}

/// Returns the value of a namespace's label, or null if it is not set.
pub async fn namespace_label(world: &World, namespace: &str, key: &str) -> Value {
    let object = world
        .get(&ObjectPath::cluster_scoped("Namespace", namespace))
        .await
        .unwrap();
    object["metadata"]["labels"][key].clone()
}

/// Waits until revision, istiod and webhooks of the old version are deleted.
pub async fn until_old_revision_is_deleted(world: &World) {
    world.until_gone(&path::revision(OLD_REVISION)).await;
    let istiod = format!("istiod-{OLD_REVISION}");
    world.until_gone(&deployment("istio-system", &istiod)).await;
    let injector = format!("istio-sidecar-injector-{OLD_REVISION}");
    world.until_gone(&path::injector(&injector)).await;
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], NEW_REVISION);
}

pub const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
