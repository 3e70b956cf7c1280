//! State that is shared by the control loop, the links and the watches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::Client;
use mainstay_cluster::connect::{Fence, Meter, guard};
use mainstay_cluster::write::Writer;
use tokio::sync::{Notify, watch};

use super::index::Index;
use super::names::ClusterKey;
use crate::clock::Clock;

/// Index, connections to clusters, and notifications.
pub(crate) struct Shared {
    index: Mutex<Index>,
    /// Notified when a subject was enqueued.
    pub(crate) enqueued: Notify,
    /// Number of completed lists.
    pub(crate) lists: watch::Sender<u64>,
    writers: Mutex<BTreeMap<ClusterKey, Writer>>,
    check_signals: Mutex<BTreeMap<ClusterKey, Arc<Notify>>>,
    fence: Fence,
    meter: Meter,
    clock: Clock,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    pub(crate) fn new(fence: Fence, meter: Meter, clock: Clock) -> Self {
        Self {
            index: Mutex::default(),
            enqueued: Notify::new(),
            lists: watch::Sender::new(0),
            writers: Mutex::default(),
            check_signals: Mutex::default(),
            fence,
            meter,
            clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether this process may write.
    pub(crate) fn may_write(&self) -> bool {
        self.fence.is_open()
    }

    /// Calls `act` with the locked index, and notifies the loop if a subject was enqueued.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Index) -> R) -> R {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let before = index.queue.enqueue_count();
        let result = act(&mut index);
        if index.queue.enqueue_count() != before {
            self.enqueued.notify_one();
        }
        result
    }

    /// Returns a client that applies the call timeout, counts calls, and rejects writes while the fence is
    /// closed.
    pub(crate) fn guard(&self, client: Client) -> Client {
        guard(client, self.fence.clone(), self.meter.clone())
    }

    /// Sets or removes the connection to a cluster.
    pub(crate) fn set_writer(&self, cluster: &ClusterKey, writer: Option<Writer>) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        match writer {
            Some(writer) => writers.insert(cluster.clone(), writer),
            None => writers.remove(cluster),
        };
    }

    /// Returns the connection to a cluster, or `None` if the cluster is not connected.
    pub(crate) fn writer(&self, cluster: &ClusterKey) -> Option<Writer> {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.get(cluster).cloned()
    }

    /// Returns the notification that makes the link of a cluster check it.
    pub(crate) fn check_signal(&self, cluster: &ClusterKey) -> Arc<Notify> {
        let mut check_signals = self.check_signals.lock().unwrap_or_else(PoisonError::into_inner);
        check_signals.entry(cluster.clone()).or_default().clone()
    }

    /// Requests an immediate check from the link of a cluster.
    pub(crate) fn request_check(&self, cluster: &ClusterKey) {
        self.check_signal(cluster).notify_one();
    }
}
