//! Which keys wait for a controller: takes keys and moments, gives those that are due, each once, in name order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::clock::Instant;

/// The first pause after a failure; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1_000);

/// Keys that wait, and keys that sleep until a moment.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeSet<Box<str>>,
    sleeping: BTreeSet<(Instant, Box<str>)>,
    alarms: BTreeMap<Box<str>, Instant>,
    failures: HashMap<Box<str>, u32>,
    /// Keys whose writes wait for an answer from outside.
    held: BTreeSet<Box<str>>,
}

impl Queue {
    /// The key waits from now on.
    pub(super) fn add(&mut self, key: &str) {
        if !self.waiting.contains(key) {
            self.waiting.insert(key.into());
        }
    }

    /// Every key that waits or whose moment has come.
    pub(super) fn take(&mut self, now: Instant) -> BTreeSet<Box<str>> {
        while let Some((at, _)) = self.sleeping.first()
            && *at <= now
            && let Some((_, key)) = self.sleeping.pop_first()
        {
            self.alarms.remove(&key);
            self.waiting.insert(key);
        }
        std::mem::take(&mut self.waiting)
    }

    /// The key was looked at; it sleeps until `again`, if any.
    pub(super) fn done(&mut self, key: &str, again: Option<Instant>) {
        self.failures.remove(key);
        self.set_alarm(key, again);
    }

    /// The key waits for an answer from outside.
    pub(super) fn hold(&mut self, key: &str) {
        self.held.insert(key.into());
    }

    /// An answer came: those who waited for one look again.
    pub(super) fn wake_held(&mut self) {
        self.waiting.append(&mut self.held);
    }

    /// Looking at the key failed: it sleeps longer each time.
    pub(super) fn failed(&mut self, key: &str, now: Instant) {
        let count = self.failures.entry(key.into()).or_default();
        let pause = FIRST_PAUSE.saturating_mul(1_u32 << (*count).min(20));
        *count = count.saturating_add(1);
        self.set_alarm(key, Some(now.plus(pause.min(LONGEST_PAUSE))));
    }

    fn set_alarm(&mut self, key: &str, again: Option<Instant>) {
        if let Some(at) = self.alarms.remove(key) {
            self.sleeping.remove(&(at, Box::from(key)));
        }
        if let Some(at) = again {
            self.alarms.insert(key.into(), at);
            self.sleeping.insert((at, key.into()));
        }
    }

    /// The first moment at which a key wakes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.sleeping.first().map(|(at, _)| *at)
    }

    /// Whether a key waits.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
    }
}
