//! Index of the workloads of one migration, which returns counts, candidates and deadlines without a
//! search.
//!
//! There is one index per Istio that migrates workloads. It stores nothing that cannot be derived from the
//! cluster: the state of a workload follows from its labels, its pods and its migration record.
//!
//! *Invariant:* the index after any sequence of changes equals the index built from the final objects.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::WorkloadState;
use crate::Subject;
use crate::workload::WorkloadKey;

/// The workloads of one migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationIndex {
    states: BTreeMap<WorkloadKey, WorkloadState>,
    pending: BTreeSet<(i32, WorkloadKey)>,
    /// Number of outstanding workloads, waiting or pending, by priority.
    priorities: BTreeMap<i32, usize>,
    started: BTreeSet<(Timestamp, WorkloadKey)>,
    /// Workloads that were restarted, on any revision, and whose rollout is not complete, with their
    /// deadline.
    restarting: BTreeMap<WorkloadKey, Timestamp>,
    restarting_by_deadline: BTreeSet<(Timestamp, WorkloadKey)>,
    batch_members: BTreeSet<(i32, WorkloadKey)>,
    rejected: BTreeSet<WorkloadKey>,
    waiting: usize,
    finished: usize,
    skipped: usize,
    /// Namespaces whose labels name an old revision.
    namespaces: BTreeSet<String>,
}

/// Number of workloads in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadCounts {
    /// Workloads that have not been restarted yet.
    pub pending: usize,
    /// Workloads that were restarted and are within the readiness timeout.
    pub moving: usize,
    /// Workloads that are ready on the target revision.
    pub migrated: usize,
    /// Workloads that were not ready in time, or whose restart the API server rejected.
    pub failed: usize,
    /// Workloads that are excluded from the migration.
    pub skipped: usize,
}

/// Number and priority of the workloads that may still join the open batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenPlaces {
    /// Priority of the workloads that may join the batch.
    pub(super) priority: i32,
    /// Number of workloads that may join.
    pub(super) count: usize,
}

impl MigrationIndex {
    /// Records the state of a workload, or removes the workload if it does not belong to the migration.
    /// Returns whether the index changed.
    pub(crate) fn set(&mut self, key: &WorkloadKey, state: Option<WorkloadState>) -> bool {
        if self.states.get(key) == state.as_ref() {
            return false;
        }
        if let Some(old) = self.states.get(key).cloned() {
            self.update_counts(key, &old, false);
        }
        match state {
            Some(new) => {
                self.update_counts(key, &new, true);
                self.states.insert(key.clone(), new);
            }
            None => drop(self.states.remove(key)),
        }
        true
    }

    /// Records the deadline of a restarted workload, or `None` once its rollout is complete. Returns
    /// whether the index changed.
    pub(crate) fn set_restarting(&mut self, key: &WorkloadKey, deadline: Option<Timestamp>) -> bool {
        if self.restarting.get(key) == deadline.as_ref() {
            return false;
        }
        if let Some(old) = self.restarting.remove(key) {
            self.restarting_by_deadline.remove(&(old, key.clone()));
        }
        if let Some(deadline) = deadline {
            self.restarting.insert(key.clone(), deadline);
            self.restarting_by_deadline.insert((deadline, key.clone()));
        }
        true
    }

    fn update_counts(&mut self, key: &WorkloadKey, state: &WorkloadState, is_added: bool) {
        let number = |count: &mut usize| {
            *count = if is_added {
                *count + 1
            } else {
                count.saturating_sub(1)
            }
        };
        match state {
            WorkloadState::Waiting { priority } | WorkloadState::Pending { priority } => {
                if matches!(state, WorkloadState::Pending { .. }) {
                    insert_or_remove(&mut self.pending, (*priority, key.clone()), is_added);
                } else {
                    number(&mut self.waiting);
                }
                let count = self.priorities.entry(*priority).or_default();
                number(count);
                if *count == 0 {
                    self.priorities.remove(priority);
                }
            }
            WorkloadState::Started { deadline, batch } => {
                insert_or_remove(&mut self.started, (*deadline, key.clone()), is_added);
                insert_or_remove(&mut self.batch_members, (*batch, key.clone()), is_added);
            }
            WorkloadState::Finished { batch } => {
                number(&mut self.finished);
                insert_or_remove(&mut self.batch_members, (*batch, key.clone()), is_added);
            }
            WorkloadState::Rejected => insert_or_remove(&mut self.rejected, key.clone(), is_added),
            WorkloadState::Skipped(_) => number(&mut self.skipped),
        }
    }

