//! Checks the invariants about workload migration. Derives the state of workloads independently of the
//! planner.

use jiff::Timestamp;
use mainstay_api::{Istio, MigrationState, OwnerReference, WorkloadMigrationStatus};
use mainstay_mesh::migration::MigrationSettings;
use mainstay_mesh::plan::{Move, NewStatus};
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::workload::{Workload, WorkloadKey};
use mainstay_mesh::{Action, Plan, Snapshot, Subject};

use crate::{Findings, Invariant};

/// Sources that determine the revision of each workload's pods.
const SOURCES: [Source; 3] = [Source::Namespaces, Source::Pods, Source::Workloads];

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    for action in plan.actions() {
        match action {
            Action::MoveWorkload(step) => check_move(snapshot, step, found),
            Action::RelabelNamespace(relabel) => {
                let migration = Migration::to_revision(snapshot, &relabel.revision);
                check_pause(migration.as_ref(), &plan.subject, found);
                check_sources(snapshot, &plan.subject, found);
            }
            Action::WriteStatus {
                status: NewStatus::Istio(status),
                ..
            } => {
                let istio = snapshot.istios().get(plan.subject.name());
                if let Some((istio, new)) = istio.zip(status.workload_migration.as_ref()) {
                    check_counts(istio, new, found);
                    check_end(snapshot, istio, new, found);
                }
            }
            _ => {}
        }
    }
}

/// The migration of one Istio.
struct Migration<'a> {
    snapshot: &'a Snapshot,
    istio: &'a Istio,
    settings: MigrationSettings,
}

fn check_move(snapshot: &Snapshot, step: &Move, found: &mut Findings<'_>) {
    let target = &step.record.revision;
    let Some(migration) = Migration::to_revision(snapshot, target) else {
        found.expect(Invariant::NoRepeatedMove, false, || {
            format!(
                "{} is restarted although no Istio requests it",
                step.object.subject
            )
        });
        return;
    };
    let Subject::Workload(key) = &step.object.subject else {
        return;
    };
    check_pause(Some(&migration), &step.object.subject, found);
    check_sources(snapshot, &step.object.subject, found);
    let (size, others) = (migration.settings.batch_size, migration.restarting_except(key));
    found.expect(Invariant::BatchSize, others < size, || {
        format!("{others} other workloads are restarting, the batch size is {size}")
    });
    let workload = snapshot.workload(key);
    let is_restarting = workload.is_some_and(|workload| migration.is_restarting(workload));
    found.expect(Invariant::NoRestartDuringRollout, !is_restarting, || {
        format!("the rollout of {key} after its last restart is not complete")
    });
    let is_migrated = workload.is_some_and(|workload| {
        workload.rollout.complete
            && pods_on_other_revisions(snapshot, key, target) == 0
            && has_pods(snapshot, key)
    });
    found.expect(Invariant::NoRepeatedMove, !is_migrated, || {
        format!("{key} is on the target revision already")
    });
    let mut workloads = snapshot.workloads();
    let has_failed = migration.settings.fail_fast
        && workloads.any(|(other, workload)| migration.has_failed(other, workload, target));
    found.expect(Invariant::FailurePolicy, !has_failed, || {
        format!("{key} is restarted after a failure")
    });
}

fn check_pause(migration: Option<&Migration<'_>>, subject: &Subject, found: &mut Findings<'_>) {
    let is_paused = migration.is_some_and(|migration| migration.settings.paused);
    found.expect(Invariant::PauseStartsNothing, !is_paused, || {
        format!("{subject} is changed while the migration is paused")
    });
}

fn check_sources(snapshot: &Snapshot, subject: &Subject, found: &mut Findings<'_>) {
    for source in unreadable_sources(snapshot) {
        found.expect(Invariant::ReadableSources, false, || {
            format!("{subject} is changed although {} cannot be read", source.name())
        });
    }
}

fn check_end(snapshot: &Snapshot, istio: &Istio, new: &WorkloadMigrationStatus, found: &mut Findings<'_>) {
    let old = istio.status.workload_migration.as_ref();
    let is_new = old.is_none_or(|old| old.state != new.state || old.target_revision != new.target_revision);
    let ends = matches!(new.state, MigrationState::Completed | MigrationState::Failed);
    for source in unreadable_sources(snapshot) {
        found.expect(Invariant::ReadableSources, !(is_new && ends), || {
            format!(
                "the migration ends as {:?} although {} cannot be read",
                new.state,
                source.name()
            )
        });
    }
}

fn unreadable_sources(snapshot: &Snapshot) -> impl Iterator<Item = Source> {
    SOURCES
        .into_iter()
        .filter(|source| snapshot.readable(*source).is_err())
}

