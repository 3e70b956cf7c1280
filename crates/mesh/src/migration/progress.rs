//! Computes the migration status of an Istio: counts, batches, failures, condition and events.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    BatchedMigrationStatus, Condition, ConditionStatus, ConditionType, GoDuration, Istio, MigrationFailure,
    MigrationState, Reason, Time, UpdateStrategyType, WorkloadMigrationStatus,
};

use super::hold::{Migration, unreadable_source};
use super::index::OpenPlaces;
use super::moves::{batch_priority, is_relabeling};
use super::{MigrationIndex, WorkloadCounts, batch_capacity, open_batch, requests_migration};
use crate::plan::Requeue;
use crate::planner::PlanBuilder;
use crate::references::PodsByRevision;
use crate::snapshot::{Source, SourceState};
use crate::workload::{WorkloadKey, WorkloadKind};
use crate::{Snapshot, Subject};

/// Maximum number of failures in a status.
const MAX_FAILURES: usize = 10;
/// Maximum number of names in a message.
const MAX_NAMES: usize = 5;

/// Migration status of an Istio, and its condition.
pub(crate) struct Progress {
    pub(crate) status: WorkloadMigrationStatus,
    pub(crate) condition: Condition,
}

/// Returns the progress of an Istio's migration, or `None` if the status stays unchanged. Adds events and
/// the next deadline to the plan.
pub(crate) fn plan_progress(
    snapshot: &Snapshot,
    istio: &Istio,
    plan: &mut PlanBuilder<'_>,
) -> Option<Progress> {
    if !requests_migration(istio) {
        return None;
    }
    if istio.spec.strategy() != UpdateStrategyType::RevisionBased {
        let message = "workloads are migrated between revisions, which requires updateStrategy RevisionBased";
        return Some(idle_progress(String::new(), Reason::NotRevisionBased, message));
    }
    let migration = Migration::for_istio(snapshot, istio)?;
    if let Some(source) = unreadable_source(snapshot) {
        return unreadable_progress(snapshot, &migration, source);
    }
    let progress = current_progress(snapshot, &migration, plan);
    add_events(&migration, &progress.status, plan);
    Some(progress)
}

/// Returns a condition about a source that cannot be read. Returns `None` if the source was not listed yet:
/// an operator that has just started keeps the old status.
fn unreadable_progress(snapshot: &Snapshot, migration: &Migration<'_>, source: Source) -> Option<Progress> {
    let SourceState::Failing(error) = snapshot.source(source) else {
        return None;
    };
    let status = migration.istio.status.workload_migration.clone();
    let message = format!("{} cannot be read: {error}", source.name());
    Some(Progress {
        status: status.unwrap_or_default(),
        condition: Condition::new(
            ConditionType::WorkloadsMigrated,
            ConditionStatus::Unknown,
            Reason::WorkloadsUnreadable,
            message,
        ),
    })
}

