//! Deletes a deployment: deletes or releases all objects in the inventories, then removes the finalizer.
//! Nothing is rendered.

use mainstay_api::delivery::{DeletionPolicy, DeploymentPhase};
use mainstay_api::{Reason, Time};

use super::cluster_state::is_ours;
use super::{Clusters, Draft, object_version};
use crate::manifest::{ObjectKey, Role};
use crate::names::inventory_name;
use crate::plan::{Action, Delete, InventoryWrite, Plan, Release, Step};
use crate::snapshot::{ClusterView, Snapshot};

pub(super) fn plan_deletion(snapshot: &Snapshot) -> Plan {
    let mut draft = Draft::new(snapshot);
    let metadata = &snapshot.deployment.metadata;
    let has_finalizer = metadata
        .finalizers
        .iter()
        .any(|name| name == mainstay_api::delivery::FINALIZER);
    if !has_finalizer {
        return draft.into_plan(Clusters::default());
    }
    let deletion = snapshot.deployment.spec.deletion.clone().unwrap_or_default();
    let mut clusters = Clusters::default();
    let mut is_done = true;
    for (name, view) in &snapshot.clusters {
        if view.inventory.objects.is_empty() && view.inventory.version.is_none() {
            continue;
        }
        let is_kept = deletion.policy == Some(DeletionPolicy::Orphan);
        let is_forgotten = !view.is_reachable(snapshot.now) && is_given_up(&mut draft, name, view);
        let (steps, is_cleaned_up) = if is_kept {
            (release_objects(snapshot, view), true)
        } else if is_forgotten {
            (Vec::new(), true)
        } else {
            (
                delete_objects(snapshot, view),
                view.is_reachable(snapshot.now) && are_objects_deleted(snapshot, view),
            )
        };
        if !steps.is_empty() || !is_cleaned_up {
            if !steps.is_empty() {
                clusters.steps.insert(name.clone(), steps);
            }
            is_done = false;
            continue;
        }
        clusters.finish.push(Step {
            action: Action::WriteInventory(InventoryWrite {
                name: inventory_name(snapshot.deployment.name(), name),
                cluster: name.clone(),
                precondition: view.inventory.version.clone(),
                objects: std::collections::BTreeSet::new(),
            }),
            reason: Reason::InventoryReduced,
        });
        is_done = false;
    }
    if is_done {
        clusters.finish.push(Step {
            action: Action::RemoveFinalizer(object_version(metadata)),
            reason: Reason::CleanedUp,
        });
    } else {
        draft.status.phase = DeploymentPhase::Deleting;
    }
    draft.into_plan(clusters)
}

/// Whether the objects of an unreachable cluster are given up, because the configured time has passed.
fn is_given_up(draft: &mut Draft<'_>, name: &str, view: &ClusterView) -> bool {
    let deployment = &draft.snapshot.deployment;
    let deletion = deployment.spec.deletion.clone().unwrap_or_default();
    let after = deletion
        .unreachable_clusters
        .and_then(|unreachable| unreachable.forget_after_seconds);
    let since: Option<Time> = deployment.metadata.deletion_timestamp;
    let (Some(after), Some(since)) = (after, since) else {
        return false;
    };
    let is_over = draft.has_passed(since, after);
    if is_over {
        let names: Vec<String> = view.inventory.objects.iter().map(ToString::to_string).collect();
        draft.add_event(
            Reason::ObjectsForgotten,
            true,
            format!(
                "cluster {name:?} is unreachable; objects not deleted: {}",
                names.join(", ")
            ),
        );
    }
    is_over
}

/// Returns the steps that delete the objects of a cluster. Routes are deleted first, so that no request
/// reaches a workload that is being deleted.
fn delete_objects(snapshot: &Snapshot, view: &ClusterView) -> Vec<Step> {
    if !view.is_reachable(snapshot.now) {
        return Vec::new();
    }
    let mut keys: Vec<_> = view.inventory.objects.iter().collect();
    keys.sort_by_key(|key| match Role::for_kind(&key.kind) {
        Role::Route => 0,
        Role::Workload => 1,
        Role::Support => 2,
    });
    let delete = |key: &&ObjectKey| {
        let observed = view.objects.get(*key)?;
        let is_due = is_ours(snapshot, observed) && !observed.is_deleting;
        is_due.then(|| Step {
            action: Action::Delete(Delete {
                key: (*key).clone(),
                precondition: observed.version.clone(),
            }),
            reason: Reason::ObjectDeleted,
        })
    };
    keys.iter().filter_map(delete).collect()
}

/// Returns the steps that remove the owner references to the deployment. With them, Kubernetes deletes the
/// objects of the host cluster together with the deployment.
fn release_objects(snapshot: &Snapshot, view: &ClusterView) -> Vec<Step> {
    let owner = &snapshot.deployment.metadata.uid;
    let release = |key: &ObjectKey| {
        let observed = view.objects.get(key)?;
        let is_due = is_ours(snapshot, observed) && observed.owners.contains(owner) && !observed.is_deleting;
        is_due.then(|| Step {
            action: Action::Release(Release {
                key: key.clone(),
                owner: owner.clone(),
                precondition: observed.version.clone(),
            }),
            reason: Reason::ObjectDeleted,
        })
    };
    view.inventory.objects.iter().filter_map(release).collect()
}

fn are_objects_deleted(snapshot: &Snapshot, view: &ClusterView) -> bool {
    let mut keys = view.inventory.objects.iter();
    keys.all(|key| {
        let observed = view.objects.get(key);
        observed.is_none_or(|observed| !is_ours(snapshot, observed))
    })
}
