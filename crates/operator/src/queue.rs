//! Work queue of subjects to reconcile now or at a later time, with back-off and rate limit per subject.
//! Does not read the clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::Subject;

/// First back-off delay, as in controller-runtime. It doubles with each attempt.
const MIN_DELAY: Duration = Duration::from_millis(5);
/// Maximum back-off delay, about 17 minutes, as in controller-runtime.
const MAX_DELAY: Duration = Duration::from_secs(1000);

/// Number of plans that a subject may execute without a delay. After that, the rate is one plan per second,
/// so that two controllers that revert each other's changes do not overload the API server.
const BURST: u32 = 60;
/// Interval at which the rate limit of a subject permits one more plan.
const REFILL_INTERVAL: Duration = Duration::from_secs(1);

/// A work queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ready: VecDeque<Subject>,
    /// The same subjects as in `ready`.
    queued: BTreeSet<Subject>,
    scheduled: BTreeMap<Subject, Timestamp>,
    /// The same entries as in `scheduled`, ordered by time.
    by_time: BTreeSet<(Timestamp, Subject)>,
    running: BTreeSet<Subject>,
    attempts: BTreeMap<Subject, u32>,
    /// Rate limit of each subject: time of the last refill, and number of plans that count against the limit.
    rate_limits: BTreeMap<Subject, (Timestamp, u32)>,
    enqueue_count: u64,
}

impl Queue {
    /// Appends a subject unless it is queued. A running subject is not started again before
    /// [`Queue::finish`].
    pub(crate) fn enqueue(&mut self, subject: Subject) {
        self.unschedule(&subject);
        if self.queued.insert(subject.clone()) {
            self.ready.push_back(subject);
            self.enqueue_count += 1;
        }
    }

    /// Schedules a subject for `time`, unless it is queued or scheduled for an earlier time.
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

    /// Removes a subject from the ready queue, and schedules it for `time`.
    pub(crate) fn postpone(&mut self, subject: &Subject, time: Timestamp) {
        if self.queued.remove(subject) {
            self.ready.retain(|queued| queued != subject);
        }
        self.enqueue_at(subject.clone(), time);
    }

    /// Returns the next subject that is not running, and marks it as running until [`Queue::finish`].
    pub(crate) fn start_next(&mut self, now: Timestamp) -> Option<Subject> {
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

    /// Whether the subject is marked as running.
    pub(crate) fn is_running(&self, subject: &Subject) -> bool {
        self.running.contains(subject)
    }

    /// Marks a subject as not running.
    pub(crate) fn finish(&mut self, subject: &Subject) {
        self.running.remove(subject);
    }

    /// Returns the delay before the next attempt. It doubles with each call until [`Queue::reset_backoff`].
    pub(crate) fn next_delay(&mut self, subject: &Subject) -> Duration {
        let attempts = self.attempts.entry(subject.clone()).or_default();
        let factor = 1_u32.checked_shl(*attempts).unwrap_or(u32::MAX);
        *attempts = attempts.saturating_add(1);
        MIN_DELAY.saturating_mul(factor).min(MAX_DELAY)
    }

    /// Resets the back-off of a subject to the first delay.
    pub(crate) fn reset_backoff(&mut self, subject: &Subject) {
        self.attempts.remove(subject);
    }

    /// Counts an execution against the rate limit. If the limit is reached, fails with the time at which
    /// the next execution is permitted.
    pub(crate) fn try_acquire(&mut self, subject: &Subject, now: Timestamp) -> Result<(), Timestamp> {
        let (since, spent) = self.rate_limits.get(subject).copied().unwrap_or((now, 0));
        let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let refilled = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        let spent = spent.saturating_sub(refilled);
        if spent >= BURST {
            return Err(now.checked_add(REFILL_INTERVAL).unwrap_or(Timestamp::MAX));
        }
        let since = if refilled > 0 { now } else { since };
        self.rate_limits.insert(subject.clone(), (since, spent + 1));
        Ok(())
    }

    /// Removes schedule, back-off and rate limit of a deleted subject.
    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.unschedule(subject);
        self.attempts.remove(subject);
        self.rate_limits.remove(subject);
    }

    /// Removes the rate limits that are fully refilled.
    pub(crate) fn prune_rate_limits(&mut self, now: Timestamp) {
        let full_refill = REFILL_INTERVAL * BURST;
        self.rate_limits.retain(|_, (since, _)| {
            Duration::try_from(now.duration_since(*since)).is_ok_and(|elapsed| elapsed < full_refill)
        });
    }

    /// Returns the earliest time for which a subject is scheduled.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Returns the number of subjects in the ready queue.
    pub(crate) fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Returns the number of running subjects.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the number of subjects that were appended to the ready queue so far.
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

    fn start_all(queue: &mut Queue, now: i64) -> Vec<String> {
        std::iter::from_fn(|| queue.start_next(at(now)))
            .map(|subject| subject.name().to_owned())
            .collect()
    }

    #[test]
    fn each_subject_is_started_once_in_order() {
        let mut queue = Queue::default();
        for name in ["b", "a", "b", "c"] {
            queue.enqueue(Subject::istio(name));
        }
        assert_eq!(queue.depth(), 3);
        assert_eq!(start_all(&mut queue, 0), ["b", "a", "c"]);
    }

    #[test]
    fn a_running_subject_is_started_again_only_after_it_has_finished() {
        let mut queue = Queue::default();
        queue.enqueue(Subject::istio("a"));
        assert_eq!(start_all(&mut queue, 0), ["a"]);
        queue.enqueue(Subject::istio("a"));
        queue.enqueue(Subject::istio("b"));
        assert_eq!(start_all(&mut queue, 0), ["b"], "a is running");
        queue.finish(&Subject::istio("a"));
        assert_eq!(start_all(&mut queue, 0), ["a"], "enqueued while it was running");
        queue.finish(&Subject::istio("a"));
        assert_eq!(start_all(&mut queue, 0), [""; 0], "not enqueued since");
    }

    #[test]
    fn the_earliest_scheduled_time_has_precedence() {
        let mut queue = Queue::default();
        queue.enqueue_at(Subject::istio("a"), at(20));
        queue.enqueue_at(Subject::istio("a"), at(10));
        queue.enqueue_at(Subject::istio("a"), at(30));
        queue.enqueue_at(Subject::istio("b"), at(5));
        assert_eq!(queue.next_time(), Some(at(5)));
        assert_eq!(start_all(&mut queue, 4), [""; 0]);
        assert_eq!(start_all(&mut queue, 10), ["b", "a"]);
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
        let spent = (0..1000)
            .filter(|_| queue.try_acquire(&subject, at(0)).is_ok())
            .count();
        assert_eq!(spent, 60);
        assert_eq!(queue.try_acquire(&subject, at(500)), Err(at(1500)));
        assert_eq!(
            queue.try_acquire(&Subject::istio("b"), at(500)),
            Ok(()),
            "per subject"
        );
        let spent = (0..1000)
            .filter(|_| queue.try_acquire(&subject, at(10_000)).is_ok())
            .count();
        assert_eq!(spent, 10);
        queue.prune_rate_limits(at(69_000));
        assert_eq!(queue.rate_limits.len(), 1, "not refilled yet");
        queue.prune_rate_limits(at(70_000));
        assert!(queue.rate_limits.is_empty(), "{:?}", queue.rate_limits);
    }
}