fn idle_progress(target_revision: String, reason: Reason, message: &str) -> Progress {
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

fn current_progress(snapshot: &Snapshot, migration: &Migration<'_>, plan: &mut PlanBuilder<'_>) -> Progress {
    let (now, written) = (snapshot.now, migration.written());
    let counts = migration.index.counts(now);
    // A namespace without workloads also keeps an old revision in use.
    let has_remaining_work = counts.pending > 0 || is_relabeling(snapshot, migration.index);
    let state = migration_state(migration, &counts, has_remaining_work);
    if let Some(deadline) = migration.index.next_deadline(now) {
        plan.requeue(Requeue::At(deadline));
    }
    let mut status = status_with_counts(migration, &counts);
    status.state = state;
    status.failures = latest_failures(snapshot, migration);
    // The start time stays the same until the target changes: it determines which migration records belong
    // to this migration.
    status.start_time = written.and_then(|written| written.start_time);
    if state != MigrationState::Idle {
        status.start_time.get_or_insert_with(|| Time::from_timestamp(now));
        status.batched = Some(batched_status(snapshot, migration, state, plan));
    }
    if matches!(state, MigrationState::Completed | MigrationState::Failed) {
        let same = written.filter(|written| written.state == state);
        let ended = same.and_then(|written| written.completion_time);
        status.completion_time = Some(ended.unwrap_or_else(|| Time::from_timestamp(now)));
    }
    let condition = migration_condition(snapshot, migration, &status);
    Progress { status, condition }
}

/// Returns a status with the counts. They never decrease within one migration: a workload that was migrated
/// and then deleted still counts as migrated.
fn status_with_counts(migration: &Migration<'_>, counts: &WorkloadCounts) -> WorkloadMigrationStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let migrated = migration
        .written()
        .map_or(0, |written| written.migrated_workloads);
    let migrated = migrated.max(number(counts.migrated));
    let others = counts.pending + counts.moving + counts.failed + counts.skipped;
    WorkloadMigrationStatus {
        target_revision: migration.target.to_owned(),
        total_workloads: number(others).saturating_add(migrated),
        migrated_workloads: migrated,
        failed_workloads: number(counts.failed),
        skipped_workloads: number(counts.skipped),
        ..WorkloadMigrationStatus::default()
    }
}

fn migration_state(
    migration: &Migration<'_>,
    counts: &WorkloadCounts,
    has_remaining_work: bool,
) -> MigrationState {
    let ended = if counts.failed > 0 {
        MigrationState::Failed
    } else {
        MigrationState::Completed
    };
    if counts.moving > 0 {
        return MigrationState::InProgress;
    }
    let is_stopped = migration.settings.fail_fast && counts.failed > 0;
    if migration.hold.is_none() {
        return if has_remaining_work && !is_stopped {
            MigrationState::InProgress
        } else {
            ended
        };
    }
    // A hold does not change the state of a migration that is in progress or has ended.
    match migration.written().map(|written| written.state) {
        Some(MigrationState::InProgress) if has_remaining_work => MigrationState::InProgress,
        Some(MigrationState::Completed | MigrationState::Failed) if !has_remaining_work => ended,
        Some(MigrationState::Failed) if is_stopped => MigrationState::Failed,
        _ => MigrationState::Idle,
    }
}

/// Returns the current batch, the number of batches and the time of the next one.
fn batched_status(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    state: MigrationState,
    plan: &mut PlanBuilder<'_>,
) -> BatchedMigrationStatus {
    let written = migration.written();
    let old = written.and_then(|written| written.batched).unwrap_or_default();
    let mut new = BatchedMigrationStatus {
        current_batch: old.current_batch.max(migration.index.last_batch()),
        ..old
    };
    let is_in_progress = state == MigrationState::InProgress;
    if migration.hold.is_none() && is_in_progress {
        let was_in_progress = written.is_some_and(|written| written.state == MigrationState::InProgress);
        let open = open_batch(&new).filter(|_| was_in_progress);
        advance_batch(snapshot, migration, open, &mut new);
    } else if migration.hold.is_none() {
        new.next_batch_time = None;
    }
    // No later requeue is needed: if anything else delays the next batch, an event follows when that changes.
    if let Some(next) = new.next_batch_time.filter(|next| next.timestamp() > snapshot.now) {
        plan.requeue(Requeue::At(next.timestamp()));
    }
    new.total_batches = total_batches(snapshot, migration, &new, is_in_progress);
    new
}

/// Ends the open batch when it is complete, and starts the next one when it is due.
fn advance_batch(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    open: Option<i32>,
    batched: &mut BatchedMigrationStatus,
) {
    let (now, index, settings) = (snapshot.now, migration.index, &migration.settings);
    let next = index.candidates(now).next().map(|(priority, _)| priority);
    let is_quiet = index.restarting(now) == 0;
    let mut is_due = batched.next_batch_time.is_none_or(|next| next.timestamp() <= now);
    if let Some(batch) = open {
        let is_full = batch_capacity(index, settings, batch, now).unfilled == 0;
        let joins = next.is_some_and(|next| batch_priority(snapshot, index, batch) == Some(next));
        let begins = index.batch_members(batch).next().is_none() && next.is_some();
        if !is_quiet || (!is_full && (joins || begins)) {
            return;
        }
        is_due = settings.delay_between_batches.is_zero();
        batched.next_batch_time = Some(next_batch_time(now, settings.delay_between_batches));
    }
    if is_quiet && is_due && next.is_some() && !is_relabeling(snapshot, index) {
        batched.current_batch += 1;
        batched.next_batch_time = None;
    }
}

/// Returns the time `delay` after `now`, rounded up to a full second.
fn next_batch_time(now: Timestamp, delay: SignedDuration) -> Time {
    let almost_a_second = SignedDuration::from_nanos(999_999_999);
    let time = now
        .checked_add(delay)
        .and_then(|time| time.checked_add(almost_a_second));
    Time::from_timestamp(time.unwrap_or(Timestamp::MAX))
}

fn total_batches(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    batched: &BatchedMigrationStatus,
    is_in_progress: bool,
) -> i32 {
    let (now, index, settings) = (snapshot.now, migration.index, &migration.settings);
    let open = open_batch(batched).filter(|_| is_in_progress).and_then(|batch| {
        let next = index.candidates(now).next().map(|(priority, _)| priority);
        Some(OpenPlaces {
            priority: batch_priority(snapshot, index, batch).or(next)?,
            count: batch_capacity(index, settings, batch, now).unfilled,
        })
    });
    let left = index.batches_left(settings.batch_size, open);
    batched
        .current_batch
        .saturating_add(i32::try_from(left).unwrap_or(i32::MAX))
}

/// Returns the latest failures, oldest first. The text of a failure does not change after it was first
/// reported.
fn latest_failures(snapshot: &Snapshot, migration: &Migration<'_>) -> Vec<MigrationFailure> {
    let known = migration.written().map_or(&[][..], |written| &written.failures);
    let reported = |key: &WorkloadKey| known.iter().find(|failure| is_failure_of(failure, key));
    let overdue = migration.index.overdue(snapshot.now).take(MAX_FAILURES);
    let overdue = overdue.map(|(deadline, key)| {
        let deadline = Time::from_timestamp(deadline);
        let same = reported(key).filter(|failure| failure.timestamp == deadline);
        same.cloned()
            .unwrap_or_else(|| new_failure(key, deadline, overdue_message(snapshot, migration, key)))
    });
    let rejected = known
        .iter()
        .filter(|failure| is_rejected(migration.index, failure));
    let mut all: Vec<MigrationFailure> = overdue.chain(rejected.cloned()).collect();
    // New rejections are added only while there is space: if each replaced another one, the status would
    // change forever.
    let space = MAX_FAILURES.saturating_sub(all.len());
    let new = migration.index.rejected().filter(|key| reported(key).is_none());
    let now = Time::from_timestamp(snapshot.now);
    all.extend(
        new.map(|key| new_failure(key, now, rejected_message(snapshot, key)))
            .take(space),
    );
    all.sort_by(|a, b| (a.timestamp, &a.namespace, &a.name).cmp(&(b.timestamp, &b.namespace, &b.name)));
    let surplus = all.len().saturating_sub(MAX_FAILURES);
    all.split_off(surplus)
}

fn is_rejected(index: &MigrationIndex, failure: &MigrationFailure) -> bool {
    WorkloadKind::from_name(&failure.kind)
        .is_some_and(|kind| index.is_rejected(&WorkloadKey::new(&*failure.namespace, kind, &*failure.name)))
}

fn is_failure_of(failure: &MigrationFailure, key: &WorkloadKey) -> bool {
    failure.name == key.name() && failure.namespace == key.namespace() && failure.kind == key.kind().name()
}

fn new_failure(key: &WorkloadKey, timestamp: Time, reason: String) -> MigrationFailure {
    MigrationFailure {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        kind: key.kind().name().to_owned(),
        reason,
        timestamp,
    }
}

/// Describes why a workload was not ready in time.
fn overdue_message(snapshot: &Snapshot, migration: &Migration<'_>, key: &WorkloadKey) -> String {
    let Some(workload) = snapshot.workload(key) else {
        return String::new();
    };
    let (rollout, record) = (workload.rollout, workload.record.as_ref());
    let empty = PodsByRevision::new();
    let pods = snapshot.references().pods_by_revision(key).unwrap_or(&empty);
    let injected = pods.get(migration.target).copied().unwrap_or_default();
    let detail = if rollout.was_complete {
        format!(
            "{injected}/{} pods were injected by {}",
            rollout.desired, migration.target
        )
    } else {
        rollout.describe_missing()
    };
    let mut overdue = migration.index.overdue(snapshot.now);
    let deadline = overdue.find(|(_, overdue)| *overdue == key);
    let timeout = record
        .zip(deadline)
        .map(|(record, (deadline, _))| deadline.duration_since(record.started.timestamp()));
    let timeout = GoDuration::from(timeout.unwrap_or_default());
    format!("Readiness timeout exceeded after {timeout}: {detail}")
}

fn rejected_message(snapshot: &Snapshot, key: &WorkloadKey) -> String {
    let workload = Subject::Workload(key.clone());
    let namespace = Subject::Namespace(key.namespace().to_owned());
    let failure = snapshot
        .last_failure(&workload)
        .or_else(|| snapshot.last_failure(&namespace));
    failure.map_or_else(String::new, |failure| format!("rejected: {}", failure.message))
}

fn migration_condition(
    snapshot: &Snapshot,
    migration: &Migration<'_>,
    status: &WorkloadMigrationStatus,
) -> Condition {
    let (migrated, total) = (status.migrated_workloads, status.total_workloads);
    let target = migration.target;
    let (holds, reason, mut message) = match (&migration.hold, status.state) {
        (_, MigrationState::Completed) => {
            let message = format!(
                "{migrated} of {total} workloads migrated to {target}, {} skipped",
                status.skipped_workloads
            );
            (ConditionStatus::True, Reason::AllWorkloadsMigrated, message)
        }
        (_, MigrationState::Failed) => {
            let failed = status.failed_workloads;
            let message = format!(
                "{failed} of {total} workloads not ready on {target}; see workloadMigration.failures"
            );
            (ConditionStatus::False, Reason::WorkloadsFailed, message)
        }
        (Some(hold), _) => (ConditionStatus::False, hold.reason.clone(), hold.message.clone()),
        (None, _) => {
            let message = format!("{migrated} of {total} workloads migrated to {target}");
            (ConditionStatus::False, Reason::MigrationInProgress, message)
        }
    };
    if status.state == MigrationState::Completed || status.state == MigrationState::Failed {
        message.push_str(&format_standalone_pods(snapshot, migration));
    }
    message.push_str(&format_missing_revisions(snapshot));
    Condition::new(ConditionType::WorkloadsMigrated, holds, reason, message)
}

/// Formats a list of the pods on old revisions that belong to no workload. They are not restarted and keep
/// a revision in use.
fn format_standalone_pods(snapshot: &Snapshot, migration: &Migration<'_>) -> String {
    let owned = snapshot.revisions().owned_by(&migration.istio.metadata.uid);
    let old = owned.filter(|revision| revision.name() != migration.target);
    let pods = old.flat_map(|revision| snapshot.references().standalone_pods(revision.name()));
    let names: Vec<String> = pods
        .take(MAX_NAMES + 1)
        .map(|(namespace, pod)| format!("Pod/{namespace}/{pod}"))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "; not restarted, because no workload owns them: {}",
        join_names(&names)
    )
}