fn check_counts(istio: &Istio, new: &WorkloadMigrationStatus, found: &mut Findings<'_>) {
    let parts = [
        new.migrated_workloads,
        new.failed_workloads,
        new.skipped_workloads,
    ];
    let sum: i32 = parts.iter().sum();
    let fits = parts.iter().all(|part| *part >= 0) && sum <= new.total_workloads;
    let is_complete =
        new.state != MigrationState::Completed || (sum == new.total_workloads && new.failed_workloads == 0);
    found.expect(Invariant::CompleteCounts, fits && is_complete, || {
        format!(
            "state {:?} has the counts {parts:?} of {} workloads",
            new.state, new.total_workloads
        )
    });
    let old = istio.status.workload_migration.as_ref();
    let before = old.filter(|old| old.target_revision == new.target_revision);
    let decreases = before.is_some_and(|old| new.migrated_workloads < old.migrated_workloads);
    found.expect(Invariant::MonotonicProgress, !decreases, || {
        "the number of migrated workloads decreases".into()
    });
    let fails_fast = MigrationSettings::from_istio(istio).is_some_and(|settings| settings.fail_fast);
    let is_stopped = new.state == MigrationState::Failed && sum < new.total_workloads;
    found.expect(Invariant::FailurePolicy, fails_fast || !is_stopped, || {
        "a failure stops the migration although the policy is ContinueOnError".into()
    });
}

impl<'a> Migration<'a> {
    /// Returns the migration of the Istio that owns a revision.
    fn to_revision(snapshot: &'a Snapshot, revision: &str) -> Option<Self> {
        let istio = owner(snapshot, revision)?;
        Some(Self {
            snapshot,
            istio,
            settings: MigrationSettings::from_istio(istio)?,
        })
    }

    fn restarting_except(&self, except: &WorkloadKey) -> usize {
        let others = self.snapshot.workloads().filter(|(key, _)| *key != except);
        others
            .filter(|(_, workload)| self.is_restarting(workload))
            .count()
    }

    /// Whether the Istio restarted a workload whose rollout is not complete and that is within its readiness
    /// timeout.
    fn is_restarting(&self, workload: &Workload) -> bool {
        let Some(record) = &workload.record else {
            return false;
        };
        let owner = owner(self.snapshot, &record.revision);
        owner.is_some_and(|owner| owner.metadata.uid == self.istio.metadata.uid)
            && !workload.rollout.complete
            && !workload.rollout.was_complete
            && self.deadline(workload) > self.snapshot.now
    }

    /// Whether a workload was restarted on a revision and not ready in time.
    fn has_failed(&self, key: &WorkloadKey, workload: &Workload, revision: &str) -> bool {
        let record = workload.record.as_ref();
        record.is_some_and(|record| record.revision == revision)
            && revision_of(self.snapshot, key, workload) == Some(revision)
            && !self.is_skipped(key, workload)
            && !workload.rollout.was_complete
            && pods_on_other_revisions(self.snapshot, key, revision) > 0
            && self.deadline(workload) <= self.snapshot.now
    }

    /// Whether a workload is excluded from the migration. Such a workload cannot fail.
    fn is_skipped(&self, key: &WorkloadKey, workload: &Workload) -> bool {
        let namespace = self.snapshot.namespace(key.namespace());
        let is_kind_selected = self.settings.kinds.contains(&key.kind());
        workload.deleting
            || workload.skip
            || workload.paused
            || workload.on_delete
            || workload.partitioned
            || workload.host_network
            || workload.invalid_annotation
            || namespace.is_some_and(|namespace| namespace.invalid_annotation || namespace.injection_disabled)
            || namespace.is_some_and(|namespace| namespace.skip_migration)
            || !is_kind_selected
    }

    fn deadline(&self, workload: &Workload) -> Timestamp {
        let timeout = workload.timeout.unwrap_or(self.settings.readiness_timeout);
        let started = workload.record.as_ref().map(|record| record.started);
        started.map_or(Timestamp::MIN, |started| started.after(timeout))
    }
}

/// Returns the Istio that owns a revision.
fn owner<'a>(snapshot: &'a Snapshot, revision: &str) -> Option<&'a Istio> {
    let owner: &OwnerReference = snapshot.revisions().get(revision)?.metadata.controller()?;
    snapshot
        .istios()
        .get(&owner.name)
        .filter(|istio| istio.metadata.uid == owner.uid)
}

/// Returns the revision that the labels of a workload refer to.
fn revision_of<'a>(snapshot: &'a Snapshot, key: &WorkloadKey, workload: &'a Workload) -> Option<&'a str> {
    let by_namespace = snapshot.references().selected_by_namespace(key.namespace());
    let name = by_namespace
        .or(workload.requested_revision())
        .filter(|_| !workload.is_opted_out())?;
    let revision = snapshot.revisions().get(name).map(mainstay_api::Resource::name);
    revision.or_else(|| Some(snapshot.tags().get(name)?.status.istio_revision.as_str()))
}

fn pods_on_other_revisions(snapshot: &Snapshot, key: &WorkloadKey, revision: &str) -> usize {
    let pods = snapshot.references().pods_by_revision(key);
    pods.into_iter()
        .flatten()
        .filter(|(name, _)| ***name != *revision)
        .map(|(_, count)| count)
        .sum()
}

fn has_pods(snapshot: &Snapshot, key: &WorkloadKey) -> bool {
    let pods = snapshot.references().pods_by_revision(key);
    pods.is_some_and(|pods| !pods.is_empty())
}
