//! A sample of the fault matrix on a real API server. Every fault at every call is left to the simulator.

mod negative_control;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use mainstay_testkit::Random;
use mainstay_testkit::suite::TestCase;
use serde_json::Value;

use crate::support::World;
use crate::support::availability_log::AvailabilityLog;
use crate::support::calls::{Call, writes};
use crate::support::fault_scenarios::{
    FaultScenario, each_fault_scenario, each_migration_scenario, scenario,
};
use crate::support::faulty_client::{FaultyClient, InjectedFault, KINDS};
use crate::support::final_state::{FinalState, masked, panic_message, with_sorted_conditions};
use crate::support::path::{INSTALLED_KINDS, MESH_KINDS, ObjectPath};
use crate::support::world::named;

/// Defines a test per scenario.
macro_rules! test_cases {
    ($($name:ident),+ $(,)?) => {
        &[$(TestCase {
            name: concat!("faults::", stringify!($name)),
            start: || Box::pin(check(stringify!($name))),
        }),+]
    };
}

pub(crate) const TEST_CASES: &[TestCase] = each_fault_scenario!(test_cases);

/// Scenarios that migrate workloads: real istiods inject.
pub(crate) const MOVES: &[TestCase] = each_migration_scenario!(test_cases);

/// Negative control of the checks.
pub(crate) const CONTROL: &[TestCase] = &[TestCase {
    name: "faults::violations_are_detected",
    start: || Box::pin(negative_control::violations_are_detected()),
}];

/// Faults per scenario unless `MAINSTAY_MATRIX` is set; the whole matrix would take days.
const FEW: usize = 1;
const MANY: usize = KINDS.len();

fn share() -> usize {
    match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => MANY,
        Some(text) => text.parse().unwrap(),
        None => FEW,
    }
}

