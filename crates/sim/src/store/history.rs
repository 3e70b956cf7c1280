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

/// A write to a table.
#[derive(Clone, Debug)]
pub struct Event {
    /// resourceVersion of the write.
    pub version: u64,
    /// Type of the event.
    pub kind: EventKind,
    /// Object after the write; for a deletion, its last state.
    pub object: Arc<Object>,
    /// Object before the write; `None` if the write added it.
    pub previous: Option<Arc<Object>>,
}

/// A ring buffer of events, oldest first.
#[derive(Debug)]
pub struct History {
    events: VecDeque<Event>,
    limit: usize,
    compacted: u64,
    last: u64,
}

impl History {
    /// Creates an empty history that retains `limit` events.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            events: VecDeque::new(),
            limit: limit.max(1),
            compacted: 0,
            last: 0,
        }
    }

    /// Appends an event and drops the oldest one if the limit is reached.
    pub fn push(&mut self, event: Event) {
        self.last = event.version;
        if self.events.len() >= self.limit
            && let Some(oldest) = self.events.pop_front()
        {
            self.compacted = oldest.version;
        }
        self.events.push_back(event);
    }

    /// Returns the version of the last event.
    #[must_use]
    pub fn last_version(&self) -> u64 {
        self.last
    }

    /// Returns the newest version that was dropped. Watches from older versions are not possible.
    #[must_use]
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Returns the events after `version`, or `None` if some of them were dropped.
    #[must_use]
    pub fn after(&self, version: u64) -> Option<impl Iterator<Item = &Event>> {
        if version < self.compacted {
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
        self.compacted = self.compacted.max(version);
    }

    /// Returns the state at `version` of each key that changed after `version`. Returns `None` if some of the
    /// events were dropped.
    pub(super) fn states_before_changes(
        &self,
        version: u64,
    ) -> Option<BTreeMap<Box<str>, Option<Arc<Object>>>> {
        let mut states = BTreeMap::new();
        for event in self.after(version)? {
            states
                .entry(event.object.key().into())
                .or_insert_with(|| event.previous.clone());
        }
        Some(states)
    }
}
