//! The open connections of a server. If the limit is reached, the connection that has been idle for longest
//! is closed, so that idle clients cannot block other clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// All open connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_id: BTreeMap<u64, Entry>,
    /// Increases with every connection and request.
    sequence: u64,
}

#[derive(Debug)]
struct Entry {
    /// Number of requests and watches in progress.
    in_progress: usize,
    /// Sequence number of the last start or end of a request.
    last_used: u64,
    close: Arc<Notify>,
}

/// An open connection. Dropping it removes it from [`Connections`].
#[derive(Debug)]
pub(super) struct OpenConnection {
    all: Arc<Connections>,
    id: u64,
    close: Arc<Notify>,
}

/// A request in progress. It is dropped when its response has been sent.
#[derive(Debug)]
pub(super) struct RequestInProgress(Arc<OpenConnection>);

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection.
    pub(super) fn open(self: &Arc<Self>) -> Arc<OpenConnection> {
        let mut entries = self.lock();
        entries.sequence += 1;
        let (id, close) = (entries.sequence, Arc::new(Notify::new()));
        let entry = Entry {
            in_progress: 0,
            last_used: id,
            close: Arc::clone(&close),
        };
        entries.by_id.insert(id, entry);
        Arc::new(OpenConnection {
            all: Arc::clone(self),
            id,
            close,
        })
    }

    /// Closes the connection that has been idle for longest, if a connection is idle.
    pub(super) fn close_idle(&self) {
        let mut entries = self.lock();
        let idle = entries.by_id.iter().filter(|(_, entry)| entry.in_progress == 0);
        let oldest = idle.min_by_key(|(_, entry)| entry.last_used).map(|(id, _)| *id);
        if let Some(entry) = oldest.and_then(|id| entries.by_id.remove(&id)) {
            entry.close.notify_one();
        }
    }
}

impl OpenConnection {
    /// Waits until the connection must be closed.
    pub(super) async fn wait_for_close(&self) {
        self.close.notified().await;
    }

    /// Records the start of a request.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestInProgress {
        self.update_entry(|entry| entry.in_progress += 1);
        RequestInProgress(Arc::clone(self))
    }

    fn update_entry(&self, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.all.lock();
        entries.sequence += 1;
        let now = entries.sequence;
        if let Some(entry) = entries.by_id.get_mut(&self.id) {
            entry.last_used = now;
            change(entry);
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.all.lock().by_id.remove(&self.id);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0
            .update_entry(|entry| entry.in_progress = entry.in_progress.saturating_sub(1));
    }
}