    /// Records whether a namespace must be relabeled. Returns whether the index changed.
    pub(crate) fn set_namespace(&mut self, name: &str, relabel: bool) -> bool {
        if relabel {
            self.namespaces.insert(name.to_owned())
        } else {
            self.namespaces.remove(name)
        }
    }

    /// Returns the state of a workload.
    #[must_use]
    pub fn state(&self, key: &WorkloadKey) -> Option<&WorkloadState> {
        self.states.get(key)
    }

    /// Returns every workload of the migration. For reports only, because the cost is linear in the number of
    /// workloads.
    pub fn iter(&self) -> impl Iterator<Item = (&WorkloadKey, &WorkloadState)> {
        self.states.iter()
    }

    /// Returns the namespaces whose labels name an old revision.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// Whether the labels of this namespace name an old revision.
    #[must_use]
    pub fn relabels(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Returns the namespaces and workloads that a plan may still change.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let namespaces = self.namespaces.iter().cloned().map(Subject::Namespace);
        let pending = self.pending.iter().map(|(_, key)| key);
        let workloads = pending.chain(&self.rejected).cloned().map(Subject::Workload);
        namespaces.chain(workloads)
    }

    /// Returns the number of workloads in each [phase](super::WorkloadPhase) at `now`.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> WorkloadCounts {
        let moving = self.moving(now).count();
        WorkloadCounts {
            pending: self.waiting + self.pending.len(),
            moving,
            migrated: self.finished,
            failed: self.started.len() - moving + self.rejected.len(),
            skipped: self.skipped,
        }
    }

    /// Returns the workloads that were restarted and are within their readiness timeout, earliest deadline
    /// first.
    pub fn moving(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkloadKey)> {
        let first = first_after(now);
        self.started
            .range(first..)
            .map(|(deadline, key)| (*deadline, key))
    }

    /// Returns the workloads that were restarted and not ready in time, latest deadline first.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkloadKey)> {
        let first = first_after(now);
        let overdue = self.started.range(..first).rev();
        overdue.map(|(deadline, key)| (*deadline, key))
    }

    /// Whether the API server rejects the restart of a workload.
    #[must_use]
    pub fn is_rejected(&self, key: &WorkloadKey) -> bool {
        self.rejected.contains(key)
    }

    /// Returns the workloads whose restart the API server rejects.
    pub fn rejected(&self) -> impl Iterator<Item = &WorkloadKey> {
        self.rejected.iter()
    }

    /// Returns the number of workloads that are not fully available because the operator restarted them:
    /// those that move to the target, and those that were restarted on another revision and are not ready.
    #[must_use]
    pub fn restarting(&self, now: Timestamp) -> usize {
        let restarting = self.restarting_by_deadline.range(first_after(now)..).count();
        restarting
            + self
                .moving(now)
                .filter(|(_, key)| !self.is_restarting(key, now))
                .count()
    }

    /// Whether the operator has restarted a workload on any revision, and the workload is not ready and
    /// within its readiness timeout.
    #[must_use]
    pub fn is_restarting(&self, key: &WorkloadKey, now: Timestamp) -> bool {
        self.restarting.get(key).is_some_and(|deadline| *deadline > now)
    }

    /// Returns the next deadline after `now`.
    #[must_use]
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let moving = self.started.range(first_after(now)..).next();
        let restarting = self.restarting_by_deadline.range(first_after(now)..).next();
        moving
            .into_iter()
            .chain(restarting)
            .map(|(deadline, _)| *deadline)
            .min()
    }

    /// Returns the workloads to restart next, in order, with their priority. Workloads that are still
    /// restarting are left out.
    pub fn candidates(&self, now: Timestamp) -> impl Iterator<Item = (i32, &WorkloadKey)> {
        let ready = self
            .pending
            .iter()
            .filter(move |(_, key)| !self.is_restarting(key, now));
        ready.map(|(priority, key)| (*priority, key))
    }

    /// Returns the workloads that were restarted in a batch.
    pub fn batch_members(&self, batch: i32) -> impl Iterator<Item = &WorkloadKey> {
        let first = (batch, WorkloadKey::range_start(""));
        self.batch_members
            .range(first..)
            .take_while(move |(number, _)| *number == batch)
            .map(|(_, key)| key)
    }

    /// Returns the highest batch number that has members, or 0.
    #[must_use]
    pub fn last_batch(&self) -> i32 {
        self.batch_members.last().map_or(0, |(batch, _)| *batch)
    }

    /// Returns the number of batches of `size` that are needed for the outstanding workloads, except those
    /// that fit into the open batch.
    #[must_use]
    pub(super) fn batches_left(&self, size: usize, open: Option<OpenPlaces>) -> usize {
        let size = size.max(1);
        let counts = self.priorities.iter().map(|(priority, count)| match open {
            Some(open) if open.priority == *priority => count.saturating_sub(open.count),
            _ => *count,
        });
        counts.map(|count| count.div_ceil(size)).sum()
    }
}

