//! What happened to one table: takes events, gives those after a version, and forgets the oldest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::object::Object;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It came.
    Added,
    /// It changed.
    Modified,
    /// It went.
    Deleted,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Event {
    /// The resourceVersion it made.
    pub version: u64,
    /// What happened.
    pub kind: EventKind,
    /// The object after it; for a removal its last state.
    pub object: Arc<Object>,
    /// The object before it.
    pub previous: Option<Arc<Object>>,
}

/// A ring of events, oldest first.
#[derive(Debug)]
pub struct History {
    events: VecDeque<Event>,
    limit: usize,
    forgotten: u64,
    last: u64,
}

impl History {
    /// An empty history that keeps `limit` events.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            events: VecDeque::new(),
            limit: limit.max(1),
            forgotten: 0,
            last: 0,
        }
    }

    /// Appends; the oldest is forgotten when there is no room.
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

    /// The newest version whose event is gone: nothing can be told to who knows less.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The events after `version`; `None` when some of them are forgotten.
    #[must_use]
    pub fn after(&self, version: u64) -> Option<impl Iterator<Item = &Event>> {
        if version < self.forgotten {
            return None;
        }
        let start = self.events.partition_point(|event| event.version <= version);
        Some(self.events.range(start..))
    }

    /// Forgets everything up to `version`.
    pub fn compact(&mut self, version: u64) {
        while self.events.front().is_some_and(|event| event.version <= version) {
            self.events.pop_front();
        }
        self.forgotten = self.forgotten.max(version);
    }

    /// For each key touched after `version`, what was there then; `None` when the history does not reach back.
    pub(super) fn undo_to(&self, version: u64) -> Option<BTreeMap<Box<str>, Option<Arc<Object>>>> {
        let mut then = BTreeMap::new();
        for event in self.after(version)? {
            then.entry(event.object.key().into())
                .or_insert_with(|| event.previous.clone());
        }
        Some(then)
    }
}
