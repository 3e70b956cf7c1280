//! Work queue of a controller. Keys are unique and are returned in alphabetical order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::clock::Instant;

/// Back-off after the first failure. It doubles with each failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(5);
const MAX_BACKOFF: Duration = Duration::from_secs(1_000);

/// Queued keys, and keys to enqueue at a later time.
#[derive(Debug, Default)]
pub(super) struct Queue {
    queued: BTreeSet<Box<str>>,
    /// Keys to enqueue later, by time.
    delayed: BTreeSet<(Instant, Box<str>)>,
    /// Times of the delayed keys.
    delayed_until: BTreeMap<Box<str>, Instant>,
    failures: HashMap<Box<str>, u32>,
    /// Keys with a write that is waiting for a webhook.
    blocked: BTreeSet<Box<str>>,
}

impl Queue {
    /// Enqueues a key.
    pub(super) fn add(&mut self, key: &str) {
        if !self.queued.contains(key) {
            self.queued.insert(key.into());
        }
    }

    /// Removes and returns the keys that are queued or due.
    pub(super) fn take(&mut self, now: Instant) -> BTreeSet<Box<str>> {
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
            && let Some((_, key)) = self.delayed.pop_first()
        {
            self.delayed_until.remove(&key);
            self.queued.insert(key);
        }
        std::mem::take(&mut self.queued)
    }

    /// Records a successful sync. The key is enqueued again at `requeue_at`, if set.
    pub(super) fn done(&mut self, key: &str, requeue_at: Option<Instant>) {
        self.failures.remove(key);
        self.delay_until(key, requeue_at);
    }

    /// Records that the sync of a key is waiting for the reply of a webhook.
    pub(super) fn block(&mut self, key: &str) {
        self.blocked.insert(key.into());
    }

    /// Enqueues all blocked keys, after a webhook has replied.
    pub(super) fn release_blocked(&mut self) {
        self.queued.append(&mut self.blocked);
    }

    /// Records a failed sync. The key is enqueued again with exponential back-off.
    pub(super) fn failed(&mut self, key: &str, now: Instant) {
        let count = self.failures.entry(key.into()).or_default();
        let backoff = INITIAL_BACKOFF.saturating_mul(1_u32 << (*count).min(20));
        *count = count.saturating_add(1);
        self.delay_until(key, Some(now.plus(backoff.min(MAX_BACKOFF))));
    }

    fn delay_until(&mut self, key: &str, until: Option<Instant>) {
        if let Some(at) = self.delayed_until.remove(key) {
            self.delayed.remove(&(at, Box::from(key)));
        }
        if let Some(at) = until {
            self.delayed_until.insert(key.into(), at);
            self.delayed.insert((at, key.into()));
        }
    }

    /// Returns the next time at which a delayed key is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Returns whether a key is queued.
    pub(super) fn is_busy(&self) -> bool {
        !self.queued.is_empty()
    }
}
