//! Requests for new lists from a watch. A request waits for a list that began after it.

use tokio::sync::watch::{Receiver, Sender, channel};

/// Error of a request for a list from a watch that has ended.
#[derive(Debug)]
pub(crate) struct WatchEnded;

/// Sender of requests for lists.
pub(crate) struct RelistRequester {
    requested: Sender<u64>,
    listed: Receiver<u64>,
}

/// Receiver of requests for lists in a watch.
pub(crate) struct RelistRequests {
    requested: Receiver<u64>,
    listed: Sender<u64>,
    /// Number of the last request before the start of the current list.
    covered: u64,
}

/// Creates a channel for requests for lists.
pub(crate) fn relist_channel() -> (RelistRequester, RelistRequests) {
    let (request_sender, request_receiver) = channel(0);
    let (list_sender, list_receiver) = channel(0);
    let requester = RelistRequester {
        requested: request_sender,
        listed: list_receiver,
    };
    let requests = RelistRequests {
        requested: request_receiver,
        listed: list_sender,
        covered: 0,
    };
    (requester, requests)
}

impl RelistRequester {
    /// Requests a list. The future completes with the end of the list, or fails if the watch has ended.
    pub(crate) fn request(&self) -> impl Future<Output = Result<(), WatchEnded>> + use<> {
        let mut number = 0;
        self.requested.send_modify(|last| {
            *last += 1;
            number = *last;
        });
        let mut listed = self.listed.clone();
        async move {
            let reached = listed.wait_for(|last| *last >= number).await;
            reached.map(|_| ()).map_err(|_| WatchEnded)
        }
    }
}

impl RelistRequests {
    /// Records the start of a list, which covers every request so far.
    pub(super) fn begin_list(&mut self) {
        self.covered = *self.requested.borrow_and_update();
    }

    /// Records the end of a list, and completes the requests that it covers.
    pub(super) fn finish_list(&self) {
        self.listed.send_replace(self.covered);
    }

    /// Waits for a request that no list covers. Never completes if the requester was dropped.
    pub(super) async fn wait_for_request(&mut self) {
        if self.requested.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