/// Runs a scenario without faults and then with each fault of the sample.
async fn check(name: &str) {
    let scenario = scenario(name);
    let baseline = perform(scenario, None).await;
    assert_eq!(baseline.broken, [""; 0], "{name}, without any fault");
    assert_eq!(
        baseline.late_writes, [""; 0],
        "{name}, without any fault, is not idle"
    );
    let mut wrong = Vec::new();
    let draws = draws(&baseline.calls, name);
    for draw in &draws {
        let problem = run_first(scenario, &baseline, draw).await;
        wrong.extend(problem.map(|problem| format!("{name} × {problem}")));
    }
    let (calls, runs) = (baseline.calls.len(), draws.len());
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs the first of these faults whose call is made, and returns what is wrong with the run.
async fn run_first(scenario: &FaultScenario, baseline: &Outcome, draw: &[InjectedFault]) -> Option<String> {
    for injected in draw {
        println!("{} × {injected:?}", scenario.name);
        let run = AssertUnwindSafe(perform_with_fault(scenario, *injected));
        let problem = match run.catch_unwind().await {
            Ok(run) if run.is_fault_injected => problem(baseline, &run),
            Ok(_) => continue,
            Err(panic) => Some(format!("did not complete: {}", panic_message(&*panic))),
        };
        return problem.map(|problem| format!("{injected:?}: {problem}"));
    }
    Some(format!("none of these calls was made: {draw:?}"))
}

/// Returns a fixed random sample: for each kind a fault and a call, followed by alternatives in case the call
/// is never made, and finally a crash.
fn draws(calls: &[Call], name: &str) -> Vec<Vec<InjectedFault>> {
    let seed = name
        .bytes()
        .fold(8, |sum: u64, byte| sum * 31 % 65_537 + u64::from(byte));
    let mut random = Random::new(seed);
    let first = random.below(KINDS.len());
    let count = |kind| calls.iter().filter(|call| call.kind == kind).count();
    let draw = |turn: usize| {
        // A call that is never made cannot fail.
        let possible = KINDS[(first + turn) % KINDS.len()].iter();
        let mut possible: Vec<_> = possible.filter(|(kind, _)| count(*kind) > 0).collect();
        let drawn = random.below(possible.len().max(1));
        possible.rotate_left(drawn);
        let all = possible.into_iter().chain(&KINDS[0][..1]);
        let faults = all.map(|(kind, fault)| InjectedFault {
            kind: *kind,
            number: 1 + random.below(count(*kind)),
            fault: *fault,
        });
        faults.collect()
    };
    (0..share()).map(draw).collect()
}

/// Runs a scenario so that the fault happens. If a run ends before that call, an earlier call fails instead.
async fn perform_with_fault(scenario: &FaultScenario, mut injected: InjectedFault) -> Outcome {
    loop {
        let run = perform(scenario, Some(injected)).await;
        if run.is_fault_injected || injected.number == 1 {
            return run;
        }
        injected.number -= injected.number.div_ceil(8);
    }
}

/// The outcome of a run.
struct Outcome {
    end: FinalState,
    calls: Vec<Call>,
    /// Writes after the operator was idle.
    late_writes: Vec<String>,
    broken: Vec<String>,
    is_fault_injected: bool,
}

/// Runs a scenario.
async fn perform(scenario: &FaultScenario, injected: Option<InjectedFault>) -> Outcome {
    let world = if scenario.migrates {
        World::real_injecting().await
    } else {
        World::real().await
    };
    (scenario.before)(&world).await;
    world.settle().await;
    world.stop_operator().await;
    transform(&world, scenario).await;
    let log = AvailabilityLog::begin(&world).await;
    let mark = world.mark();
    let is_fault_injected = act(&world, scenario, injected).await;
    let calls = world.calls(&mark);
    let mark = world.mark();
    world.pass(Duration::from_secs(1)).await;
    let after = world.calls(&mark);
    let history = log.close_unchecked(&world).await;
    let mut broken = [world.plan_checks.violations(), history.migration_violations()].concat();
    if !scenario.destroys {
        broken.extend(history.lost_injectors());
    }
    let outcome = Outcome {
        end: masked(objects(&world).await),
        calls,
        late_writes: writes(&after).into_iter().map(str::to_owned).collect(),
        broken,
        is_fault_injected,
    };
    world.end().await;
    outcome
}

/// Starts the operator and runs the action until the operator is idle; a crashed operator is replaced.
/// Returns whether the fault happened.
async fn act(world: &World, scenario: &FaultScenario, injected: Option<InjectedFault>) -> bool {
    let steps = async {
        (scenario.act)(world).await;
        world.wait_until_idle().await;
    };
    let Some(injected) = injected else {
        world.start_operator().await;
        steps.await;
        return false;
    };
    let (client, fault_state) = FaultyClient::client(world.operator_client(), injected);
    world.start_operator_with(client);
    tokio::pin!(steps);
    loop {
        tokio::select! {
            () = &mut steps => return fault_state.happened.load(Ordering::Relaxed),
            () = fault_state.crashed.notified() => world.restart_operator().await,
        }
    }
}

fn problem(baseline: &Outcome, run: &Outcome) -> Option<String> {
    if !run.broken.is_empty() {
        return Some(format!("invariants violated: {}", run.broken.join("; ")));
    }
    if let Some(difference) = baseline.end.difference(&run.end) {
        return Some(format!("another final state: {difference}"));
    }
    (!run.late_writes.is_empty()).then(|| format!("not idle: {:?}", run.late_writes))
}

/// Returns the objects of the mesh and the workloads of this scenario.
async fn objects(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for kind in MESH_KINDS {
        let found = world.list(kind, "").await;
        all.extend(found.into_iter().map(|object| named(kind, object)));
    }
    for kind in INSTALLED_KINDS {
        let found = world.list(kind, "managed-by=sail-operator").await;
        all.extend(found.into_iter().map(|object| named(kind, object)));
    }
    let spaces = world.known_namespaces();
    for space in &spaces {
        all.extend(world.get(&ObjectPath::cluster_scoped("Namespace", space)).await);
    }
    let apps = world.list("Deployment", "").await.into_iter();
    let apps = apps.filter(|app| spaces.iter().any(|space| app["metadata"]["namespace"] == **space));
    all.extend(apps.map(|app| named("Deployment", app)));
    all.iter()
        .map(|object| with_sorted_conditions(world.with_scenario_namespaces(object)))
        .collect()
}

/// Applies the transformation of the scenario to the installed objects.
async fn transform(world: &World, scenario: &FaultScenario) {
    for kind in INSTALLED_KINDS {
        for object in world.list(kind, "managed-by=sail-operator").await {
            let object = named(kind, object);
            let at = ObjectPath::of(&object);
            match (scenario.transform)(vec![object.clone()]).pop() {
                None => world.delete(&at).await,
                Some(other) if other != object => {
                    let (code, body) = world
                        .call("PUT", &at.path(), "application/json", Some(other))
                        .await;
                    assert_eq!(code, 200, "{at}: {body}");
                }
                Some(_) => {}
            }
        }
    }
}
