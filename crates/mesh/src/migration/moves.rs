//! Plans the single write that migrates a workload or relabels a namespace, once the batch has capacity for
//! it.

use mainstay_api::{BatchedMigrationStatus, ObjectMeta, Reason, Time};

use super::hold::Migration;
use super::state::is_rejected;
use super::{MigrationIndex, WorkloadState, batch_capacity, open_batch};
use crate::plan::{Action, Move, Plan, Relabel, Requeue};
use crate::planner::PlanBuilder;
use crate::workload::{MigrationRecord, Workload, WorkloadKey};
use crate::{Snapshot, Subject};

/// Returns the plan of a workload, or `None` if no batch is open or namespaces must be relabeled first.
pub(crate) fn plan_workload(snapshot: &Snapshot, key: &WorkloadKey) -> Option<Plan> {
    let workload = snapshot.workload(key)?;
    let migration = Migration::for_istio(snapshot, snapshot.migrating_istio(key)?)?;
    let batched: BatchedMigrationStatus = migration.in_progress(snapshot)?.batched?;
    let batch = open_batch(&batched)?;
    if is_relabeling(snapshot, migration.index) {
        return None;
    }
    let subject = Subject::Workload(key.clone());
    let metadata = metadata(&workload.uid, &workload.resource_version);
    let mut builder = PlanBuilder::for_subject(snapshot, subject.clone(), &metadata);
    if !may_join(snapshot, &migration, key, batch) {
        let is_rejected = migration.index.is_rejected(key);
        let failure = snapshot.last_failure(&subject).filter(|_| is_rejected);
        if let Some(failure) = failure.filter(|failure| failure.retry_at > snapshot.now) {
            builder.requeue(Requeue::At(failure.retry_at));
        }
        return Some(builder.plan());
    }
    let action = Move {
        object: builder.object().clone(),
        relabel: needs_label(snapshot, key, workload, migration.target),
        record: MigrationRecord {
            revision: migration.target.to_owned(),
            batch,
            started: Time::from_timestamp(snapshot.now),
        },
    };
    builder.add(Action::MoveWorkload(action), Reason::WorkloadOnOldRevision);
    Some(builder.plan())
}

/// Whether a workload may be restarted now, as part of the open batch.
fn may_join(snapshot: &Snapshot, migration: &Migration<'_>, key: &WorkloadKey, batch: i32) -> bool {
    let (now, index) = (snapshot.now, migration.index);
    let capacity = batch_capacity(index, &migration.settings, batch, now).available;
    match index.state(key) {
        Some(WorkloadState::Pending { priority, .. }) => {
            let open = batch_priority(snapshot, index, batch);
            let first = index.candidates(now).next().map(|(priority, _)| priority);
            let fits = open.or(first) == Some(*priority);
            fits && index.candidates(now).take(capacity).any(|(_, next)| next == key)
        }
        // Retried periodically: the webhook or policy that rejected the restart may have changed.
        Some(WorkloadState::Rejected) => {
            let failure = snapshot.last_failure(&Subject::Workload(key.clone()));
            let is_due = failure.is_some_and(|failure| failure.retry_at <= now);
            is_due && capacity > 0 && !index.is_restarting(key, now)
        }
        _ => false,
    }
}

/// Returns the priority of the workloads in a batch. Workloads of another priority wait for the next batch.
pub(super) fn batch_priority(snapshot: &Snapshot, index: &MigrationIndex, batch: i32) -> Option<i32> {
    let member = index.batch_members(batch).find_map(|key| snapshot.workload(key));
    member.map(|workload| workload.priority)
}

/// Whether a namespace must still be relabeled. No workload is restarted before that. A namespace whose
/// relabeling is rejected is ignored, so that it does not block the migration.
pub(super) fn is_relabeling(snapshot: &Snapshot, index: &MigrationIndex) -> bool {
    let mut namespaces = index.namespaces();
    namespaces.any(|name| !is_rejected(snapshot, &Subject::Namespace(name.to_owned())))
}

/// Whether the pod template names an old revision itself. A template is not changed if it refers to a tag,
/// or if the labels of its namespace select the revision.
fn needs_label(snapshot: &Snapshot, key: &WorkloadKey, workload: &Workload, target: &str) -> bool {
    let references = snapshot.references();
    if references.selected_by_namespace(key.namespace()).is_some() {
        return false;
    }
    let requested = workload.requested_revision();
    let resolved = requested.and_then(|name| snapshot.resolve(name));
    resolved.is_some_and(|(revision, tag)| tag.is_none() && revision.name() != target)
}

/// Returns the plan of a namespace, or `None` if it must not be relabeled now.
pub(crate) fn plan_namespace(snapshot: &Snapshot, name: &str) -> Option<Plan> {
    let namespace = snapshot.namespace(name)?;
    let migration = Migration::for_istio(snapshot, snapshot.relabeling_istio(name)?)?;
    migration.in_progress(snapshot)?;
    let subject = Subject::Namespace(name.to_owned());
    let metadata = metadata(&namespace.uid, &namespace.resource_version);
    let mut builder = PlanBuilder::for_subject(snapshot, subject, &metadata);
    let action = Relabel {
        object: builder.object().clone(),
        revision: migration.target.to_owned(),
        drop_injection: namespace.injection_label,
    };
    builder.add(Action::RelabelNamespace(action), Reason::NamespaceOnOldRevision);
    Some(builder.plan())
}

fn metadata(uid: &str, resource_version: &str) -> ObjectMeta {
    ObjectMeta {
        uid: uid.to_owned(),
        resource_version: resource_version.to_owned(),
        ..ObjectMeta::default()
    }
}