/// Formats a list of the namespaces whose labels name a revision that does not exist. No injector serves
/// their pods.
fn format_missing_revisions(snapshot: &Snapshot) -> String {
    let selected = snapshot.references().selected_names();
    let missing = selected
        .filter(|(name, _)| snapshot.revisions().get(name).is_none() && snapshot.tags().get(name).is_none());
    let names: Vec<String> = missing
        .map(|(name, namespace)| format!("{namespace} ({name:?})"))
        .take(MAX_NAMES + 1)
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "; namespaces that name a missing revision: {}",
        join_names(&names)
    )
}

fn join_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let rest = if names.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}

/// Adds an event for the start, each batch, each failure and the end.
fn add_events(migration: &Migration<'_>, new: &WorkloadMigrationStatus, plan: &mut PlanBuilder<'_>) {
    let none = WorkloadMigrationStatus::default();
    let old = migration.written().unwrap_or(&none);
    let batch = |status: &WorkloadMigrationStatus| status.batched.unwrap_or_default();
    let target = migration.target;
    if new.state == MigrationState::InProgress && old.state != MigrationState::InProgress {
        let outstanding = new.total_workloads - new.migrated_workloads - new.skipped_workloads;
        let message = if outstanding > 0 {
            let batches = batch(new).total_batches;
            format!("migrating {outstanding} workloads to {target} in {batches} batches")
        } else {
            format!("relabeling namespaces for {target}")
        };
        plan.add_event_after_status(false, Reason::MigrationStarted, message);
    }
    if batch(new).current_batch > batch(old).current_batch && new.state == MigrationState::InProgress {
        let message = format!(
            "batch {} of {}",
            batch(new).current_batch,
            batch(new).total_batches
        );
        plan.add_event_after_status(false, Reason::BatchStarted, message);
    }
    let known: BTreeMap<_, _> = old
        .failures
        .iter()
        .map(|failure| (workload_name(failure), failure.timestamp))
        .collect();
    let unknown = new
        .failures
        .iter()
        .filter(|failure| known.get(&workload_name(failure)) != Some(&failure.timestamp));
    let mut reported = 0;
    for failure in unknown {
        let message = format!("{}: {}", workload_name(failure), failure.reason);
        plan.add_event_after_status(true, Reason::WorkloadFailed, message);
        reported += 1;
    }
    let unreported = new.failed_workloads - old.failed_workloads - reported;
    if unreported > 0 {
        let message =
            format!("{unreported} more workloads failed; the status lists the latest {MAX_FAILURES}");
        plan.add_event_after_status(true, Reason::WorkloadFailed, message);
    }
    let ended = matches!(new.state, MigrationState::Completed | MigrationState::Failed);
    let had_workloads = new.total_workloads > 0;
    if ended && had_workloads && (old.state != new.state) {
        let message = format!(
            "{} of {} workloads migrated to {target}, {} failed, {} skipped",
            new.migrated_workloads, new.total_workloads, new.failed_workloads, new.skipped_workloads
        );
        plan.add_event_after_status(
            new.state == MigrationState::Failed,
            Reason::MigrationEnded,
            message,
        );
    }
}

fn workload_name(failure: &MigrationFailure) -> String {
    format!("{}/{}/{}", failure.kind, failure.namespace, failure.name)
}
