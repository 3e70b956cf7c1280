//! Signal handling: removes uncommitted files before the process ends.

use std::ops::Deref;
use std::sync::Arc;

use super::transaction::Transaction;

/// Returns a transaction that is rolled back on a signal. A commit in progress is finished first.
pub(super) fn guarded_transaction() -> Guarded {
    let transaction = Arc::new(Transaction::default());
    #[cfg(unix)]
    watch(Arc::clone(&transaction));
    Guarded(transaction)
}

/// A transaction shared with the signal thread; rolled back on drop.
pub(super) struct Guarded(Arc<Transaction>);

impl Deref for Guarded {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

/// Receives signals in a dedicated thread, so no handler interrupts other code. Threads that start later
/// inherit the mask.
#[cfg(unix)]
fn watch(transaction: Arc<Transaction>) {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            transaction.roll_back();
            std::process::exit(128 + signal as i32);
        }
    });
}
