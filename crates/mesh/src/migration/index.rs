//! How far a migration is: takes where each workload stands, one at a time, gives counts, who is next and who is late without a search.
//!
//! One index per Istio that moves workloads. It holds nothing that cannot be told from the cluster: where a workload stands comes from
//! its labels, its pods and the mark on it.
//!
//! *Invariant:* the index after any sequence of changes equals the one built from what is there at the end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mainstay_api::Reason;

use crate::Subject;
use crate::workload::WorkloadKey;

/// Where a workload stands on its way to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadState {
    /// Its turn cannot come yet: its namespace is to be relabelled first, or its tag is still to move.
    Waiting,
    /// Its turn will come.
    Pending {
        /// Lower numbers first.
        priority: i32,
    },
    /// It was sent to the target and has not come up there. It is late from this moment on.
    Started {
        /// When it must have come up.
        deadline: Timestamp,
        /// In which batch it was sent.
        batch: i32,
    },
    /// It was sent to the target and came up there.
    Finished {
        /// In which batch it was sent.
        batch: i32,
    },
    /// The API server refuses to move it.
    Rejected,
    /// It is left alone.
    Skipped(Reason),
}

/// All workloads of one migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationIndex {
    standings: BTreeMap<WorkloadKey, WorkloadState>,
    pending: BTreeSet<(i32, WorkloadKey)>,
    priorities: BTreeMap<i32, usize>,
    started: BTreeSet<(Timestamp, WorkloadKey)>,
    /// Those that were restarted, wherever to, and are still coming up: until when they have time.
    busy: BTreeMap<WorkloadKey, Timestamp>,
    busy_until: BTreeSet<(Timestamp, WorkloadKey)>,
    members: BTreeSet<(i32, WorkloadKey)>,
    refused: BTreeSet<WorkloadKey>,
    waiting: usize,
    finished: usize,
    skipped: usize,
    /// Namespaces whose labels name an old revision.
    namespaces: BTreeSet<String>,
}

/// How many stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadCounts {
    /// Not begun.
    pub pending: usize,
    /// Being moved.
    pub moving: usize,
    /// Came up on the target.
    pub migrated: usize,
    /// Late, or refused.
    pub failed: usize,
    /// Left alone.
    pub skipped: usize,
}

impl MigrationIndex {
    /// Puts a workload where it stands now; nothing if the migration is not about it.
    pub(crate) fn set(&mut self, key: &WorkloadKey, standing: Option<WorkloadState>) -> bool {
        if self.standings.get(key) == standing.as_ref() {
            return false;
        }
        if let Some(old) = self.standings.get(key).cloned() {
            self.count(key, &old, false);
        }
        match standing {
            Some(new) => {
                self.count(key, &new, true);
                self.standings.insert(key.clone(), new);
            }
            None => drop(self.standings.remove(key)),
        }
        true
    }

    /// Notes until when a workload that was restarted has time to come up; nothing if it is not coming up.
    pub(crate) fn set_busy(&mut self, key: &WorkloadKey, until: Option<Timestamp>) -> bool {
        if self.busy.get(key) == until.as_ref() {
            return false;
        }
        if let Some(old) = self.busy.remove(key) {
            self.busy_until.remove(&(old, key.clone()));
        }
        if let Some(until) = until {
            self.busy.insert(key.clone(), until);
            self.busy_until.insert((until, key.clone()));
        }
        true
    }

    fn count(&mut self, key: &WorkloadKey, standing: &WorkloadState, enter: bool) {
        let number = |count: &mut usize| {
            *count = if enter {
                *count + 1
            } else {
                count.saturating_sub(1)
            }
        };
        match standing {
            WorkloadState::Waiting => number(&mut self.waiting),
            WorkloadState::Pending { priority } => {
                put(&mut self.pending, (*priority, key.clone()), enter);
                let count = self.priorities.entry(*priority).or_default();
                number(count);
                if *count == 0 {
                    self.priorities.remove(priority);
                }
            }
            WorkloadState::Started { deadline, batch } => {
                put(&mut self.started, (*deadline, key.clone()), enter);
                put(&mut self.members, (*batch, key.clone()), enter);
            }
            WorkloadState::Finished { batch } => {
                number(&mut self.finished);
                put(&mut self.members, (*batch, key.clone()), enter);
            }
            WorkloadState::Rejected => put(&mut self.refused, key.clone(), enter),
            WorkloadState::Skipped(_) => number(&mut self.skipped),
        }
    }

    /// Notes whether a namespace is to be relabelled.
    pub(crate) fn set_namespace(&mut self, name: &str, relabel: bool) -> bool {
        if relabel {
            self.namespaces.insert(name.to_owned())
        } else {
            self.namespaces.remove(name)
        }
    }

    /// Where a workload stands.
    #[must_use]
    pub fn state(&self, key: &WorkloadKey) -> Option<&WorkloadState> {
        self.standings.get(key)
    }

    /// Every workload the migration is about. For people: it walks all of them.
    pub fn iter(&self) -> impl Iterator<Item = (&WorkloadKey, &WorkloadState)> {
        self.standings.iter()
    }

    /// Namespaces whose labels name an old revision.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// Whether this namespace's labels name an old revision.
    #[must_use]
    pub fn relabels(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Whatever is still to be touched.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let spaces = self.namespaces.iter().cloned().map(Subject::Namespace);
        let pending = self.pending.iter().map(|(_, key)| key);
        let workloads = pending.chain(&self.refused).cloned().map(Subject::Workload);
        spaces.chain(workloads)
    }

