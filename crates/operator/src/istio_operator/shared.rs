//! State that is shared by the control loop and the watches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::index::Index;
use crate::clock::Clock;
use crate::report::{Observer, Report};

/// Index, clock, and a notification for new work.
pub(super) struct Shared {
    index: Mutex<Index>,
    pub(super) enqueued: Notify,
    pub(super) observer: Arc<dyn Observer>,
    clock: Clock,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    pub(super) fn new(clock: Clock, observer: Arc<dyn Observer>) -> Self {
        Self {
            index: Mutex::default(),
            enqueued: Notify::new(),
            observer,
            clock,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Calls `act` with the locked index, and notifies the loop if a resource was enqueued.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Index) -> R) -> R {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let before = index.queue.enqueue_count();
        let result = act(&mut index);
        if index.queue.enqueue_count() != before {
            self.enqueued.notify_one();
        }
        result
    }

    /// Reports the number of resources in each state, and the number of owned objects.
    pub(super) fn report_gauges(&self) {
        let (states, objects) = self.with(|index| {
            let mut states = BTreeMap::<String, usize>::new();
            for (_, operator) in index.operators() {
                *states
                    .entry(operator.status.status.name().to_owned())
                    .or_default() += 1;
            }
            (states, index.object_count())
        });
        self.observer.report(&Report::Installations(&states));
        let cache = "istio_operator";
        self.observer.report(&Report::Cached { cache, objects });
    }
}
