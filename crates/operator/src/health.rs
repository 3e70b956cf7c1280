//! Liveness and readiness of the process, derived from the reports of the control loop.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::{Observer, Report};

/// Maximum time since the last iteration of a live control loop.
const MAX_ITERATION_AGE: Duration = Duration::from_mins(1);

/// Error of a liveness or readiness probe.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The control loop has not iterated for this long.
    #[error("the control loop has been stuck for {} s", .0.as_secs())]
    LoopStuck(Duration),
    /// At least one watched kind has not been listed yet.
    #[error("not every watch has been listed yet")]
    NotSynced,
}

/// Health of the control loop.
#[derive(Debug)]
pub struct Health {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    last_iteration: Instant,
    synced: bool,
}

impl Default for Health {
    /// Returns the state of a new process, which is live but not ready.
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                last_iteration: Instant::now(),
                synced: false,
            }),
        }
    }
}

impl Health {
    /// Fails if the control loop is stuck.
    pub fn live(&self) -> Result<(), HealthError> {
        let age = self.get().last_iteration.elapsed();
        if age <= MAX_ITERATION_AGE {
            return Ok(());
        }
        Err(HealthError::LoopStuck(age))
    }

    /// Fails if the control loop is stuck, or if not every watched kind was listed.
    pub fn ready(&self) -> Result<(), HealthError> {
        self.live()?;
        if self.get().synced {
            return Ok(());
        }
        Err(HealthError::NotSynced)
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
            Report::LoopIteration => self.lock().last_iteration = Instant::now(),
            Report::Synced(synced) => self.lock().synced = *synced,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &Health, live: &str, ready: &str) {
        let text = |result: Result<(), HealthError>| {
            result.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
        };
        assert_eq!(
            (text(health.live()), text(health.ready())),
            (live.into(), ready.into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_iterates_is_live() {
        let health = Health::default();
        check(&health, "ok", "not every watch has been listed yet");
        health.report(&Report::Synced(true));
        check(&health, "ok", "ok");
        tokio::time::advance(Duration::from_mins(1)).await;
        check(&health, "ok", "ok");
        tokio::time::advance(Duration::from_secs(1)).await;
        let late = "the control loop has been stuck for 61 s";
        check(&health, late, late);
        health.report(&Report::LoopIteration);
        check(&health, "ok", "ok");
        health.report(&Report::Synced(false));
        check(&health, "ok", "not every watch has been listed yet");
    }
}
