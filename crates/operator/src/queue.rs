//! The work queue: subjects to reconcile now or at a later time, with back-off and rate limits per subject.
//! Does not read the clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::Subject;

/// Back-off delays of controller-runtime: they double from the first to about 17 minutes.
const MIN_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_secs(1000);

/// A subject may execute this many plans at once, and then one per second: two controllers that revert each
/// other must not overload the server.
const BURST: u32 = 60;
const REFILL_INTERVAL: Duration = Duration::from_secs(1);

/// The work queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ready: VecDeque<Subject>,
    /// The subjects in `ready`, as a set.
    queued: BTreeSet<Subject>,
    scheduled: BTreeMap<Subject, Timestamp>,
    /// The entries of `scheduled`, ordered by time.
    by_time: BTreeSet<(Timestamp, Subject)>,
    running: BTreeSet<Subject>,
    attempts: BTreeMap<Subject, u32>,
    /// Time of the last refill of the rate limit, and the plans that count against it, by subject.
    spent: BTreeMap<Subject, (Timestamp, u32)>,
    enqueue_count: u64,
}

impl Queue {
    /// Appends a subject unless it is queued. A running subject is taken again after [`Queue::done`].
    pub(crate) fn enqueue(&mut self, subject: Subject) {
        self.unschedule(&subject);
        if self.queued.insert(subject.clone()) {
            self.ready.push_back(subject);
            self.enqueue_count += 1;
        }
    }

    /// Enqueues a subject at `time`, unless it is queued or scheduled for an earlier time.
    pub(crate) fn enqueue_at(&mut self, subject: Subject, time: Timestamp) {
        if self.queued.contains(&subject) {
            return;
        }
        let time = self.unschedule(&subject).map_or(time, |old| old.min(time));
        self.scheduled.insert(subject.clone(), time);
        self.by_time.insert((time, subject));
    }

    fn unschedule(&mut self, subject: &Subject) -> Option<Timestamp> {
        let time = self.scheduled.remove(subject)?;
        self.by_time.remove(&(time, subject.clone()));
        Some(time)
    }

    /// Moves a queued subject to a later time.
    pub(crate) fn postpone(&mut self, subject: &Subject, time: Timestamp) {
        if self.queued.remove(subject) {
            self.ready.retain(|queued| queued != subject);
        }
        self.enqueue_at(subject.clone(), time);
    }

    /// Returns the next subject that is not running, and marks it as running until [`Queue::done`].
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Subject> {
        self.enqueue_due(now);
        let position = self
            .ready
            .iter()
            .position(|subject| !self.running.contains(subject))?;
        let subject = self.ready.remove(position)?;
        self.queued.remove(&subject);
        self.running.insert(subject.clone());
        Some(subject)
    }

    /// Whether a plan for the subject is being executed.
    pub(crate) fn is_running(&self, subject: &Subject) -> bool {
        self.running.contains(subject)
    }

    /// Marks a subject as not running.
    pub(crate) fn done(&mut self, subject: &Subject) {
        self.running.remove(subject);
    }

    /// Returns the delay before the next attempt. It doubles with each call until [`Queue::reset_backoff`].
    pub(crate) fn next_delay(&mut self, subject: &Subject) -> Duration {
        let attempts = self.attempts.entry(subject.clone()).or_default();
        let factor = 1_u32.checked_shl(*attempts).unwrap_or(u32::MAX);
        *attempts = attempts.saturating_add(1);
        MIN_DELAY.saturating_mul(factor).min(MAX_DELAY)
    }

    /// Makes the next delay of a subject the shortest one again.
    pub(crate) fn reset_backoff(&mut self, subject: &Subject) {
        self.attempts.remove(subject);
    }

    /// Counts an execution against the rate limit. Returns the time of the next permitted one if the limit is
    /// reached.
    pub(crate) fn spend(&mut self, subject: &Subject, now: Timestamp) -> Result<(), Timestamp> {
        let (since, spent) = self.spent.get(subject).copied().unwrap_or((now, 0));
        let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let refilled = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        let spent = spent.saturating_sub(refilled);
        if spent >= BURST {
            return Err(now.checked_add(REFILL_INTERVAL).unwrap_or(Timestamp::MAX));
        }
        let since = if refilled > 0 { now } else { since };
        self.spent.insert(subject.clone(), (since, spent + 1));
        Ok(())
    }

