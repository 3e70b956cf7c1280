//! How a migration goes on: takes an Istio and where its workloads stand, gives its progress: the next batch, counts, failures, the end.
//!
//! A batch is announced in the status before anything of it moves, and workloads move only in a batch that was announced. So the status
//! and the marks on the workloads together tell everything, also to an operator that has only just started.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    BatchedMigrationStatus, Condition, ConditionStatus, ConditionType, GoDuration, Istio, MigrationFailure,
    MigrationState, Reason, Time, UpdateStrategyType, WorkloadMigrationStatus,
};

use super::moving::{batch_priority, is_relabelling};
use super::terms::{Migration, Terms};
use super::work::Work;
use crate::Snapshot;
use crate::migration::{MigrationIndex, WorkloadCounts};
use crate::plan::Requeue;
use crate::references::PodsByRevision;
use crate::snapshot::{Source, SourceState, wanted_migration};
use crate::workload::{WorkloadKey, WorkloadKind};

/// How many failures a status holds.
const FAILURES: usize = 10;
/// How many names a message lists.
const NAMES: usize = 5;

/// What the status of an Istio says about its workloads.
pub(super) struct Progress {
    pub(super) status: WorkloadMigrationStatus,
    pub(super) condition: Condition,
}

/// The progress of an Istio's migration, and when to look again; nothing where none is asked for.
pub(super) fn follow(snapshot: &Snapshot, istio: &Istio, work: &mut Work<'_>) -> Option<Progress> {
    wanted_migration(istio)?;
    if istio.spec.strategy() != UpdateStrategyType::RevisionBased {
        let message = "workloads move between revisions, which only updateStrategy RevisionBased makes";
        return Some(idle(String::new(), Reason::NotRevisionBased, message));
    }
    let migration = Migration::of(snapshot, istio)?;
    // What was said stays until workloads can be read: an operator that has just started knows none of them.
    match snapshot.source(Source::Workloads) {
        SourceState::Pending => return None,
        SourceState::Failing(error) => return Some(blind(&migration, error)),
        SourceState::Ready => {}
    }
    let progress = progress(snapshot, &migration, work);
    tell(&migration, &progress.status, work);
    Some(progress)
}

fn blind(migration: &Migration<'_>, error: &str) -> Progress {
    let status = migration.istio.status.workload_migration.clone();
    let message = format!("workloads cannot be read: {error}");
    Progress {
        status: status.unwrap_or_default(),
        condition: Condition::new(
            ConditionType::WorkloadsMigrated,
            ConditionStatus::Unknown,
            Reason::WorkloadsUnreadable,
            message,
        ),
    }
}

fn idle(target_revision: String, reason: Reason, message: &str) -> Progress {
    Progress {
        status: WorkloadMigrationStatus {
            target_revision,
            ..WorkloadMigrationStatus::default()
        },
        condition: Condition::new(
            ConditionType::WorkloadsMigrated,
            ConditionStatus::False,
            reason,
            message,
        ),
    }
}

fn progress(snapshot: &Snapshot, migration: &Migration<'_>, work: &mut Work<'_>) -> Progress {
    let (now, written) = (snapshot.now, migration.written());
    let tally = migration.index.counts(now);
    // A namespace without workloads keeps an old revision as well.
    let is_left = tally.pending > 0 || is_relabelling(snapshot, migration.index);
    let state = state(migration, (&tally, is_left), written);
    if let Some(deadline) = migration.index.next_deadline(now) {
        work.look_again(Requeue::At(deadline));
    }
    let mut status = counted(migration, &tally, written);
    status.state = state;
    status.failures = failures(snapshot, migration, written);
    if state != MigrationState::Idle {
        let fresh = written.filter(|written| written.state != MigrationState::Idle);
        let resumed = fresh.filter(|written| written.state == state || state != MigrationState::InProgress);
        let began = resumed.and_then(|written| written.start_time);
        status.start_time = Some(began.unwrap_or_else(|| Time::from_timestamp(now)));
        status.batched = Some(batches(snapshot, migration, state, work));
    }
    if matches!(state, MigrationState::Completed | MigrationState::Failed) {
        let same = written.filter(|written| written.state == state);
        let ended = same.and_then(|written| written.completion_time);
        status.completion_time = Some(ended.unwrap_or_else(|| Time::from_timestamp(now)));
    }
    let condition = condition(snapshot, migration, &status);
    Progress { status, condition }
}

