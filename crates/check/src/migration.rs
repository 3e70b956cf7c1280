//! BatchSize, NoRestartDuringRollout, NoRepeatedMove, CompleteCounts, MonotonicProgress, PauseStartsNothing and FailurePolicy: takes plans that move workloads or report on it, and counts for itself what they would disturb.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    FailurePolicy, Istio, MigrationState, OwnerReference, WorkloadMigration, WorkloadMigrationStatus,
};
use mainstay_mesh::plan::{Move, NewStatus};
use mainstay_mesh::workload::{Workload, WorkloadKey};
use mainstay_mesh::{Action, Plan, Snapshot, Subject};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    for action in plan.actions() {
        match action {
            Action::MoveWorkload(step) => moves(snapshot, step, found),
            Action::RelabelNamespace(relabel) => {
                let mover = owner(snapshot, &relabel.revision);
                unpaused(mover, &plan.subject, found);
            }
            Action::WriteStatus {
                status: NewStatus::Istio(status),
                ..
            } => {
                let istio = snapshot.istios().get(plan.subject.name());
                if let Some((istio, new)) = istio.zip(status.workload_migration.as_ref()) {
                    counts(istio, new, found);
                }
            }
            _ => {}
        }
    }
}

fn moves(snapshot: &Snapshot, step: &Move, found: &mut Findings<'_>) {
    let mover = owner(snapshot, &step.record.revision);
    let Some((istio, wanted)) = mover.and_then(|istio| Some((istio, settings(istio)?))) else {
        found.expect(Invariant::NoRepeatedMove, false, || {
            format!("{} is moved although nobody asks for it", step.object.subject)
        });
        return;
    };
    let Subject::Workload(key) = &step.object.subject else {
        return;
    };
    unpaused(mover, &step.object.subject, found);
    let size = wanted
        .batched
        .as_ref()
        .and_then(|batched| batched.batch_size)
        .unwrap_or(1);
    let others = disturbed(snapshot, istio, key);
    found.expect(
        Invariant::BatchSize,
        i32::try_from(others).is_ok_and(|others| others < size),
        || format!("{others} others are disturbed, and {size} may be at a time"),
    );
    let busy = snapshot
        .workload(key)
        .is_some_and(|workload| is_disturbed(snapshot, istio, workload));
    found.expect(Invariant::NoRestartDuringRollout, !busy, || {
        format!("{key} is still coming up after its last restart")
    });
    let arrived = snapshot.workload(key).is_some_and(|workload| {
        workload.rollout.complete
            && pods_elsewhere(snapshot, key, &step.record.revision) == 0
            && has_pods(snapshot, key)
    });
    found.expect(Invariant::NoRepeatedMove, !arrived, || {
        format!("{key} is there already")
    });
    let failed = wanted.failure_policy == Some(FailurePolicy::FailFast)
        && snapshot
            .workloads()
            .any(|(other, workload)| is_late(snapshot, istio, (other, workload), &step.record.revision));
    found.expect(Invariant::FailurePolicy, !failed, || {
        format!("{key} is moved after a failure")
    });
}

fn unpaused(mover: Option<&Istio>, subject: &Subject, found: &mut Findings<'_>) {
    let paused = mover.and_then(settings).is_some_and(|wanted| wanted.paused);
    found.expect(Invariant::PauseStartsNothing, !paused, || {
        format!("{subject} is touched while all is paused")
    });
}

fn counts(istio: &Istio, new: &WorkloadMigrationStatus, found: &mut Findings<'_>) {
    let parts = [
        new.migrated_workloads,
        new.failed_workloads,
        new.skipped_workloads,
    ];
    let sum: i32 = parts.iter().sum();
    let fits = parts.iter().all(|part| *part >= 0) && sum <= new.total_workloads;
    let over =
        new.state != MigrationState::Completed || (sum == new.total_workloads && new.failed_workloads == 0);
    found.expect(Invariant::CompleteCounts, fits && over, || {
        format!("{:?}: {parts:?} of {}", new.state, new.total_workloads)
    });
    let old = istio.status.workload_migration.as_ref();
    let before = old.filter(|old| old.target_revision == new.target_revision);
    let lost = before.is_some_and(|old| new.migrated_workloads < old.migrated_workloads);
    found.expect(Invariant::MonotonicProgress, !lost, || {
        "fewer workloads were moved than before".into()
    });
    let fails_fast =
        settings(istio).is_some_and(|wanted| wanted.failure_policy == Some(FailurePolicy::FailFast));
    let gave_up = new.state == MigrationState::Failed && sum < new.total_workloads;
    found.expect(Invariant::FailurePolicy, fails_fast || !gave_up, || {
        "a failure stops others, which nobody asked for".into()
    });
}