fn insert_or_remove<T: Ord>(set: &mut BTreeSet<T>, value: T, is_added: bool) {
    if is_added {
        set.insert(value);
    } else {
        set.remove(&value);
    }
}

/// Returns the smallest possible entry with a deadline after `now`, as the start of a range.
fn first_after(now: Timestamp) -> (Timestamp, WorkloadKey) {
    let next = now.checked_add(jiff::SignedDuration::from_nanos(1));
    (next.unwrap_or(Timestamp::MAX), WorkloadKey::range_start(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::WorkloadKind;

    /// Returns an index with this many pending workloads of each priority.
    fn index_with_pending(priorities: &[(i32, usize)]) -> MigrationIndex {
        let mut index = MigrationIndex::default();
        for (priority, count) in priorities {
            for number in 0..*count {
                let name = format!("{priority}-{number}");
                let key = WorkloadKey::new("shop", WorkloadKind::Deployment, name);
                let state = WorkloadState::Pending { priority: *priority };
                assert!(index.set(&key, Some(state)));
            }
        }
        index
    }

    #[test]
    fn batches_are_counted_by_size_and_priority() {
        let check = |priorities: &[(i32, usize)], size: usize, expected: usize| {
            let left = index_with_pending(priorities).batches_left(size, None);
            assert_eq!(left, expected, "{priorities:?} by {size}");
        };
        check(&[], 3, 0);
        check(&[(0, 2)], 3, 1);
        check(&[(0, 3)], 3, 1);
        check(&[(0, 10)], 3, 4);
        check(&[(0, 10)], 1, 10);
        check(&[(0, 10)], 100, 1);
        check(&[(-1, 1), (0, 4), (7, 1)], 3, 4);
        // The settings never contain a size below 1, but it must not cause a division by zero.
        check(&[(0, 2)], 0, 2);
    }

    #[test]
    fn workloads_that_fit_into_the_open_batch_need_no_further_batch() {
        let check = |priority: i32, count: usize, expected: usize| {
            let open = OpenPlaces { priority, count };
            let left = index_with_pending(&[(0, 4), (1, 2)]).batches_left(3, Some(open));
            assert_eq!(left, expected, "{open:?}");
        };
        check(0, 0, 3);
        check(0, 1, 2);
        check(0, 9, 1);
        check(1, 2, 2);
        check(5, 3, 3);
    }
}
