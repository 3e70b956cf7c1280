//! Whether the process is alive and ready: takes the loop's reports, gives the answers to the two probes. Knows no network.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::{Observer, Report};

/// A loop that has not turned for so long hangs.
const LONGEST_TURN: Duration = Duration::from_mins(1);

/// What is known of the loop.
#[derive(Debug)]
pub struct Health {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    turned: Instant,
    synced: bool,
}

impl Default for Health {
    /// Alive since now, not ready.
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                turned: Instant::now(),
                synced: false,
            }),
        }
    }
}

impl Health {
    /// Whether the process should live on, or why not.
    pub fn live(&self) -> Result<(), String> {
        let silent = self.get().turned.elapsed();
        if silent <= LONGEST_TURN {
            return Ok(());
        }
        Err(format!("the loop has not turned for {} s", silent.as_secs()))
    }

    /// Whether the caches are filled, or why not.
    pub fn ready(&self) -> Result<(), String> {
        self.live()?;
        if self.get().synced {
            return Ok(());
        }
        Err("not everything was listed yet".into())
    }

    fn get(&self) -> State {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Observer for Health {
    fn report(&self, report: &Report<'_>) {
        match report {
            Report::LoopIteration => self.lock().turned = Instant::now(),
            Report::Synced(synced) => self.lock().synced = *synced,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &Health, live: &str, ready: &str) {
        let said = |answer: Result<(), String>| answer.err().unwrap_or_else(|| "ok".into());
        assert_eq!(
            (said(health.live()), said(health.ready())),
            (live.into(), ready.into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_turns_is_alive() {
        let health = Health::default();
        check(&health, "ok", "not everything was listed yet");
        health.report(&Report::Synced(true));
        check(&health, "ok", "ok");
        tokio::time::advance(Duration::from_mins(1)).await;
        check(&health, "ok", "ok");
        tokio::time::advance(Duration::from_secs(1)).await;
        let late = "the loop has not turned for 61 s";
        check(&health, late, late);
        health.report(&Report::LoopIteration);
        check(&health, "ok", "ok");
        health.report(&Report::Synced(false));
        check(&health, "ok", "not everything was listed yet");
    }
}
