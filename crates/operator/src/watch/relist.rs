//! A list wanted now: lets somebody order a new list of what a watch follows, and wait for one that began after the order.

use tokio::sync::watch::{Receiver, Sender, channel};

/// The side of whoever orders.
pub(crate) struct Desk {
    ordered: Sender<u64>,
    listed: Receiver<u64>,
}

/// The side of the watch.
pub(crate) struct Orders {
    ordered: Receiver<u64>,
    listed: Sender<u64>,
    /// The last order that had come when the list under way began.
    begun: u64,
}

/// Both sides.
pub(crate) fn orders() -> (Desk, Orders) {
    let (order, ordered) = channel(0);
    let (list, listed) = channel(0);
    let desk = Desk {
        ordered: order,
        listed,
    };
    let orders = Orders {
        ordered,
        listed: list,
        begun: 0,
    };
    (desk, orders)
}

impl Desk {
    /// Orders a list. What is given ends with the list; it fails when the watch is gone.
    pub(crate) fn order(&self) -> impl Future<Output = Result<(), ()>> + use<> {
        let mut number = 0;
        self.ordered.send_modify(|last| {
            *last += 1;
            number = *last;
        });
        let mut listed = self.listed.clone();
        async move {
            let reached = listed.wait_for(|last| *last >= number).await;
            reached.map(|_| ()).map_err(|_| ())
        }
    }
}

impl Orders {
    /// A list begins: it answers every order that has come.
    pub(super) fn begin(&mut self) {
        self.begun = *self.ordered.borrow_and_update();
    }

    /// The list is complete.
    pub(super) fn done(&self) {
        self.listed.send_replace(self.begun);
    }

    /// Ends when there is an order that no list has answered; never, once nobody can order any more.
    pub(super) async fn wanted(&mut self) {
        if self.ordered.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