    /// How many stand where at this moment.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> WorkloadCounts {
        let moving = self.moving(now).count();
        WorkloadCounts {
            pending: self.waiting + self.pending.len(),
            moving,
            migrated: self.finished,
            failed: self.started.len() - moving + self.refused.len(),
            skipped: self.skipped,
        }
    }

    /// Workloads that were sent to the target and still have time, the most urgent first.
    pub fn moving(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkloadKey)> {
        let first = after(now);
        self.started
            .range(first..)
            .map(|(deadline, key)| (*deadline, key))
    }

    /// Workloads that were sent to the target and did not come up in time, the latest first.
    pub fn late(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkloadKey)> {
        let first = after(now);
        let late = self.started.range(..first).rev();
        late.map(|(deadline, key)| (*deadline, key))
    }

    /// Whether the API server refuses to move a workload.
    #[must_use]
    pub fn is_rejected(&self, key: &WorkloadKey) -> bool {
        self.refused.contains(key)
    }

    /// Workloads the API server refuses to move.
    pub fn rejected(&self) -> impl Iterator<Item = &WorkloadKey> {
        self.refused.iter()
    }

    /// How many are not what they should be at this moment because of us: moving to the target, or still coming up elsewhere.
    #[must_use]
    pub fn disturbed(&self, now: Timestamp) -> usize {
        let busy = self.busy_until.range(after(now)..).count();
        busy + self
            .moving(now)
            .filter(|(_, key)| !self.is_busy(key, now))
            .count()
    }

    /// Whether a workload is still coming up after a restart of ours, wherever it was sent.
    #[must_use]
    pub fn is_busy(&self, key: &WorkloadKey, now: Timestamp) -> bool {
        self.busy.get(key).is_some_and(|until| *until > now)
    }

    /// The next moment at which somebody is late.
    #[must_use]
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let moving = self.started.range(after(now)..).next();
        let busy = self.busy_until.range(after(now)..).next();
        moving
            .into_iter()
            .chain(busy)
            .map(|(deadline, _)| *deadline)
            .min()
    }

    /// Those whose turn is next, in their order; whoever is still coming up is passed over.
    pub fn candidates(&self, now: Timestamp) -> impl Iterator<Item = (i32, &WorkloadKey)> {
        let ready = self
            .pending
            .iter()
            .filter(move |(_, key)| !self.is_busy(key, now));
        ready.map(|(priority, key)| (*priority, key))
    }

    /// Those that were sent in a batch.
    pub fn members(&self, batch: i32) -> impl Iterator<Item = &WorkloadKey> {
        let first = (batch, WorkloadKey::range_start(""));
        self.members
            .range(first..)
            .take_while(move |(of, _)| *of == batch)
            .map(|(_, key)| key)
    }

    /// The last batch anybody was sent in.
    #[must_use]
    pub fn last_batch(&self) -> i32 {
        self.members.last().map_or(0, |(batch, _)| *batch)
    }

    /// How many batches of this size are still to come, when `room` more fit into the one that is open for `priority`.
    #[must_use]
    pub fn batches_left(&self, size: usize, room: Option<(i32, usize)>) -> usize {
        let size = size.max(1);
        let counts = self.priorities.iter().map(|(priority, count)| match room {
            Some((open, room)) if open == *priority => count.saturating_sub(room),
            _ => *count,
        });
        counts.map(|count| count.div_ceil(size)).sum::<usize>() + self.waiting.div_ceil(size)
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, value: T, enter: bool) {
    if enter {
        set.insert(value);
    } else {
        set.remove(&value);
    }
}

/// The least entry whose deadline is after `now`.
fn after(now: Timestamp) -> (Timestamp, WorkloadKey) {
    let next = now.checked_add(jiff::SignedDuration::from_nanos(1));
    (next.unwrap_or(Timestamp::MAX), WorkloadKey::range_start(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::WorkloadKind;

    /// A index in which so many of each priority wait for their turn.
    fn waiting(priorities: &[(i32, usize)]) -> MigrationIndex {
        let mut index = MigrationIndex::default();
        for (priority, count) in priorities {
            for number in 0..*count {
                let name = format!("{priority}-{number}");
                let key = WorkloadKey::new("shop", WorkloadKind::Deployment, name);
                let standing = WorkloadState::Pending { priority: *priority };
                assert!(index.set(&key, Some(standing)));
            }
        }
        index
    }

    #[test]
    fn batches_are_counted_by_size_and_priority() {
        let check = |priorities: &[(i32, usize)], size: usize, expected: usize| {
            let left = waiting(priorities).batches_left(size, None);
            assert_eq!(left, expected, "{priorities:?} by {size}");
        };
        check(&[], 3, 0);
        check(&[(0, 2)], 3, 1);
        check(&[(0, 3)], 3, 1);
        check(&[(0, 10)], 3, 4);
        check(&[(0, 10)], 1, 10);
        check(&[(0, 10)], 100, 1);
        check(&[(-1, 1), (0, 4), (7, 1)], 3, 4);
        // Nobody asks for it, and nothing divides by it.
        check(&[(0, 2)], 0, 2);
    }

    #[test]
    fn whoever_still_fits_needs_no_batch_of_its_own() {
        let check = |room: (i32, usize), expected: usize| {
            let left = waiting(&[(0, 4), (1, 2)]).batches_left(3, Some(room));
            assert_eq!(left, expected, "{room:?}");
        };
        check((0, 0), 3);
        check((0, 1), 2);
        check((0, 9), 1);
        check((1, 2), 2);
        check((5, 3), 3);
    }
}
