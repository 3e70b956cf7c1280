//! Ctrl-C: takes a stage, and on a signal removes what is not committed before the process ends.

use std::ops::Deref;
use std::sync::Arc;

use super::stage::Stage;

/// A stage that cleans up after itself when the user gives up. A commit that is under way is finished first.
pub(super) fn guarded_stage() -> Guarded {
    let stage = Arc::new(Stage::default());
    #[cfg(unix)]
    watch(Arc::clone(&stage));
    Guarded(stage)
}

/// A stage that is shared with whoever waits for signals, and cleans up when its owner is done.
pub(super) struct Guarded(Arc<Stage>);

impl Deref for Guarded {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Signals are taken by a thread that waits for them, so no handler runs in the middle of anything. Threads that are started
/// later inherit the mask; no processes are.
#[cfg(unix)]
fn watch(stage: Arc<Stage>) {
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
            stage.abandon();
            std::process::exit(128 + signal as i32);
        }
    });
}
