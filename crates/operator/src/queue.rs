//! Whose turn it is: takes subjects that were woken and moments to look again, gives one subject at a time, never one that is
//! being worked on. Knows no clock; the moment is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::Subject;

/// The delays of controller-runtime: they double from the first to about a quarter of an hour.
const FIRST_DELAY: Duration = Duration::from_millis(5);
const LAST_DELAY: Duration = Duration::from_secs(1000);

/// A subject may change something this often at once, and then once a second: two controllers at odds must not heat the server.
const BURST: u32 = 60;
const REFILL: Duration = Duration::from_secs(1);

/// The queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ready: VecDeque<Subject>,
    waiting: BTreeSet<Subject>,
    later: BTreeMap<Subject, Timestamp>,
    /// The same in the order of the moments.
    moments: BTreeSet<(Timestamp, Subject)>,
    running: BTreeSet<Subject>,
    attempts: BTreeMap<Subject, u32>,
    spent: BTreeMap<Subject, (Timestamp, u32)>,
}

impl Queue {
    /// Puts a subject at the end, once. One that is being worked on comes again when that is done.
    pub(crate) fn wake(&mut self, subject: Subject) {
        self.unschedule(&subject);
        if self.waiting.insert(subject.clone()) {
            self.ready.push_back(subject);
        }
    }

    /// Wakes a subject at this moment, unless it comes earlier.
    pub(crate) fn wake_at(&mut self, subject: Subject, moment: Timestamp) {
        if self.waiting.contains(&subject) {
            return;
        }
        let moment = self.unschedule(&subject).map_or(moment, |old| old.min(moment));
        self.later.insert(subject.clone(), moment);
        self.moments.insert((moment, subject));
    }

    fn unschedule(&mut self, subject: &Subject) -> Option<Timestamp> {
        let moment = self.later.remove(subject)?;
        self.moments.remove(&(moment, subject.clone()));
        Some(moment)
    }

    /// Lets a subject wait until this moment although it was woken.
    pub(crate) fn postpone(&mut self, subject: &Subject, moment: Timestamp) {
        if self.waiting.remove(subject) {
            self.ready.retain(|waiting| waiting != subject);
        }
        self.wake_at(subject.clone(), moment);
    }

    /// The next subject whose turn it is; it counts as being worked on until [`Queue::done`].
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Subject> {
        self.ripen(now);
        let at = self
            .ready
            .iter()
            .position(|subject| !self.running.contains(subject))?;
        let subject = self.ready.remove(at)?;
        self.waiting.remove(&subject);
        self.running.insert(subject.clone());
        Some(subject)
    }

    /// Nobody works on it any more.
    pub(crate) fn done(&mut self, subject: &Subject) {
        self.running.remove(subject);
    }

    /// The delay before the next attempt; longer every time until [`Queue::forgive`].
    pub(crate) fn delay(&mut self, subject: &Subject) -> Duration {
        let attempts = self.attempts.entry(subject.clone()).or_default();
        let factor = 1_u32.checked_shl(*attempts).unwrap_or(u32::MAX);
        *attempts = attempts.saturating_add(1);
        FIRST_DELAY.saturating_mul(factor).min(LAST_DELAY)
    }

    /// The next delay is the first one again.
    pub(crate) fn forgive(&mut self, subject: &Subject) {
        self.attempts.remove(subject);
    }

    /// Whether a subject may change something now; if not, when.
    pub(crate) fn spend(&mut self, subject: &Subject, now: Timestamp) -> Result<(), Timestamp> {
        let (since, spent) = self.spent.get(subject).copied().unwrap_or((now, 0));
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let refilled = u32::try_from(passed.as_secs()).unwrap_or(u32::MAX);
        let spent = spent.saturating_sub(refilled);
        if spent >= BURST {
            return Err(now.checked_add(REFILL).unwrap_or(Timestamp::MAX));
        }
        let since = if refilled > 0 { now } else { since };
        self.spent.insert(subject.clone(), (since, spent + 1));
        Ok(())
    }

