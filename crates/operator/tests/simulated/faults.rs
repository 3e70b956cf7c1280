//! The fault matrix. Runs each scenario with a fault at every call, and compares the result with the run
//! without faults.
//!
//! ```text
//! prepare ──dump──▶ state ──load──▶ baseline:  operator starts, act, settle ──▶ final state, calls
//!                         └─load──▶ fault at call n: the same ──▶ final state equal? invariants kept?
//!                                                                 few writes? idle afterwards?
//! ```

mod kinds;
mod observer;
mod view;

use std::time::Duration;

use mainstay_harness::ClusterOptions;
use mainstay_operator::DEFAULT_MAX_CONCURRENT_RECONCILES;
use mainstay_sim::snapshot;
use mainstay_testkit::Random;
use serde_json::Value;

use crate::support::World;
use crate::support::calls::{Call, CallKind};
use crate::support::fault_scenarios::{
    FaultScenario, each_fault_scenario, each_migration_scenario, scenario,
};
use crate::support::final_state::{FinalState, masked, panic_message};
use crate::support::virtual_time::run;
use crate::support::world::{Backing, injecting_options};
use kinds::InjectedFault;
use observer::PodObserver;

/// Outcome of a run.
struct Outcome {
    end: FinalState,
    calls: Vec<Call>,
    /// Writes after the operator was idle.
    late_writes: Vec<String>,
    violations: Vec<String>,
}

/// Returns the initial state of all runs of a scenario.
pub(crate) fn prepare(scenario: &FaultScenario) -> Vec<Value> {
    run(async {
        let world = World::simulated(&injecting_options()).await;
        (scenario.set_up)(&world).await;
        world.settle().await;
        world.stop_operator().await;
        world.plan_checks.check();
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        let state = sim.sim().with(|state| snapshot::dump(state));
        (scenario.transform)(state)
    })
}

/// Runs a scenario from `state`. Restarts the operator when it crashes.
fn perform(
    scenario: &FaultScenario,
    state: &[Value],
    max_concurrent: usize,
    fault: Option<&InjectedFault>,
) -> Outcome {
    run(async {
        let options = ClusterOptions {
            max_concurrent,
            ..injecting_options()
        };
        let world = World::from_objects(&options, state.to_vec());
        let Backing::Sim(cluster) = &world.backing else {
            panic!("no simulator")
        };
        let observer = PodObserver::new(scenario);
        cluster.sim().add_controller(Box::new(observer.clone()));
        if let Some(fault) = fault {
            fault.inject(cluster.sim());
        }
        world.start_operator().await;
        world.wait_until_idle().await;
        (scenario.action)(&world).await;
        world.wait_until_idle().await;
        if fault.is_some_and(InjectedFault::drops_events) {
            world.expire_watches().await;
        }
        let before = world.mark_start();
        let calls = world.calls(&before);
        let mark = world.mark();
        world.sleep(THREE_FULL_PASSES).await;
        let after = world.calls(&mark);
        let mut violations = world.plan_checks.violations();
        violations.extend(observer.violations());
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        Outcome {
            end: masked(sim.sim().with(|state| snapshot::dump(state))),
            calls,
            late_writes: crate::support::calls::writes(&after)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            violations,
        }
    })
}

/// Time that contains three full passes.
const THREE_FULL_PASSES: Duration = Duration::from_mins(31);

/// Maximum number of additional writes. The interrupted write is repeated, and the error is reported in the
/// status and in an Event.
const ALLOWED_WRITES: usize = 12;

/// Runs a scenario with a fault, and returns the problem of the run, if any.
fn check_run(
    scenario: &FaultScenario,
    baseline: &Baseline,
    fault: &InjectedFault,
    state: &[Value],
) -> Option<String> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        perform(scenario, state, baseline.max_concurrent, Some(fault))
    }));
    let problem = match outcome {
        Err(panic) => Some(format!("did not complete: {}", panic_message(&*panic))),
        Ok(run) => difference(&baseline.outcome, &run),
    };
    problem.map(|problem| {
        format!(
            "{} × {fault}, {} at once: {problem}",
            scenario.name, baseline.max_concurrent
        )
    })
}