    /// Removes back-off, schedule and rate limit of a deleted subject.
    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.unschedule(subject);
        self.attempts.remove(subject);
        self.spent.remove(subject);
    }

    /// Removes rate limits that have been refilled completely.
    pub(crate) fn prune_rate_limits(&mut self, now: Timestamp) {
        let full_refill = REFILL_INTERVAL * BURST;
        self.spent.retain(|_, (since, _)| {
            Duration::try_from(now.duration_since(*since)).is_ok_and(|elapsed| elapsed < full_refill)
        });
    }

    /// Returns the time of the next scheduled subject.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Number of subjects that are ready.
    pub(crate) fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Number of running subjects.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Number of subjects enqueued so far.
    pub(crate) fn enqueue_count(&self) -> u64 {
        self.enqueue_count
    }

    fn enqueue_due(&mut self, now: Timestamp) {
        while let Some((_, subject)) = self.by_time.first().filter(|(time, _)| *time <= now) {
            self.enqueue(subject.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn take_all(queue: &mut Queue, now: i64) -> Vec<String> {
        std::iter::from_fn(|| queue.take(at(now)))
            .map(|subject| subject.name().to_owned())
            .collect()
    }

    #[test]
    fn each_subject_is_taken_once_in_order() {
        let mut queue = Queue::default();
        for name in ["b", "a", "b", "c"] {
            queue.enqueue(Subject::istio(name));
        }
        assert_eq!(queue.depth(), 3);
        assert_eq!(take_all(&mut queue, 0), ["b", "a", "c"]);
    }

    #[test]
    fn a_running_subject_is_taken_again_only_when_it_is_done() {
        let mut queue = Queue::default();
        queue.enqueue(Subject::istio("a"));
        assert_eq!(take_all(&mut queue, 0), ["a"]);
        queue.enqueue(Subject::istio("a"));
        queue.enqueue(Subject::istio("b"));
        assert_eq!(take_all(&mut queue, 0), ["b"], "a is running");
        queue.done(&Subject::istio("a"));
        assert_eq!(take_all(&mut queue, 0), ["a"], "enqueued while it was running");
        queue.done(&Subject::istio("a"));
        assert_eq!(take_all(&mut queue, 0), [""; 0], "not enqueued since");
    }

    #[test]
    fn the_earliest_scheduled_time_counts() {
        let mut queue = Queue::default();
        queue.enqueue_at(Subject::istio("a"), at(20));
        queue.enqueue_at(Subject::istio("a"), at(10));
        queue.enqueue_at(Subject::istio("a"), at(30));
        queue.enqueue_at(Subject::istio("b"), at(5));
        assert_eq!(queue.next_time(), Some(at(5)));
        assert_eq!(take_all(&mut queue, 4), [""; 0]);
        assert_eq!(take_all(&mut queue, 10), ["b", "a"]);
        assert_eq!(queue.next_time(), None);
    }

    #[test]
    fn delays_double_up_to_a_maximum_until_the_backoff_is_reset() {
        let mut queue = Queue::default();
        let subject = Subject::istio("a");
        let delays: Vec<u128> = (0..20).map(|_| queue.next_delay(&subject).as_millis()).collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[17..], [655_360, 1_000_000, 1_000_000]);
        let other = Subject::istio("b");
        assert_eq!(queue.next_delay(&other).as_millis(), 5, "per subject");
        for _ in 0..100 {
            queue.next_delay(&subject);
        }
        assert_eq!(queue.next_delay(&subject).as_millis(), 1_000_000);
        queue.reset_backoff(&subject);
        assert_eq!(queue.next_delay(&subject).as_millis(), 5);
    }

    #[test]
    fn executions_of_one_subject_are_rate_limited() {
        let mut queue = Queue::default();
        let subject = Subject::istio("a");
        let spent = (0..1000).filter(|_| queue.spend(&subject, at(0)).is_ok()).count();
        assert_eq!(spent, 60);
        assert_eq!(queue.spend(&subject, at(500)), Err(at(1500)));
        assert_eq!(queue.spend(&Subject::istio("b"), at(500)), Ok(()), "per subject");
        let spent = (0..1000)
            .filter(|_| queue.spend(&subject, at(10_000)).is_ok())
            .count();
        assert_eq!(spent, 10);
        queue.prune_rate_limits(at(69_000));
        assert_eq!(queue.spent.len(), 1, "not refilled yet");
        queue.prune_rate_limits(at(70_000));
        assert!(queue.spent.is_empty(), "{:?}", queue.spent);
    }
}
