//! One workload or namespace on its way: takes where it stands, gives the one write that sends it to the target, if it is its turn.

use mainstay_api::{ObjectMeta, Reason, Time};

use super::terms::{Migration, Terms};
use super::work::Work;
use crate::migration::{MigrationIndex, WorkloadState};
use crate::plan::{Action, Move, Plan, Relabel, Requeue};
use crate::workload::{MigrationRecord, Workload, WorkloadKey};
use crate::{Snapshot, Subject};

/// The plan of a workload.
pub(super) fn plan_workload(snapshot: &Snapshot, key: &WorkloadKey) -> Option<Plan> {
    let workload = snapshot.workload(key)?;
    let migration = Migration::of(snapshot, snapshot.migrating_istio(key)?)?;
    let (terms, written) = migration.under_way(snapshot)?;
    let batched = written.batched.filter(|batched| batched.current_batch > 0)?;
    if batched.next_batch_time.is_some() || is_relabelling(snapshot, migration.index) {
        return None;
    }
    let subject = Subject::Workload(key.clone());
    let mut work = Work::on_subject(
        snapshot,
        subject.clone(),
        &metadata(&workload.uid, &workload.resource_version),
    );
    if !is_turn(
        snapshot,
        &migration,
        (key, &subject),
        (terms, batched.current_batch),
    ) {
        let refused = migration.index.state(key) == Some(&WorkloadState::Rejected);
        let waits = snapshot.last_failure(&subject).filter(|_| refused);
        if let Some(failure) = waits.filter(|failure| failure.retry_at > snapshot.now) {
            work.look_again(Requeue::At(failure.retry_at));
        }
        return Some(work.plan());
    }
    let action = Move {
        object: work.object().clone(),
        relabel: needs_label(snapshot, key, workload, migration.target),
        record: MigrationRecord {
            revision: migration.target.to_owned(),
            batch: batched.current_batch,
            started: Time::from_timestamp(snapshot.now),
        },
    };
    work.add(Action::MoveWorkload(action), Reason::WorkloadOnOldRevision);
    Some(work.plan())
}

/// Whether there is room for a workload in the batch that is open.
fn is_turn(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    (key, subject): (&WorkloadKey, &Subject),
    (terms, batch): (&Terms, i32),
) -> bool {
    let (now, index) = (snapshot.now, migration.index);
    let taken = index.members(batch).count().max(index.disturbed(now));
    let room = terms.size.saturating_sub(taken);
    match index.state(key) {
        Some(WorkloadState::Pending { priority, .. }) => {
            let open = batch_priority(snapshot, index, batch);
            let first = index.candidates(now).next().map(|(priority, _)| priority);
            let fits = open.or(first) == Some(*priority);
            fits && index.candidates(now).take(room).any(|(_, next)| next == key)
        }
        // It is tried again now and then: whoever refused it may have changed their mind.
        Some(WorkloadState::Rejected) => {
            let due = snapshot
                .last_failure(subject)
                .is_some_and(|failure| failure.retry_at <= now);
            due && room > 0 && !index.is_busy(key, now)
        }
        _ => false,
    }
}

/// The priority of those a batch consists of so far: others wait for the next.
pub(super) fn batch_priority(snapshot: &Snapshot, index: &MigrationIndex, batch: i32) -> Option<i32> {
    let member = index.members(batch).find_map(|key| snapshot.workload(key));
    member.map(|workload| workload.priority)
}

/// Whether a namespace is still to be relabelled: until then nothing restarts. One whose relabelling is refused is not waited for.
pub(super) fn is_relabelling(snapshot: &Snapshot, index: &MigrationIndex) -> bool {
    let mut namespaces = index.namespaces();
    namespaces.any(|name| !snapshot.is_rejected(&Subject::Namespace(name.to_owned())))
}

/// Whether the template names an old revision itself. A template on a tag, or in a namespace that decides, is left as it is.
fn needs_label(snapshot: &Snapshot, key: &WorkloadKey, workload: &Workload, target: &str) -> bool {
    if snapshot
        .references()
        .selected_by_namespace(key.namespace())
        .is_some()
    {
        return false;
    }
    let resolved = workload
        .requested_revision()
        .and_then(|name| snapshot.resolve(name));
    resolved.is_some_and(|(revision, tag)| tag.is_none() && revision.name() != target)
}

/// The plan of a namespace.
pub(super) fn plan_namespace(snapshot: &Snapshot, name: &str) -> Option<Plan> {
    let namespace = snapshot.namespace(name)?;
    let migration = Migration::of(snapshot, snapshot.relabeling_istio(name)?)?;
    migration.under_way(snapshot)?;
    let subject = Subject::Namespace(name.to_owned());
    let mut work = Work::on_subject(
        snapshot,
        subject,
        &metadata(&namespace.uid, &namespace.resource_version),
    );
    let action = Relabel {
        object: work.object().clone(),
        revision: migration.target.to_owned(),
        drop_injection: namespace.injection_label,
    };
    work.add(Action::RelabelNamespace(action), Reason::NamespaceOnOldRevision);
    Some(work.plan())
}

fn metadata(uid: &str, resource_version: &str) -> ObjectMeta {
    ObjectMeta {
        uid: uid.to_owned(),
        resource_version: resource_version.to_owned(),
        ..ObjectMeta::default()
    }
}