/// Counts never go back within one migration: a workload that was moved and then deleted was moved.
fn counted(
    migration: &Migration<'_>,
    tally: &WorkloadCounts,
    written: Option<&WorkloadMigrationStatus>,
) -> WorkloadMigrationStatus {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let migrated = written.map_or(0, |written| written.migrated_workloads);
    let migrated = migrated.max(count(tally.migrated));
    let others = tally.pending + tally.moving + tally.failed + tally.skipped;
    WorkloadMigrationStatus {
        target_revision: migration.target.to_owned(),
        total_workloads: count(others).saturating_add(migrated),
        migrated_workloads: migrated,
        failed_workloads: count(tally.failed),
        skipped_workloads: count(tally.skipped),
        ..WorkloadMigrationStatus::default()
    }
}

fn state(
    migration: &Migration<'_>,
    (tally, is_left): (&WorkloadCounts, bool),
    written: Option<&WorkloadMigrationStatus>,
) -> MigrationState {
    let over = if tally.failed > 0 {
        MigrationState::Failed
    } else {
        MigrationState::Completed
    };
    if tally.moving > 0 {
        return MigrationState::InProgress;
    }
    match &migration.terms {
        Ok(_) if !is_left => over,
        Ok(terms) if terms.fail_fast && tally.failed > 0 => over,
        Ok(_) => MigrationState::InProgress,
        // What has begun does not become undone by being held back, and what was done stays done.
        Err(_) => match written.map(|written| written.state) {
            Some(MigrationState::InProgress) if is_left => MigrationState::InProgress,
            Some(MigrationState::Completed | MigrationState::Failed) if !is_left => over,
            _ => MigrationState::Idle,
        },
    }
}

/// Which batch is under way, and how many there are.
fn batches(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    state: MigrationState,
    work: &mut Work<'_>,
) -> BatchedMigrationStatus {
    let written = migration.written();
    let old = written.and_then(|written| written.batched).unwrap_or_default();
    let mut new = BatchedMigrationStatus {
        current_batch: old.current_batch.max(migration.index.last_batch()),
        ..old
    };
    let in_progress = state == MigrationState::InProgress;
    let was = written.is_some_and(|written| written.state == MigrationState::InProgress);
    match &migration.terms {
        Ok(terms) if in_progress => {
            let open = was && new.current_batch > 0 && new.next_batch_time.is_none();
            turn(snapshot, migration, (terms, open), &mut new);
        }
        Ok(_) => new.next_batch_time = None,
        Err(_) => {}
    }
    // Once the moment has come, whatever else holds the batch back ends by an event.
    if let Some(next) = new.next_batch_time.filter(|next| next.timestamp() > snapshot.now) {
        work.look_again(Requeue::At(next.timestamp()));
    }
    new.total_batches = total(snapshot, migration, &new, in_progress);
    new
}

/// Ends a batch that is over, and begins the next one when it is due.
fn turn(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    (terms, open): (&Terms, bool),
    batched: &mut BatchedMigrationStatus,
) {
    let (now, index) = (snapshot.now, migration.index);
    let next = index.candidates(now).next().map(|(priority, _)| priority);
    let quiet = index.disturbed(now) == 0;
    let mut due = batched.next_batch_time.is_none_or(|next| next.timestamp() <= now);
    if open {
        let full = index.members(batched.current_batch).count() >= terms.size;
        let joins =
            next.is_some_and(|next| batch_priority(snapshot, index, batched.current_batch) == Some(next));
        let begins = index.members(batched.current_batch).next().is_none() && next.is_some();
        if !quiet || (!full && (joins || begins)) {
            return;
        }
        due = terms.delay.is_zero();
        batched.next_batch_time = Some(rounded_up(now, terms.delay));
    }
    if quiet && due && next.is_some() && !is_relabelling(snapshot, index) {
        batched.current_batch += 1;
        batched.next_batch_time = None;
    }
}

/// The moment `delay` later, never a fraction of a second early.
fn rounded_up(now: Timestamp, delay: SignedDuration) -> Time {
    let almost = SignedDuration::from_nanos(999_999_999);
    let moment = now
        .checked_add(delay)
        .and_then(|moment| moment.checked_add(almost));
    Time::from_timestamp(moment.unwrap_or(Timestamp::MAX))
}