    /// Forgets everything about a subject that is gone.
    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.unschedule(subject);
        self.attempts.remove(subject);
        self.spent.remove(subject);
    }

    /// Forgets of each subject what no longer restrains it.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        let whole = REFILL * BURST;
        self.spent.retain(|_, (since, _)| {
            Duration::try_from(now.duration_since(*since)).is_ok_and(|passed| passed < whole)
        });
    }

    /// When the next subject comes by itself.
    pub(crate) fn next_moment(&self) -> Option<Timestamp> {
        self.moments.first().map(|(moment, _)| *moment)
    }

    /// How many wait for their turn now.
    pub(crate) fn depth(&self) -> usize {
        self.ready.len()
    }

    /// How many are being worked on.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    fn ripen(&mut self, now: Timestamp) {
        while let Some((_, subject)) = self.moments.first().filter(|(moment, _)| *moment <= now) {
            self.wake(subject.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn names(queue: &mut Queue, now: i64) -> Vec<String> {
        std::iter::from_fn(|| queue.take(at(now)))
            .map(|subject| subject.name().to_owned())
            .collect()
    }

    #[test]
    fn each_subject_comes_once_in_order() {
        let mut queue = Queue::default();
        for name in ["b", "a", "b", "c"] {
            queue.wake(Subject::istio(name));
        }
        assert_eq!(queue.depth(), 3);
        assert_eq!(names(&mut queue, 0), ["b", "a", "c"]);
    }

    #[test]
    fn what_is_worked_on_waits_until_that_is_done() {
        let mut queue = Queue::default();
        queue.wake(Subject::istio("a"));
        assert_eq!(names(&mut queue, 0), ["a"]);
        queue.wake(Subject::istio("a"));
        queue.wake(Subject::istio("b"));
        assert_eq!(names(&mut queue, 0), ["b"], "a is being worked on");
        queue.done(&Subject::istio("a"));
        assert_eq!(names(&mut queue, 0), ["a"], "it was woken meanwhile");
        queue.done(&Subject::istio("a"));
        assert_eq!(names(&mut queue, 0), [""; 0], "and not since");
    }

    #[test]
    fn a_moment_comes_when_it_comes_and_the_earliest_counts() {
        let mut queue = Queue::default();
        queue.wake_at(Subject::istio("a"), at(20));
        queue.wake_at(Subject::istio("a"), at(10));
        queue.wake_at(Subject::istio("a"), at(30));
        queue.wake_at(Subject::istio("b"), at(5));
        assert_eq!(queue.next_moment(), Some(at(5)));
        assert_eq!(names(&mut queue, 4), [""; 0]);
        assert_eq!(names(&mut queue, 10), ["b", "a"]);
        assert_eq!(queue.next_moment(), None);
    }

    #[test]
    fn delays_double_up_to_a_quarter_of_an_hour_until_forgiven() {
        let mut queue = Queue::default();
        let subject = Subject::istio("a");
        let delays: Vec<u128> = (0..20).map(|_| queue.delay(&subject).as_millis()).collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[17..], [655_360, 1_000_000, 1_000_000]);
        assert_eq!(queue.delay(&Subject::istio("b")).as_millis(), 5, "each its own");
        for _ in 0..100 {
            queue.delay(&subject);
        }
        assert_eq!(queue.delay(&subject).as_millis(), 1_000_000);
        queue.forgive(&subject);
        assert_eq!(queue.delay(&subject).as_millis(), 5);
    }

    #[test]
    fn changes_of_one_subject_are_rationed() {
        let mut queue = Queue::default();
        let subject = Subject::istio("a");
        let spent = (0..1000).filter(|_| queue.spend(&subject, at(0)).is_ok()).count();
        assert_eq!(spent, 60);
        assert_eq!(queue.spend(&subject, at(500)), Err(at(1500)));
        assert_eq!(queue.spend(&Subject::istio("b"), at(500)), Ok(()), "each its own");
        let spent = (0..1000)
            .filter(|_| queue.spend(&subject, at(10_000)).is_ok())
            .count();
        assert_eq!(spent, 10);
        queue.tidy(at(69_000));
        assert_eq!(queue.spent.len(), 1, "it may be restrained yet");
        queue.tidy(at(70_000));
        assert!(queue.spent.is_empty(), "{:?}", queue.spent);
    }
}
