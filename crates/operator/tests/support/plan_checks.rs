//! Checks every plan of an operator, and measures planning times.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mainstay_mesh::{Plan, Snapshot};
use mainstay_operator::PlanInspector;

/// Violations and planning times of a world. Clones share the data.
#[derive(Clone, Default)]
pub struct PlanChecks(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    violations: Vec<String>,
    plans: usize,
    times: Vec<Duration>,
}

/// Statistics of planning times.
pub struct PlanTimes {
    pub slowest: Duration,
    pub median: Duration,
    pub plans: usize,
}

impl PlanChecks {
    /// Panics if a plan violated an invariant.
    pub fn check(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    pub fn violations(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .violations
            .clone()
    }

    /// Returns the number of plans.
    pub fn plans(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).plans
    }

    /// Discards the recorded times.
    pub fn reset_times(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .times
            .clear();
    }

    /// Returns statistics of the recorded times.
    pub fn times(&self) -> PlanTimes {
        let mut times = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .times
            .clone();
        times.sort_unstable();
        let at = |index: usize| times.get(index).copied().unwrap_or_default();
        PlanTimes {
            slowest: at(times.len().saturating_sub(1)),
            median: at(times.len() / 2),
            plans: times.len(),
        }
    }
}

impl PlanChecks {
    /// Returns a callback that checks every plan.
    pub fn inspector(&self) -> PlanInspector {
        let plan_checks = self.clone();
        Arc::new(move |snapshot, plan| plan_checks.inspect(snapshot, plan))
    }

    /// Checks a plan, and measures the time to compute it again.
    fn inspect(&self, snapshot: &Snapshot, plan: &Plan) {
        let start = Instant::now();
        let again = mainstay_mesh::plan(snapshot, &plan.subject);
        let time = start.elapsed();
        let violations = mainstay_check::check(snapshot, plan);
        drop(again);
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.plans += 1;
        recorded.times.push(time);
        recorded
            .violations
            .extend(violations.iter().map(ToString::to_string));
    }
}

/// Enables the operator's log if `MAINSTAY_LOG` is set.
pub fn init_log() {
    if std::env::var_os("MAINSTAY_LOG").is_some() {
        let level = tracing::Level::DEBUG;
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_test_writer()
            .try_init();
    }
}