fn total(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    batched: &BatchedMigrationStatus,
    in_progress: bool,
) -> i32 {
    let index = migration.index;
    let Ok(terms) = migration.terms.as_ref() else {
        return batched.total_batches.max(batched.current_batch);
    };
    if !in_progress {
        return batched.current_batch;
    }
    let open = batched.current_batch > 0 && batched.next_batch_time.is_none();
    let room = open.then(|| {
        let next = index
            .candidates(snapshot.now)
            .next()
            .map(|(priority, _)| priority);
        let priority = batch_priority(snapshot, index, batched.current_batch).or(next);
        let members = index.members(batched.current_batch).count();
        Some((priority?, terms.size.saturating_sub(members)))
    });
    let left = index.batches_left(terms.size, room.flatten());
    batched
        .current_batch
        .saturating_add(i32::try_from(left).unwrap_or(i32::MAX))
}

/// The latest failures, oldest first. What was once said of one stays as it was said, as long as nothing later needs its place.
fn failures(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    written: Option<&WorkloadMigrationStatus>,
) -> Vec<MigrationFailure> {
    let known = written.map_or(&[][..], |written| &written.failures);
    let said = |key: &WorkloadKey| known.iter().find(|failure| is_about(failure, key));
    let late = migration.index.late(snapshot.now).take(FAILURES);
    let late = late.map(|(deadline, key)| {
        let same = said(key).filter(|failure| failure.timestamp == Time::from_timestamp(deadline));
        same.cloned().unwrap_or_else(|| {
            failure(
                key,
                Time::from_timestamp(deadline),
                why_late(snapshot, migration, key),
            )
        })
    });
    let refused = known
        .iter()
        .filter(|failure| is_rejected(migration.index, failure));
    let mut all: Vec<MigrationFailure> = late.chain(refused.cloned()).collect();
    // Of those nobody spoke of yet only as many as there is room for: if each took the place of another, they would take turns for ever.
    let room = FAILURES.saturating_sub(all.len());
    let unsaid = migration.index.rejected().filter(|key| said(key).is_none());
    let unsaid = unsaid.map(|key| {
        failure(
            key,
            Time::from_timestamp(snapshot.now),
            why_refused(snapshot, key),
        )
    });
    all.extend(unsaid.take(room));
    all.sort_by(|a, b| (a.timestamp, &a.namespace, &a.name).cmp(&(b.timestamp, &b.namespace, &b.name)));
    let surplus = all.len().saturating_sub(FAILURES);
    all.split_off(surplus)
}

fn is_rejected(index: &MigrationIndex, failure: &MigrationFailure) -> bool {
    WorkloadKind::from_name(&failure.kind)
        .is_some_and(|kind| index.is_rejected(&WorkloadKey::new(&*failure.namespace, kind, &*failure.name)))
}

fn is_about(failure: &MigrationFailure, key: &WorkloadKey) -> bool {
    failure.name == key.name() && failure.namespace == key.namespace() && failure.kind == key.kind().name()
}

fn failure(key: &WorkloadKey, timestamp: Time, reason: String) -> MigrationFailure {
    MigrationFailure {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        kind: key.kind().name().to_owned(),
        reason,
        timestamp,
    }
}

/// Why a workload did not come up in time, by what is there now.
fn why_late(snapshot: &Snapshot, migration: &Migration<'_>, key: &WorkloadKey) -> String {
    let Some(workload) = snapshot.workload(key) else {
        return String::new();
    };
    let (rollout, mark) = (workload.rollout, workload.record.as_ref());
    let empty = PodsByRevision::new();
    let crew = snapshot.references().pods_by_revision(key).unwrap_or(&empty);
    let injected = crew.get(migration.target).copied().unwrap_or_default();
    let detail = if rollout.was_complete {
        format!(
            "{injected}/{} pods were injected by {}",
            rollout.desired, migration.target
        )
    } else {
        format!(
            "{}/{} replicas updated, {} ready",
            rollout.updated, rollout.desired, rollout.ready
        )
    };
    let deadline = migration.index.late(snapshot.now).find(|(_, late)| *late == key);
    let span = mark
        .zip(deadline)
        .map(|(mark, (deadline, _))| deadline.duration_since(mark.started.timestamp()));
    let span = GoDuration::from(span.unwrap_or_default());
    format!("Readiness timeout exceeded after {span}: {detail}")
}

fn why_refused(snapshot: &Snapshot, key: &WorkloadKey) -> String {
    let own = crate::Subject::Workload(key.clone());
    let space = crate::Subject::Namespace(key.namespace().to_owned());
    let failure = snapshot
        .last_failure(&own)
        .or_else(|| snapshot.last_failure(&space));
    failure.map_or_else(String::new, |failure| format!("refused: {}", failure.message))
}

