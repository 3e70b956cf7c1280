//! The operator as a task of the test program: takes a client, settings and a clock, runs until it is stopped or killed; every
//! plan it makes is checked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mainstay_mesh::{Plan, Snapshot};
use mainstay_operator::PlanInspector;

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

impl Promises {
    /// Returns a callback that checks every plan.
    pub fn inspector(&self) -> PlanInspector {
        let promises = self.clone();
        Arc::new(move |snapshot, plan| promises.inspect(snapshot, plan))
    }

    /// Looks at a plan, and at how long it takes to make it.
    fn inspect(&self, snapshot: &Snapshot, plan: &Plan) {
        let begun = Instant::now();
        let again = mainstay_mesh::plan(snapshot, &plan.subject);
        let took = begun.elapsed();
        let broken = mainstay_check::check(snapshot, plan);
        drop(again);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.plans += 1;
        kept.times.push(took);
        kept.broken.extend(broken.iter().map(ToString::to_string));
    }
}

/// `MAINSTAY_LOG` shows what the operator says.
pub fn init_log() {
    if std::env::var_os("MAINSTAY_LOG").is_some() {
        let level = tracing::Level::DEBUG;
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_test_writer()
            .try_init();
    }
}
