//! What is going on, for somebody who waits: says nothing unless it takes more than a second.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Says on stderr which step takes long; silent again once dropped.
pub(crate) struct Progress(Sender<String>);

const PATIENCE: Duration = Duration::from_secs(1);
const REPEAT: Duration = Duration::from_secs(5);

impl Progress {
    /// Starts the clock. Should there be no thread to be had, nothing is said.
    pub(crate) fn start() -> Self {
        let (sender, steps) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            let start = Instant::now();
            let mut step = String::new();
            let mut patience = PATIENCE;
            loop {
                match steps.recv_timeout(patience.saturating_sub(start.elapsed())) {
                    Ok(next) => step = next,
                    Err(RecvTimeoutError::Timeout) => {
                        say(&step, start.elapsed());
                        patience = start.elapsed() + REPEAT;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self(sender)
    }

    /// Starts the clock if somebody can see it: a log has no use for it.
    pub(crate) fn on_terminal() -> Option<Self> {
        std::io::stderr().is_terminal().then(Self::start)
    }

    /// A step begins.
    pub(crate) fn step(&self, what: &str) {
        // Whoever does not listen cannot be told.
        let _ = self.0.send(what.to_owned());
    }
}

fn say(step: &str, elapsed: Duration) {
    let _ = writeln!(anstream::stderr(), "{step} … {} s", elapsed.as_secs());
}
