//! Calculates the upgrade: the operator's reconciler plans it, and its plans are executed on plain data
//! with calculated rollouts instead of an API server. Used for clusters with many workloads.
//!
//! *Invariant:* the recording equals that of the embedded cluster. A test compares both on random clusters.

mod cluster;
mod objects;
mod rollout;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Reconciler;
use mainstay_operator::reconciler::{NextPlan, PlanOutcome};

use crate::cluster_model::Facts;
use crate::limits::Limits;
use crate::recording::Recording;
use crate::rehearse::Simulation;
use cluster::CalculatedCluster;

/// Interval between checks for completion. It equals that of the embedded cluster, so that start times are
/// equal.
const STEP: Duration = Duration::from_secs(5);
/// Maximum number of plans at one instant, as protection against plans that undo each other.
const MAX_PLANS_PER_INSTANT: usize = 10_000_000;

/// Runs the rehearsal and returns its recording.
pub(crate) fn run(catalog: &Arc<Catalog>, simulation: Simulation<'_>, facts: Facts) -> Recording {
    let Simulation {
        input,
        model,
        planned,
        limits,
    } = simulation;
    let (library, _) = Library::from_catalog(catalog);
    let settings = Settings {
        operator_namespace: mainstay_harness::OPERATOR_NAMESPACE.into(),
        ..Settings::default()
    };
    let mut reconciler = Reconciler::new(limits.start, Arc::new(settings), Arc::new(library), 1);
    // A resync of every workload every few minutes of virtual time would dominate the cost and have no
    // effect.
    reconciler.disable_full_pass();
    let mut run = Calculation {
        now: later(limits.start, STEP),
        cluster: CalculatedCluster::new(catalog.clone(), model),
        reconciler,
        recording: Recording::new(planned.istio.name()),
        has_executed: false,
    };
    run.cluster.add_workloads(facts);
    run.cluster.load(input, planned, &mut run.reconciler, run.now);
    run.reconciler.start_planning();
    run.wait_idle(limits.warm_up);
    if run.cluster.create_missing_pods(&mut run.reconciler, run.now) {
        run.advance_to(later(run.now, STEP));
        run.wait_idle(limits.warm_up);
    }
    let (reconciler, recording) = (&run.reconciler, &mut run.recording);
    recording.record_revisions(reconciler.snapshot());
    recording.start(run.now);
    run.cluster.record_ready_pods(run.now, &mut run.recording);
    run.cluster.set_spec(planned, &mut run.reconciler);
    run.run_until_idle(limits);
    let (reconciler, recording) = (&run.reconciler, &mut run.recording);
    recording.record_final_state(reconciler.snapshot());
    run.recording
}

struct Calculation<'a> {
    now: Timestamp,
    cluster: CalculatedCluster<'a>,
    reconciler: Reconciler,
    recording: Recording,
    /// Whether a plan was executed since this flag was cleared.
    has_executed: bool,
}

impl Calculation<'_> {
    /// Waits until the reconciler is idle, but at most `max`.
    fn wait_idle(&mut self, max: Duration) {
        let end = later(self.now, max);
        loop {
            self.has_executed = false;
            self.advance_to(later(self.now, STEP));
            if !self.has_executed || self.now >= end {
                return;
            }
        }
    }

    /// Runs until nothing has changed for the idle time, or the time limit is reached.
    fn run_until_idle(&mut self, limits: &Limits) {
        let end = later(self.now, limits.max);
        loop {
            self.advance_to(later(self.now, STEP));
            let idle_since = self.recording.last.unwrap_or(self.now);
            if self.now >= later(idle_since, limits.idle) {
                self.recording.settled = true;
                return;
            }
            if self.now >= end {
                return;
            }
        }
    }

    /// Advances time to `end`. Stops at each instant at which a pod event or a requeue is due.
    fn advance_to(&mut self, end: Timestamp) {
        self.execute_due_plans();
        loop {
            let next = self.cluster.next_due().map_or(end, |due| due.min(end));
            let next = next.min(self.reconciler.next_due()).max(self.now);
            if next >= end && next > self.now {
                self.now = end;
                self.step();
                return;
            }
            self.now = if next > self.now {
                next
            } else {
                next_instant(self.now)
            };
            if self.now >= end {
                self.now = end;
                self.step();
                return;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        self.cluster
            .advance(self.now, &mut self.reconciler, &mut self.recording);
        self.execute_due_plans();
    }

    /// Executes every plan that is due.
    fn execute_due_plans(&mut self) {
        for _ in 0..MAX_PLANS_PER_INSTANT {
            let Some(next) = self.reconciler.next_plan(self.now) else {
                return;
            };
            match next {
                NextPlan::Panicked(_) => {}
                NextPlan::Idle(plan) => self.recording.inspect(self.reconciler.snapshot(), &plan),
                NextPlan::Execute(mut plan) => {
                    self.recording.inspect(self.reconciler.snapshot(), &plan);
                    self.has_executed = true;
                    let (done, ended) =
                        self.cluster
                            .execute(&plan, self.now, &mut self.reconciler, &mut self.recording);
                    match &ended {
                        PlanOutcome::Succeeded => {
                            plan.steps.truncate(done);
                            self.recording.record_plan(&plan, self.now);
                        }
                        PlanOutcome::Failed(failed) => {
                            self.recording.record_rejection(&plan, &failed.message);
                        }
                        PlanOutcome::Interrupted => {}
                    }
                    self.reconciler.finish_plan(&plan, ended, self.now);
                }
            }
        }
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Returns the next instant at the resolution of timers.
fn next_instant(now: Timestamp) -> Timestamp {
    later(now, Duration::from_millis(1))
}
