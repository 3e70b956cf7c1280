//! The history of one table: a bounded list of events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::object::Object;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object was added.
    Added,
    /// The object was modified.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Event {
    /// The resourceVersion of the write.
    pub version: u64,
    /// The type of the event.
    pub kind: EventKind,
    /// The object after the write; for a deletion, its last state.
    pub object: Arc<Object>,
    /// The object before the write.
    pub previous: Option<Arc<Object>>,
}

/// A ring buffer of events, oldest first.
#[derive(Debug)]
pub struct History {
    events: VecDeque<Event>,
    limit: usize,
    forgotten: u64,
    last: u64,
}

impl History {
    /// Creates an empty history that keeps `limit` events.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            events: VecDeque::new(),
            limit: limit.max(1),
            forgotten: 0,
            last: 0,
        }
    }

    /// Appends an event and drops the oldest one if the limit is reached.
    pub fn push(&mut self, event: Event) {
        self.last = event.version;
        if self.events.len() >= self.limit
            && let Some(oldest) = self.events.pop_front()
        {
            self.forgotten = oldest.version;
        }
        self.events.push_back(event);
    }

    /// The version of the last event.
    #[must_use]
    pub fn last_version(&self) -> u64 {
        self.last
    }

    /// The newest version whose event was dropped; older versions cannot be watched.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the events after `version`, or `None` if some of them were dropped.
    #[must_use]
    pub fn after(&self, version: u64) -> Option<impl Iterator<Item = &Event>> {
        if version < self.forgotten {
            return None;
        }
        let start = self.events.partition_point(|event| event.version <= version);
        Some(self.events.range(start..))
    }

    /// Drops all events up to `version`.
    pub fn compact(&mut self, version: u64) {
        while self.events.front().is_some_and(|event| event.version <= version) {
            self.events.pop_front();
        }
        self.forgotten = self.forgotten.max(version);
    }

    /// Returns the state at `version` of each key that changed since; `None` if the history does not reach
    /// back that far.
    pub(super) fn undo_to(&self, version: u64) -> Option<BTreeMap<Box<str>, Option<Arc<Object>>>> {
        let mut then = BTreeMap::new();
        for event in self.after(version)? {
            then.entry(event.object.key().into())
                .or_insert_with(|| event.previous.clone());
        }
        Some(then)
    }
}