fn settings(istio: &Istio) -> Option<&WorkloadMigration> {
    istio.spec.update_strategy.as_ref()?.workload_migration.as_ref()
}

/// The Istio that owns a revision.
fn owner<'a>(snapshot: &'a Snapshot, revision: &str) -> Option<&'a Istio> {
    let owner: &OwnerReference = snapshot.revisions().get(revision)?.metadata.controller()?;
    snapshot
        .istios()
        .get(&owner.name)
        .filter(|istio| istio.metadata.uid == owner.uid)
}

/// Workloads but this one that an Istio restarted and that have not come up again, and still have time to.
fn disturbed(snapshot: &Snapshot, istio: &Istio, but: &WorkloadKey) -> usize {
    let others = snapshot
        .workloads()
        .filter(|(key, workload)| *key != but && is_disturbed(snapshot, istio, workload));
    others.count()
}

/// A workload that an Istio restarted and that has not come up again, and still has time to.
fn is_disturbed(snapshot: &Snapshot, istio: &Istio, workload: &Workload) -> bool {
    let Some(mark) = &workload.record else {
        return false;
    };
    let ours = owner(snapshot, &mark.revision).is_some_and(|owner| owner.metadata.uid == istio.metadata.uid);
    ours && !workload.rollout.complete
        && !workload.rollout.was_complete
        && deadline(istio, workload) > snapshot.now
}

/// A workload that was sent to a revision and did not come up in time.
fn is_late(
    snapshot: &Snapshot,
    istio: &Istio,
    (key, workload): (&WorkloadKey, &Workload),
    revision: &str,
) -> bool {
    let sent = workload
        .record
        .as_ref()
        .is_some_and(|mark| mark.revision == revision);
    sent && leads_to(snapshot, key, workload) == Some(revision)
        && !is_left_alone(snapshot, istio, (key, workload))
        && !workload.rollout.was_complete
        && pods_elsewhere(snapshot, key, revision) > 0
        && deadline(istio, workload) <= snapshot.now
}

/// Where the labels of a workload lead.
fn leads_to<'a>(snapshot: &'a Snapshot, key: &WorkloadKey, workload: &'a Workload) -> Option<&'a str> {
    let chosen = snapshot.references().selected_by_namespace(key.namespace());
    let name = chosen
        .or(workload.requested_revision())
        .filter(|_| !workload.is_opted_out())?;
    let revision = snapshot.revisions().get(name).map(mainstay_api::Resource::name);
    revision.or_else(|| Some(snapshot.tags().get(name)?.status.istio_revision.as_str()))
}

/// What nobody may move cannot fail either.
fn is_left_alone(snapshot: &Snapshot, istio: &Istio, (key, workload): (&WorkloadKey, &Workload)) -> bool {
    let space = snapshot
        .namespace(key.namespace())
        .is_some_and(|space| space.skip_migration);
    let kinds = settings(istio)
        .map(|wanted| wanted.kinds.as_slice())
        .unwrap_or_default();
    let selected = kinds.iter().any(|kind| kind == key.kind().name())
        || (kinds.is_empty() && key.kind() == mainstay_mesh::workload::WorkloadKind::Deployment);
    workload.deleting || workload.skip || workload.paused || workload.on_delete || space || !selected
}

fn deadline(istio: &Istio, workload: &Workload) -> Timestamp {
    let batched = settings(istio).and_then(|wanted| wanted.batched.as_ref());
    let span = batched.and_then(|batched| batched.readiness_timeout.as_ref()?.span().ok());
    let span = workload.timeout.or(span).unwrap_or(SignedDuration::from_mins(5));
    let started = workload.record.as_ref().map(|mark| mark.started);
    started.map_or(Timestamp::MIN, |started| started.after(span))
}

fn pods_elsewhere(snapshot: &Snapshot, key: &WorkloadKey, revision: &str) -> usize {
    let crew = snapshot.references().pods_by_revision(key);
    crew.into_iter()
        .flatten()
        .filter(|(name, _)| ***name != *revision)
        .map(|(_, count)| count)
        .sum()
}

fn has_pods(snapshot: &Snapshot, key: &WorkloadKey) -> bool {
    snapshot
        .references()
        .pods_by_revision(key)
        .is_some_and(|crew| !crew.is_empty())
}
