//! Work queue of subjects with due times. A subject is reconciled by one task at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::names::Subject;

/// Back-off after the first failure. It doubles with each further failure.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
/// Maximum back-off.
const MAX_BACKOFF: Duration = Duration::from_mins(2);
/// Number of consecutive conflicts after which a conflict counts as a failure.
const MAX_CONFLICTS: u32 = 5;

/// Returns the back-off after this many consecutive failures.
pub(crate) fn backoff(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    MIN_BACKOFF.saturating_mul(factor).min(MAX_BACKOFF)
}

/// A work queue.
#[derive(Debug)]
pub(crate) struct Queue<S = Subject> {
    due: BTreeMap<S, Timestamp>,
    running: BTreeSet<S>,
    failures: BTreeMap<S, u32>,
    conflicts: BTreeMap<S, u32>,
    enqueued: u64,
}

impl<S> Default for Queue<S> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            running: BTreeSet::new(),
            failures: BTreeMap::new(),
            conflicts: BTreeMap::new(),
            enqueued: 0,
        }
    }
}

impl<S: Clone + Ord> Queue<S> {
    /// Enqueues a subject for `at`. A subject that is already queued keeps the earlier of both times.
    pub(crate) fn enqueue(&mut self, subject: S, at: Timestamp) {
        let due = self.due.entry(subject).or_insert(at);
        *due = at.min(*due);
        self.enqueued += 1;
    }

    /// Starts the due subject with the earliest due time. Returns `None` if no subject is due.
    pub(crate) fn start_next(&mut self, now: Timestamp) -> Option<S> {
        let waiting = self
            .due
            .iter()
            .filter(|(subject, at)| **at <= now && !self.running.contains(subject));
        let subject = waiting.min_by_key(|(_, at)| **at)?.0.clone();
        self.due.remove(&subject);
        self.running.insert(subject.clone());
        Some(subject)
    }

    /// Marks a subject as not running and resets its back-off.
    pub(crate) fn succeed(&mut self, subject: &S) {
        self.running.remove(subject);
        self.reset(subject);
    }

    /// Resets the back-off of a subject, because its object was changed or deleted. The caller enqueues the
    /// subject.
    pub(crate) fn reset(&mut self, subject: &S) {
        self.failures.remove(subject);
        self.conflicts.remove(subject);
    }

    /// Marks a subject as not running, and enqueues it without delay, because an object was changed since it
    /// was read. Consecutive conflicts beyond a limit count as failures. Returns whether this one does.
    pub(crate) fn conflict(&mut self, subject: &S, now: Timestamp) -> bool {
        let conflicts = self.conflicts.entry(subject.clone()).or_default();
        *conflicts = conflicts.saturating_add(1);
        let is_failure = *conflicts > MAX_CONFLICTS;
        if is_failure {
            self.fail(subject, now);
        } else {
            self.running.remove(subject);
            self.enqueue(subject.clone(), now);
        }
        is_failure
    }

    /// Marks a subject as not running, and enqueues it after the back-off.
    pub(crate) fn fail(&mut self, subject: &S, now: Timestamp) {
        self.running.remove(subject);
        let failures = self.failures.entry(subject.clone()).or_default();
        *failures = failures.saturating_add(1);
        let at = now.checked_add(backoff(*failures)).unwrap_or(Timestamp::MAX);
        self.enqueue(subject.clone(), at);
    }

    /// Returns the earliest due time of the subjects that are not running.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let waiting = self
            .due
            .iter()
            .filter(|(subject, _)| !self.running.contains(subject));
        waiting.map(|(_, at)| *at).min()
    }

    /// Returns the number of calls of [`Queue::enqueue`], from which callers detect new work.
    pub(crate) fn enqueue_count(&self) -> u64 {
        self.enqueued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::names::Name;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn subject(name: &str) -> Subject {
        Subject::Deployment(Name::new("a", name))
    }

    #[test]
    fn a_running_subject_is_not_started_again_before_it_has_finished() {
        let mut queue = Queue::<Subject>::default();
        queue.enqueue(subject("x"), at(5));
        assert_eq!(queue.start_next(at(4)), None, "not due");
        assert_eq!(queue.start_next(at(5)), Some(subject("x")));
        queue.enqueue(subject("x"), at(5));
        assert_eq!(queue.start_next(at(9)), None, "running");
        queue.succeed(&subject("x"));
        assert_eq!(queue.start_next(at(9)), Some(subject("x")));
    }

    #[test]
    fn failures_back_off_and_success_resets() {
        let mut queue = Queue::<Subject>::default();
        for (second, pause) in [(0, 500), (10, 1000), (20, 2000)] {
            queue.enqueue(subject("x"), at(second));
            assert!(queue.start_next(at(second)).is_some());
            queue.fail(&subject("x"), at(second));
            let due = queue.next_due().unwrap();
            assert_eq!(due.duration_since(at(second)).as_millis(), pause);
            queue.enqueue(subject("x"), at(second + 9));
            assert!(queue.start_next(at(second + 9)).is_some());
            queue.running.clear();
        }
        assert_eq!(backoff(40), MAX_BACKOFF);
    }

    #[test]
    fn an_event_resets_the_backoff() {
        let mut queue = Queue::<Subject>::default();
        for _ in 0..9 {
            queue.fail(&subject("x"), at(0));
        }
        queue.due.clear();
        queue.reset(&subject("x"));
        queue.fail(&subject("x"), at(0));
        assert_eq!(queue.next_due().unwrap(), at(0).checked_add(MIN_BACKOFF).unwrap());
    }

    #[test]
    fn a_change_during_a_failing_reconciliation_is_not_delayed() {
        let mut queue = Queue::<Subject>::default();
        queue.enqueue(subject("x"), at(0));
        assert!(queue.start_next(at(0)).is_some());
        queue.reset(&subject("x"));
        queue.enqueue(subject("x"), at(0));
        queue.fail(&subject("x"), at(0));
        assert_eq!(queue.start_next(at(0)), Some(subject("x")));
    }

    #[test]
    fn conflicts_are_retried_without_delay_up_to_a_limit() {
        let mut queue = Queue::<Subject>::default();
        let conflict = |queue: &mut Queue| {
            queue.due.clear();
            let is_failure = queue.conflict(&subject("x"), at(7));
            (
                is_failure,
                queue.next_due().unwrap().duration_since(at(7)).as_millis(),
            )
        };
        for _ in 0..MAX_CONFLICTS {
            assert_eq!(conflict(&mut queue), (false, 0));
        }
        assert_eq!(conflict(&mut queue), (true, 500));
        assert_eq!(conflict(&mut queue), (true, 1000));
        queue.succeed(&subject("x"));
        assert_eq!(conflict(&mut queue), (false, 0), "after a success");
        queue.fail(&subject("x"), at(7));
        queue.due.clear();
        queue.fail(&subject("x"), at(7));
        let pause = queue.next_due().unwrap().duration_since(at(7));
        assert_eq!(
            pause.as_millis(),
            1000,
            "a conflict does not increase the back-off"
        );
    }
}
