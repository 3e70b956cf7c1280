//! The work queue of a controller: returns due keys, each once, in name order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::clock::Instant;

/// Back-off after the first failure; it doubles with each failure.
const INITIAL_BACKOFF: Duration = Duration::from_millis(5);
const MAX_BACKOFF: Duration = Duration::from_secs(1_000);

/// Queued keys, and keys to requeue at a later time.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeSet<Box<str>>,
    sleeping: BTreeSet<(Instant, Box<str>)>,
    alarms: BTreeMap<Box<str>, Instant>,
    failures: HashMap<Box<str>, u32>,
    /// Keys whose writes wait for a webhook.
    held: BTreeSet<Box<str>>,
}

impl Queue {
    /// Enqueues a key.
    pub(super) fn add(&mut self, key: &str) {
        if !self.waiting.contains(key) {
            self.waiting.insert(key.into());
        }
    }

    /// Takes every key that is queued or due.
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

    /// Records a successful sync; the key is requeued at `requeue`, if set.
    pub(super) fn done(&mut self, key: &str, requeue: Option<Instant>) {
        self.failures.remove(key);
        self.requeue_at(key, requeue);
    }

    /// Holds a key until a webhook replies.
    pub(super) fn hold(&mut self, key: &str) {
        self.held.insert(key.into());
    }

    /// Enqueues all held keys after a webhook's reply.
    pub(super) fn release_held(&mut self) {
        self.waiting.append(&mut self.held);
    }

    /// Records a failed sync; the key is requeued with exponential back-off.
    pub(super) fn failed(&mut self, key: &str, now: Instant) {
        let count = self.failures.entry(key.into()).or_default();
        let pause = INITIAL_BACKOFF.saturating_mul(1_u32 << (*count).min(20));
        *count = count.saturating_add(1);
        self.requeue_at(key, Some(now.plus(pause.min(MAX_BACKOFF))));
    }

    fn requeue_at(&mut self, key: &str, requeue: Option<Instant>) {
        if let Some(at) = self.alarms.remove(key) {
            self.sleeping.remove(&(at, Box::from(key)));
        }
        if let Some(at) = requeue {
            self.alarms.insert(key.into(), at);
            self.sleeping.insert((at, key.into()));
        }
    }

    /// Returns the earliest time at which a key is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.sleeping.first().map(|(at, _)| *at)
    }

    /// Returns whether a key is queued.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
    }
}
