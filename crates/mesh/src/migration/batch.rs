//! Determines the open batch and its capacity.

use jiff::Timestamp;
use mainstay_api::BatchedMigrationStatus;

use super::{MigrationIndex, MigrationSettings};

/// Capacity of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchCapacity {
    /// Batch size minus the number of workloads in the batch.
    pub(crate) unfilled: usize,
    /// Number of workloads that may be restarted now. Lower than `unfilled` while workloads that are not in
    /// the batch are still restarting.
    pub(crate) available: usize,
}

/// Returns the capacity of a batch.
pub(crate) fn batch_capacity(
    index: &MigrationIndex,
    settings: &MigrationSettings,
    batch: i32,
    now: Timestamp,
) -> BatchCapacity {
    let size = settings.batch_size;
    let unfilled = size.saturating_sub(index.batch_members(batch).count());
    BatchCapacity {
        unfilled,
        available: unfilled.min(size.saturating_sub(index.restarting(now))),
    }
}

/// Returns the number of the batch that workloads may join, or `None` between two batches and before the
/// first one.
pub(crate) fn open_batch(batched: &BatchedMigrationStatus) -> Option<i32> {
    let is_open = batched.current_batch > 0 && batched.next_batch_time.is_none();
    is_open.then_some(batched.current_batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::WorkloadState;
    use crate::workload::{WorkloadKey, WorkloadKind};

    #[test]
    fn capacity_is_limited_by_members_and_by_other_restarts() {
        let now = Timestamp::from_second(1000).unwrap();
        let deadline = Timestamp::from_second(2000).unwrap();
        let key = |name: String| WorkloadKey::new("apps", WorkloadKind::Deployment, name);
        let check = |size: usize, members: usize, others: usize, expected: (usize, usize)| {
            let mut index = MigrationIndex::default();
            for number in 0..members {
                let finished = WorkloadState::Finished { batch: 1 };
                index.set(&key(format!("member-{number}")), Some(finished));
            }
            for number in 0..others {
                index.set_restarting(&key(format!("other-{number}")), Some(deadline));
            }
            let settings = MigrationSettings {
                batch_size: size,
                ..MigrationSettings::default()
            };
            let found = batch_capacity(&index, &settings, 1, now);
            assert_eq!(
                (found.unfilled, found.available),
                expected,
                "{size} {members} {others}"
            );
            assert_eq!(
                batch_capacity(&index, &settings, 1, deadline).available,
                expected.0
            );
        };
        check(3, 0, 0, (3, 3));
        check(3, 1, 0, (2, 2));
        check(3, 3, 0, (0, 0));
        check(3, 5, 0, (0, 0));
        check(3, 0, 1, (3, 2));
        check(3, 2, 1, (1, 1));
        check(3, 1, 4, (2, 0));
    }

    #[test]
    fn a_batch_is_open_until_the_next_one_is_scheduled() {
        let check = |current_batch: i32, scheduled: bool, expected: Option<i32>| {
            let time = mainstay_api::Time::from_timestamp(Timestamp::UNIX_EPOCH);
            let batched = BatchedMigrationStatus {
                current_batch,
                next_batch_time: scheduled.then_some(time),
                ..BatchedMigrationStatus::default()
            };
            assert_eq!(open_batch(&batched), expected);
        };
        check(0, false, None);
        check(1, false, Some(1));
        check(1, true, None);
    }
}
