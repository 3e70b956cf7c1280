//! The upgrade calculated: takes an input and a plot, lets the operator's own reconciler plan it, carries the plans out on plain data and
//! calculates what becomes of pods. No API, no JSON of pods: for clusters of many workloads.
//!
//! *Invariant:* the recording is the one the embedded cluster gives; a test compares them on random clusters.

mod objects;
mod rollout;
mod world;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Reconciler;
use mainstay_operator::reconciler::{NextPlan, PlanOutcome};

use crate::input::Input;
use crate::limits::Limits;
use crate::recording::Recording;
use crate::scene::Scene;
use crate::wish::Plot;
use world::World;

/// Between two looks at whether it is over: the same as on the embedded cluster, so that beginnings agree.
const STEP: Duration = Duration::from_secs(5);
/// Plans at one moment beyond this many are at odds with each other.
const MOST_AT_ONCE: usize = 10_000_000;

/// Plays it.
pub(crate) fn play(
    catalog: &Arc<Catalog>,
    input: &Input,
    (scene, plot, limits): (&Scene, &Plot, &Limits),
) -> Recording {
    let (library, _) = Library::from_catalog(catalog);
    let settings = Settings {
        operator_namespace: mainstay_harness::OPERATOR_NAMESPACE.into(),
        ..Settings::default()
    };
    let mut reconciler = Reconciler::new(limits.start, Arc::new(settings), Arc::new(library), 1);
    // Looking at every workload every few minutes of virtual time would be most of the work, and find nothing.
    reconciler.disable_full_pass();
    let mut stage = Stage {
        now: later(limits.start, STEP),
        world: World::new(catalog.clone(), scene),
        reconciler,
        recording: Recording::new(plot.istio.name()),
        busy: false,
    };
    stage.world.load(input, plot, &mut stage.reconciler, stage.now);
    stage.reconciler.start_planning();
    stage.rest(limits.warm_up);
    if stage.world.load_absent(&mut stage.reconciler, stage.now) {
        stage.pass(later(stage.now, STEP));
        stage.rest(limits.warm_up);
    }
    let (reconciler, recording) = (&stage.reconciler, &mut stage.recording);
    recording.note_revisions(reconciler.snapshot());
    recording.begin(stage.now);
    stage.world.begin(stage.now, &mut stage.recording);
    stage.world.set_spec(plot, &mut stage.reconciler);
    stage.run(limits);
    let (reconciler, recording) = (&stage.reconciler, &mut stage.recording);
    recording.close(reconciler.snapshot());
    stage.recording
}

struct Stage<'a> {
    now: Timestamp,
    world: World<'a>,
    reconciler: Reconciler,
    recording: Recording,
    /// Whether anything was done since somebody asked.
    busy: bool,
}

impl Stage<'_> {
    /// Waits until nothing is to be done.
    fn rest(&mut self, most: Duration) {
        let end = later(self.now, most);
        loop {
            self.busy = false;
            self.pass(later(self.now, STEP));
            if !self.busy || self.now >= end {
                return;
            }
        }
    }

    /// Plays until it has been quiet for long enough.
    fn run(&mut self, limits: &Limits) {
        let end = later(self.now, limits.most);
        loop {
            self.pass(later(self.now, STEP));
            let quiet_since = self.recording.last.unwrap_or(self.now);
            if self.now >= later(quiet_since, limits.quiet) {
                self.recording.rested = true;
                return;
            }
            if self.now >= end {
                return;
            }
        }
    }

    /// Lets time pass until `end`: each moment at which a pod or the reconciler has something to do is visited.
    fn pass(&mut self, end: Timestamp) {
        self.work();
        loop {
            let next = self.world.due().map_or(end, |due| due.min(end));
            let next = next.min(self.reconciler.next_due()).max(self.now);
            if next >= end && next > self.now {
                self.now = end;
                self.turn();
                return;
            }
            self.now = if next > self.now { next } else { tick(self.now) };
            if self.now >= end {
                self.now = end;
                self.turn();
                return;
            }
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.world
            .advance(self.now, &mut self.reconciler, &mut self.recording);
        self.work();
    }

    /// Carries out every plan that can be made now.
    fn work(&mut self) {
        for _ in 0..MOST_AT_ONCE {
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
                        self.world
                            .carry_out(&plan, self.now, &mut self.reconciler, &mut self.recording);
                    match &ended {
                        PlanOutcome::Succeeded => {
                            plan.steps.truncate(done);
                            self.recording.carried_out(&plan, self.now);
                        }
                        PlanOutcome::Failed(failed) => self.recording.refused(&plan, &failed.message),
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

/// The smallest step of a timer.
fn tick(now: Timestamp) -> Timestamp {
    later(now, Duration::from_millis(1))
}
