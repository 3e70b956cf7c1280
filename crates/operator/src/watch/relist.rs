//! Requests for a new list of what a watch follows, and waiting for a list that began after the request.

use tokio::sync::watch::{Receiver, Sender, channel};

/// The watch has ended: there will be no list.
#[derive(Debug)]
pub(crate) struct WatchEnded;

/// Sends requests and waits for lists.
pub(crate) struct RelistRequester {
    requested: Sender<u64>,
    listed: Receiver<u64>,
}

/// Receives requests in a watch.
pub(crate) struct RelistRequests {
    requested: Receiver<u64>,
    listed: Sender<u64>,
    /// Number of the last request before the current list began.
    covered: u64,
}

/// Creates both ends of a request channel.
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
    /// Requests a list. The future completes with the list, or fails when the watch has ended.
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
    /// A list begins: it covers every request so far.
    pub(super) fn begin(&mut self) {
        self.covered = *self.requested.borrow_and_update();
    }

    /// The list is complete.
    pub(super) fn done(&self) {
        self.listed.send_replace(self.covered);
    }

    /// Completes when there is a request that no list covers; never if the requester was dropped.
    pub(super) async fn requested(&mut self) {
        if self.requested.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
