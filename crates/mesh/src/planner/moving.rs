//! One workload or namespace on its way: takes where it stands, gives the one write that sends it to the target, if it is its turn.

use mainstay_api::{ObjectMeta, Reason, Time};

use super::terms::{Migration, Terms};
use super::work::Work;
use crate::ledger::{Ledger, Standing};
use crate::plan::{Action, Again, Move, Plan, Relabel};
use crate::workload::{Mark, Workload, WorkloadKey};
use crate::{Snapshot, Subject};

/// The plan of a workload.
pub(super) fn plan_workload(snapshot: &Snapshot, key: &WorkloadKey) -> Option<Plan> {
    let workload = snapshot.workload(key)?;
    let migration = Migration::of(snapshot, snapshot.mover_of(key)?)?;
    let (terms, written) = migration.under_way(snapshot)?;
    let batched = written.batched.filter(|batched| batched.current_batch > 0)?;
    if batched.next_batch_time.is_some() || is_relabelling(snapshot, migration.ledger) {
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
        let refused = migration.ledger.standing(key) == Some(&Standing::Refused);
        let waits = snapshot.last_failure(&subject).filter(|_| refused);
        if let Some(failure) = waits.filter(|failure| failure.retry_at > snapshot.now) {
            work.look_again(Again::At(failure.retry_at));
        }
        return Some(work.plan());
    }
    let action = Move {
        object: work.object().clone(),
        relabel: needs_label(snapshot, key, workload, migration.target),
        mark: Mark {
            revision: migration.target.to_owned(),
            batch: batched.current_batch,
            started: Time::of(snapshot.now),
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
    let (now, ledger) = (snapshot.now, migration.ledger);
    let taken = ledger.members(batch).count().max(ledger.disturbed(now));
    let room = terms.size.saturating_sub(taken);
    match ledger.standing(key) {
        Some(Standing::Pending { priority, .. }) => {
            let open = batch_priority(snapshot, ledger, batch);
            let first = ledger.candidates(now).next().map(|(priority, _)| priority);
            let fits = open.or(first) == Some(*priority);
            fits && ledger.candidates(now).take(room).any(|(_, next)| next == key)
        }
        // It is tried again now and then: whoever refused it may have changed their mind.
        Some(Standing::Refused) => {
            let due = snapshot
                .last_failure(subject)
                .is_some_and(|failure| failure.retry_at <= now);
            due && room > 0 && !ledger.is_busy(key, now)
        }
        _ => false,
    }
}

/// The priority of those a batch consists of so far: others wait for the next.
pub(super) fn batch_priority(snapshot: &Snapshot, ledger: &Ledger, batch: i32) -> Option<i32> {
    let member = ledger.members(batch).find_map(|key| snapshot.workload(key));
    member.map(|workload| workload.priority)
}

/// Whether a namespace is still to be relabelled: until then nothing restarts. One whose relabelling is refused is not waited for.
pub(super) fn is_relabelling(snapshot: &Snapshot, ledger: &Ledger) -> bool {
    let mut namespaces = ledger.namespaces();
    namespaces.any(|name| !snapshot.is_refused(&Subject::Namespace(name.to_owned())))
}

/// Whether the template names an old revision itself. A template on a tag, or in a namespace that decides, is left as it is.
fn needs_label(snapshot: &Snapshot, key: &WorkloadKey, workload: &Workload, target: &str) -> bool {
    if snapshot.references().chosen_in(key.namespace()).is_some() {
        return false;
    }
    let resolved = workload.asks().and_then(|name| snapshot.resolve(name));
    resolved.is_some_and(|(revision, tag)| tag.is_none() && revision.name() != target)
}

/// The plan of a namespace.
pub(super) fn plan_namespace(snapshot: &Snapshot, name: &str) -> Option<Plan> {
    let namespace = snapshot.namespace(name)?;
    let migration = Migration::of(snapshot, snapshot.relabeller_of(name)?)?;
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
