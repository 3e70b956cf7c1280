//! What goes wrong at every call of fourteen plays: takes a play, a call and a fault, runs it, and compares with the run in which nothing
//! went wrong.
//!
//! ```text
//! prepare ──dump──▶ state ──load──▶ twin:  operator starts, act, settle ──▶ end, calls
//!                         └─load──▶ fault at call n: the same ──▶ end equal? promises kept? writes few? quiet afterwards?
//! ```

mod kinds;
mod scene;
mod witness;

use std::time::Duration;

use mainstay_harness::ClusterOptions;
use mainstay_operator::DEFAULT_MAX_CONCURRENT_RECONCILES;
use mainstay_sim::snapshot;
use mainstay_testkit::Random;
use serde_json::Value;

use crate::support::World;
use crate::support::calls::{Call, Sort};
use crate::support::judge::{End, masked, text_of};
use crate::support::plays::{Play, each_move, each_play, play};
use crate::support::world::{Backing, injecting_options};
use kinds::Strike;
use witness::Witness;

/// What one run came to.
struct Outcome {
    end: End,
    calls: Vec<Call>,
    /// Writes after all had come to rest.
    restless: Vec<String>,
    broken: Vec<String>,
}

/// Runs a future in a paused world of its own.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// The state from which all runs of a play begin.
fn prepare(play: &Play) -> Vec<Value> {
    run(async {
        let world = World::simulated(&injecting_options()).await;
        (play.before)(&world).await;
        world.settle().await;
        world.stop_operator().await;
        world.promises.check();
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        let state = sim.sim().with(|state| snapshot::dump(state));
        (play.disguise)(state)
    })
}

/// One run from `state`; the operator is restarted whenever it dies.
fn perform(play: &Play, state: &[Value], max_concurrent: usize, strike: Option<&Strike>) -> Outcome {
    run(async {
        let options = ClusterOptions {
            max_concurrent,
            ..injecting_options()
        };
        let world = World::from_objects(&options, state.to_vec());
        let Backing::Sim(cluster) = &world.backing else {
            panic!("no simulator")
        };
        let witness = Witness::new(play);
        cluster.sim().add_controller(Box::new(witness.clone()));
        if let Some(strike) = strike {
            strike.arm(cluster.sim());
        }
        world.start_operator().await;
        world.rest().await;
        (play.act)(&world).await;
        world.rest().await;
        if strike.is_some_and(Strike::hides_events) {
            world.expire_watches().await;
        }
        let before = world.mark_start();
        let calls = world.calls(&before);
        let mark = world.mark();
        world.pass(PASSES).await;
        let after = world.calls(&mark);
        let mut broken = world.promises.broken();
        broken.extend(witness.broken());
        let Backing::Sim(sim) = &world.backing else {
            panic!("no simulator")
        };
        Outcome {
            end: masked(sim.sim().with(|state| snapshot::dump(state))),
            calls,
            restless: crate::support::calls::writes(&after)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            broken,
        }
    })
}

/// Long enough for three full passes.
const PASSES: Duration = Duration::from_mins(31);

/// How many writes more than without faults are forgiven: what was in flight is done again, and told in status and an event.
const FORGIVEN: usize = 12;

/// What a run did wrong.
fn verdict(play: &Play, baseline: &Baseline, strike: &Strike, state: &[Value]) -> Option<String> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        perform(play, state, baseline.max_concurrent, Some(strike))
    }));
    let complaint = match outcome {
        Err(panic) => Some(format!("never got there: {}", text_of(&*panic))),
        Ok(run) => complaint(&baseline.outcome, &run),
    };
    complaint.map(|complaint| {
        format!(
            "{} × {strike}, {} at once: {complaint}",
            play.name, baseline.max_concurrent
        )
    })
}

/// The run without faults at one level of concurrency.
struct Baseline {
    max_concurrent: usize,
    outcome: Outcome,
}

impl Baseline {
    fn new(play: &Play, state: &[Value], max_concurrent: usize) -> Self {
        let outcome = perform(play, state, max_concurrent, None);
        assert_eq!(outcome.broken, [""; 0], "without any fault");
        assert_eq!(outcome.restless, [""; 0], "not quiet, without any fault");
        Self {
            max_concurrent,
            outcome,
        }
    }
}

fn complaint(twin: &Outcome, run: &Outcome) -> Option<String> {
    if !run.broken.is_empty() {
        return Some(format!("promises broken: {}", run.broken.join("; ")));
    }
    if let Some(difference) = twin.end.difference(&run.end) {
        return Some(format!("another end: {difference}"));
    }
    if !run.restless.is_empty() {
        return Some(format!("not quiet: {:?}", run.restless));
    }
    let (few, many) = (count(twin), count(run));
    (many > few + FORGIVEN).then(|| format!("{many} writes instead of {few}"))
}

fn count(outcome: &Outcome) -> usize {
    outcome
        .calls
        .iter()
        .filter(|call| call.sort == Sort::Write)
        .count()
}

/// All strikes of a play, or a sample of them; `MAINSTAY_STRIKE` chooses those whose line contains it.
fn strikes(twin: &Outcome, share: Share, random: &mut Random) -> Vec<Strike> {
    let mut all = kinds::all(&twin.calls);
    if let Ok(chosen) = std::env::var("MAINSTAY_STRIKE") {
        all.retain(|strike| strike.to_string().contains(&chosen));
    }
    if let Share::Sample(count) = share {
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all.truncate(count);
    }
    all
}

/// How much of the matrix.
#[derive(Clone, Copy)]
enum Share {
    Whole,
    Sample(usize),
}

impl Share {
    /// `MAINSTAY_MATRIX=whole`, or a number of runs per play.
    fn asked() -> Self {
        match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
            Some("whole") => Self::Whole,
            Some(text) => Self::Sample(text.parse().unwrap()),
            None => Self::Sample(4),
        }
    }

    /// The share with one plan at a time and with the default concurrency. Of a sample, a quarter runs one at a time.
    fn by_concurrency(self) -> [(usize, Self); 2] {
        let (sequential, concurrent) = match self {
            Self::Whole => (Self::Whole, Self::Whole),
            Self::Sample(count) => (Self::Sample(count / 4), Self::Sample(count - count / 4)),
        };
        [(1, sequential), (DEFAULT_MAX_CONCURRENT_RECONCILES, concurrent)]
    }
}

fn check(name: &str) {
    let play = play(name);
    let state = prepare(play);
    let mut random = Random::new(6);
    let (mut calls, mut runs, mut wrong) = (0, 0, Vec::new());
    for (max_concurrent, share) in Share::asked().by_concurrency() {
        let baseline = Baseline::new(play, &state, max_concurrent);
        calls = baseline.outcome.calls.len();
        for strike in strikes(&baseline.outcome, share, &mut random) {
            runs += 1;
            wrong.extend(verdict(play, &baseline, &strike, &state));
        }
    }
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    let shown: Vec<&String> = wrong.iter().take(12).collect();
    assert!(wrong.is_empty(), "{} of {runs} runs: {shown:#?}", wrong.len());
}

/// A test per play.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })+
    };
}

each_play!(tests);
each_move!(tests);