/// The run without faults at one level of concurrency.
struct Baseline {
    max_concurrent: usize,
    outcome: Outcome,
}

impl Baseline {
    fn new(scenario: &FaultScenario, state: &[Value], max_concurrent: usize) -> Self {
        let outcome = perform(scenario, state, max_concurrent, None);
        assert_eq!(outcome.violations, [""; 0], "without any fault");
        assert_eq!(outcome.late_writes, [""; 0], "not idle, without any fault");
        Self {
            max_concurrent,
            outcome,
        }
    }
}

fn difference(baseline: &Outcome, run: &Outcome) -> Option<String> {
    if !run.violations.is_empty() {
        return Some(format!("invariants violated: {}", run.violations.join("; ")));
    }
    if let Some(difference) = baseline.end.difference(&run.end) {
        return Some(format!("another final state: {difference}"));
    }
    if !run.late_writes.is_empty() {
        return Some(format!("not idle: {:?}", run.late_writes));
    }
    let (few, many) = (count(baseline), count(run));
    (many > few + ALLOWED_WRITES).then(|| format!("{many} writes instead of {few}"))
}

fn count(outcome: &Outcome) -> usize {
    outcome
        .calls
        .iter()
        .filter(|call| call.kind == CallKind::Write)
        .count()
}

/// Returns all faults of a scenario, or a sample of them. If `MAINSTAY_FAULT` is set, only faults whose
/// description contains it are included.
fn faults(baseline: &Outcome, share: Share, random: &mut Random) -> Vec<InjectedFault> {
    let mut all = kinds::all_faults(&baseline.calls);
    if let Ok(chosen) = std::env::var("MAINSTAY_FAULT") {
        all.retain(|fault| fault.to_string().contains(&chosen));
    }
    if let Share::Sample(count) = share {
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all.truncate(count);
    }
    all
}

/// Share of the matrix that runs.
#[derive(Clone, Copy)]
enum Share {
    Whole,
    Sample(usize),
}

impl Share {
    /// Reads `MAINSTAY_MATRIX`: `whole`, or a number of runs per scenario.
    fn from_env() -> Self {
        match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
            Some("whole") => Self::Whole,
            Some(text) => Self::Sample(text.parse().unwrap()),
            None => Self::Sample(4),
        }
    }

    /// Splits the share into runs with one plan at a time and runs with the default concurrency. A quarter
    /// of a sample runs with one plan at a time.
    fn by_concurrency(self) -> [(usize, Self); 2] {
        let (sequential, concurrent) = match self {
            Self::Whole => (Self::Whole, Self::Whole),
            Self::Sample(count) => (Self::Sample(count / 4), Self::Sample(count - count / 4)),
        };
        [(1, sequential), (DEFAULT_MAX_CONCURRENT_RECONCILES, concurrent)]
    }
}

fn check(name: &str) {
    let scenario = scenario(name);
    let state = prepare(scenario);
    let mut random = Random::new(6);
    let (mut calls, mut runs, mut wrong) = (0, 0, Vec::new());
    for (max_concurrent, share) in Share::from_env().by_concurrency() {
        let baseline = Baseline::new(scenario, &state, max_concurrent);
        calls = baseline.outcome.calls.len();
        for fault in faults(&baseline.outcome, share, &mut random) {
            runs += 1;
            wrong.extend(check_run(scenario, &baseline, &fault, &state));
        }
    }
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    let shown: Vec<&String> = wrong.iter().take(12).collect();
    assert!(wrong.is_empty(), "{} of {runs} runs: {shown:#?}", wrong.len());
}

/// Defines a test for each scenario.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })+
    };
}

each_fault_scenario!(tests);
each_migration_scenario!(tests);
