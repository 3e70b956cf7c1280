//! Calculates the upgrade: the operator's reconciler plans it, and its plans are executed on plain data with
//! calculated rollouts instead of an API server. Used for clusters with many workloads.
//!
//! *Invariant:* the recording equals that of the embedded cluster; a test compares both on random clusters.

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

use crate::limits::Limits;
use crate::recording::Recording;
use crate::rehearse::Simulation;
use cluster::CalculatedCluster;

/// Interval between checks for completion; equal to the embedded cluster's, so that start times agree.
const STEP: Duration = Duration::from_secs(5);
/// Maximum number of plans at one instant, as protection against plans that undo each other.
const MAX_PLANS_PER_INSTANT: usize = 10_000_000;

/// Runs the rehearsal.
pub(crate) fn run(catalog: &Arc<Catalog>, simulation: Simulation<'_>) -> Recording {
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
    // Resyncing every workload every few minutes of virtual time would dominate the cost and find nothing.
    reconciler.disable_full_pass();
    let mut run = Calculation {
        now: later(limits.start, STEP),
        cluster: CalculatedCluster::new(catalog.clone(), model),
        reconciler,
        recording: Recording::new(planned.istio.name()),
        busy: false,
    };
    run.cluster.load(input, planned, &mut run.reconciler, run.now);
    run.reconciler.start_planning();
    run.wait_idle(limits.warm_up);
    if run.cluster.create_missing_pods(&mut run.reconciler, run.now) {
        run.pass(later(run.now, STEP));
        run.wait_idle(limits.warm_up);
    }
    let (reconciler, recording) = (&run.reconciler, &mut run.recording);
    recording.note_revisions(reconciler.snapshot());
    recording.begin(run.now);
    run.cluster.begin(run.now, &mut run.recording);
    run.cluster.set_spec(planned, &mut run.reconciler);
    run.run(limits);
    let (reconciler, recording) = (&run.reconciler, &mut run.recording);
    recording.close(reconciler.snapshot());
    run.recording
}

struct Calculation<'a> {
    now: Timestamp,
    cluster: CalculatedCluster<'a>,
    reconciler: Reconciler,
    recording: Recording,
    /// Whether a plan was executed since this flag was cleared.
    busy: bool,
}

impl Calculation<'_> {
    /// Waits until the reconciler is idle.
    fn wait_idle(&mut self, max: Duration) {
        let end = later(self.now, max);
        loop {
            self.busy = false;
            self.pass(later(self.now, STEP));
            if !self.busy || self.now >= end {
                return;
            }
        }
    }

    /// Runs until nothing has changed for the idle time.
    fn run(&mut self, limits: &Limits) {
        let end = later(self.now, limits.max);
        loop {
            self.pass(later(self.now, STEP));
            let quiet_since = self.recording.last.unwrap_or(self.now);
            if self.now >= later(quiet_since, limits.quiet) {
                self.recording.settled = true;
                return;
            }
            if self.now >= end {
                return;
            }
        }
    }

    /// Advances time to `end`, stopping at each instant with a pod event or a requeue.
    fn pass(&mut self, end: Timestamp) {
        self.work();
        loop {
            let next = self.cluster.due().map_or(end, |due| due.min(end));
            let next = next.min(self.reconciler.next_due()).max(self.now);
            if next >= end && next > self.now {
                self.now = end;
                self.step();
                return;
            }
            self.now = if next > self.now { next } else { tick(self.now) };
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
        self.work();
    }

    /// Executes every plan that is due.
    fn work(&mut self) {
        for _ in 0..MAX_PLANS_PER_INSTANT {
            let Some(next) = self.reconciler.next_plan(self.now) else {
                return;
            };
            match next {
                NextPlan::Panicked(_) => {}
                NextPlan::Idle(plan) => self.recording.inspect(self.reconciler.snapshot(), &plan),
                NextPlan::Execute(mut plan) => {
                    self.recording.inspect(self.reconciler.snapshot(), &plan);
                    self.busy = true;
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

/// Resolution of a timer.
fn tick(now: Timestamp) -> Timestamp {
    later(now, Duration::from_millis(1))
}