fn condition(snapshot: &Snapshot, migration: &Migration<'_>, status: &WorkloadMigrationStatus) -> Condition {
    let (moved, total) = (status.migrated_workloads, status.total_workloads);
    let target = migration.target;
    let (holds, reason, mut message) = match (&migration.terms, status.state) {
        (_, MigrationState::Completed) => {
            let message = format!(
                "{moved} of {total} workloads were moved to {target}, {} skipped",
                status.skipped_workloads
            );
            (ConditionStatus::True, Reason::AllWorkloadsMigrated, message)
        }
        (_, MigrationState::Failed) => {
            let failed = status.failed_workloads;
            let message = format!(
                "{failed} of {total} workloads did not come up on {target}; see workloadMigration.failures"
            );
            (ConditionStatus::False, Reason::WorkloadsFailed, message)
        }
        (Err(hold), _) => (ConditionStatus::False, hold.reason.clone(), hold.message.clone()),
        (Ok(_), _) => {
            let message = format!("{moved} of {total} workloads were moved to {target}");
            (ConditionStatus::False, Reason::MigrationInProgress, message)
        }
    };
    if status.state == MigrationState::Completed || status.state == MigrationState::Failed {
        message.push_str(&left_behind(snapshot, migration));
    }
    Condition::new(ConditionType::WorkloadsMigrated, holds, reason, message)
}

/// Pods on old revisions that nobody can restart: people must know what keeps a revision.
fn left_behind(snapshot: &Snapshot, migration: &Migration<'_>) -> String {
    let owned = snapshot.revisions().owned_by(&migration.istio.metadata.uid);
    let old = owned.filter(|revision| revision.name() != migration.target);
    let pods = old.flat_map(|revision| snapshot.references().standalone_pods(revision.name()));
    let names: Vec<String> = pods
        .take(NAMES + 1)
        .map(|(space, pod)| format!("Pod/{space}/{pod}"))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; no workload to restart behind {}", listed(&names))
}

/// At most so many names.
fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    let rest = if names.len() > NAMES { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}

/// Tells people what changed: begin, batch, failures, end.
fn tell(migration: &Migration<'_>, new: &WorkloadMigrationStatus, work: &mut Work<'_>) {
    let none = WorkloadMigrationStatus::default();
    let old = migration.written().unwrap_or(&none);
    let batch = |status: &WorkloadMigrationStatus| status.batched.unwrap_or_default();
    let target = migration.target;
    if new.state == MigrationState::InProgress && old.state != MigrationState::InProgress {
        let to_move = new.total_workloads - new.migrated_workloads - new.skipped_workloads;
        let message = if to_move > 0 {
            let batches = batch(new).total_batches;
            format!("moving {to_move} workloads to {target} in {batches} batches")
        } else {
            format!("relabelling namespaces for {target}")
        };
        work.tell_after(false, Reason::MigrationStarted, message);
    }
    if batch(new).current_batch > batch(old).current_batch && new.state == MigrationState::InProgress {
        let message = format!(
            "batch {} of {}",
            batch(new).current_batch,
            batch(new).total_batches
        );
        work.tell_after(false, Reason::BatchStarted, message);
    }
    let known: BTreeMap<_, _> = old
        .failures
        .iter()
        .map(|failure| (name(failure), failure.timestamp))
        .collect();
    let news = new
        .failures
        .iter()
        .filter(|failure| known.get(&name(failure)) != Some(&failure.timestamp));
    let mut told = 0;
    for failure in news {
        let message = format!("{}: {}", name(failure), failure.reason);
        work.tell_after(true, Reason::WorkloadFailed, message);
        told += 1;
    }
    let untold = new.failed_workloads - old.failed_workloads - told;
    if untold > 0 {
        let message = format!("{untold} more workloads failed; the status holds the latest {FAILURES}");
        work.tell_after(true, Reason::WorkloadFailed, message);
    }
    let ended = matches!(new.state, MigrationState::Completed | MigrationState::Failed);
    let something = new.total_workloads > 0;
    if ended && something && (old.state != new.state) {
        let message = format!(
            "{} of {} workloads were moved to {target}, {} failed, {} skipped",
            new.migrated_workloads, new.total_workloads, new.failed_workloads, new.skipped_workloads
        );
        work.tell_after(
            new.state == MigrationState::Failed,
            Reason::MigrationEnded,
            message,
        );
    }
}

fn name(failure: &MigrationFailure) -> String {
    format!("{}/{}/{}", failure.kind, failure.namespace, failure.name)
}
