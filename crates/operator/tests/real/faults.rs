//! A sample of the fault matrix on a real API server. The complete matrix, with every fault at every call,
//! runs on the simulator.

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
use crate::support::world::with_kind;

/// Defines a test for each scenario.
macro_rules! test_cases {
    ($($name:ident),+ $(,)?) => {
        &[$(TestCase {
            name: concat!("faults::", stringify!($name)),
            start: || Box::pin(check(stringify!($name))),
        }),+]
    };
}

pub(crate) const TEST_CASES: &[TestCase] = each_fault_scenario!(test_cases);

/// Scenarios that migrate workloads, in which real istiods inject.
pub(crate) const MIGRATION_TEST_CASES: &[TestCase] = each_migration_scenario!(test_cases);

/// Negative control for the checks.
pub(crate) const NEGATIVE_CONTROL: &[TestCase] = &[TestCase {
    name: "faults::violations_are_detected",
    start: || Box::pin(negative_control::violations_are_detected()),
}];

/// Number of faults per scenario unless `MAINSTAY_MATRIX` is set. The complete matrix would take days.
const DEFAULT_SAMPLE_SIZE: usize = 1;
const MAX_SAMPLE_SIZE: usize = KINDS.len();

fn sample_size() -> usize {
    match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => MAX_SAMPLE_SIZE,
        Some(text) => text.parse().unwrap(),
        None => DEFAULT_SAMPLE_SIZE,
    }
}

/// Runs a scenario without faults, and then with each fault of the sample.
async fn check(name: &str) {
    let scenario = scenario(name);
    let baseline = perform(scenario, None).await;
    assert_eq!(baseline.violations, [""; 0], "{name}, without any fault");
    assert_eq!(
        baseline.late_writes, [""; 0],
        "{name}, without any fault, is not idle"
    );
    let mut wrong = Vec::new();
    let sample = sample_faults(&baseline.calls, name);
    for alternatives in &sample {
        let problem = run_first_possible(scenario, &baseline, alternatives).await;
        wrong.extend(problem.map(|problem| format!("{name} × {problem}")));
    }
    let (calls, runs) = (baseline.calls.len(), sample.len());
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs a scenario with the first of these faults that occurs, and returns the problem of that run, if any.
/// A fault does not occur if its call is not made.
async fn run_first_possible(
    scenario: &FaultScenario,
    baseline: &Outcome,
    alternatives: &[InjectedFault],
) -> Option<String> {
    for injected in alternatives {
        println!("{} × {injected:?}", scenario.name);
        let run = AssertUnwindSafe(perform_with_fault(scenario, *injected));
        let problem = match run.catch_unwind().await {
            Ok(run) if run.is_fault_injected => find_problem(baseline, &run),
            Ok(_) => continue,
            Err(panic) => Some(format!("did not complete: {}", panic_message(&*panic))),
        };
        return problem.map(|problem| format!("{injected:?}: {problem}"));
    }
    Some(format!("none of these calls was made: {alternatives:?}"))
}

/// Returns a deterministic random sample. Each element consists of a fault of one kind at a random call,
/// alternatives in case this call is not made, and finally a crash.
fn sample_faults(calls: &[Call], name: &str) -> Vec<Vec<InjectedFault>> {
    let seed = name
        .bytes()
        .fold(8, |sum: u64, byte| sum * 31 % 65_537 + u64::from(byte));
    let mut random = Random::new(seed);
    let first = random.below(KINDS.len());
    let count = |kind| calls.iter().filter(|call| call.kind == kind).count();
    let choose_faults = |turn: usize| {
        // Faults of calls that are never made are excluded.
        let possible = KINDS[(first + turn) % KINDS.len()].iter();
        let mut possible: Vec<_> = possible.filter(|(kind, _)| count(*kind) > 0).collect();
        let chosen = random.below(possible.len().max(1));
        possible.rotate_left(chosen);
        let all = possible.into_iter().chain(&KINDS[0][..1]);
        let faults = all.map(|(kind, fault)| InjectedFault {
            kind: *kind,
            number: 1 + random.below(count(*kind)),
            fault: *fault,
        });
        faults.collect()
    };
    (0..sample_size()).map(choose_faults).collect()
}

/// Runs a scenario with a fault. If the run ends before the call with the fault, repeats it with the fault
/// at an earlier call.
async fn perform_with_fault(scenario: &FaultScenario, mut injected: InjectedFault) -> Outcome {
    loop {
        let run = perform(scenario, Some(injected)).await;
        if run.is_fault_injected || injected.number == 1 {
            return run;
        }
        injected.number -= injected.number.div_ceil(8);
    }
}

/// Outcome of a run.
struct Outcome {
    end: FinalState,
    calls: Vec<Call>,
    /// Writes after the operator was idle.
    late_writes: Vec<String>,
    violations: Vec<String>,
    is_fault_injected: bool,
}

/// Runs a scenario.
async fn perform(scenario: &FaultScenario, injected: Option<InjectedFault>) -> Outcome {
    let world = if scenario.migrates {
        World::real_injecting().await
    } else {
        World::real().await
    };
    (scenario.set_up)(&world).await;
    world.settle().await;
    world.stop_operator().await;
    transform(&world, scenario).await;
    let log = AvailabilityLog::start(&world).await;
    let mark = world.mark();
    let is_fault_injected = perform_action(&world, scenario, injected).await;
    let calls = world.calls(&mark);
    let mark = world.mark();
    world.sleep(Duration::from_secs(1)).await;
    let after = world.calls(&mark);
    let history = log.stop(&world).await;
    let mut violations = [world.plan_checks.violations(), history.migration_violations()].concat();
    if !scenario.deletes_in_use {
        violations.extend(history.missing_injectors());
    }
    let outcome = Outcome {
        end: masked(objects(&world).await),
        calls,
        late_writes: writes(&after).into_iter().map(str::to_owned).collect(),
        violations,
        is_fault_injected,
    };
    world.end().await;
    outcome
}

/// Starts the operator, runs the action and waits until the operator is idle. Replaces a crashed operator.
/// Returns whether the fault occurred.
async fn perform_action(world: &World, scenario: &FaultScenario, injected: Option<InjectedFault>) -> bool {
    let steps = async {
        (scenario.action)(world).await;
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

fn find_problem(baseline: &Outcome, run: &Outcome) -> Option<String> {
    if !run.violations.is_empty() {
        return Some(format!("invariants violated: {}", run.violations.join("; ")));
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
        all.extend(found.into_iter().map(|object| with_kind(kind, object)));
    }
    for kind in INSTALLED_KINDS {
        let found = world.list(kind, "managed-by=sail-operator").await;
        all.extend(found.into_iter().map(|object| with_kind(kind, object)));
    }
    let namespaces = world.scenario_namespaces();
    for namespace in &namespaces {
        all.extend(
            world
                .get(&ObjectPath::cluster_scoped("Namespace", namespace))
                .await,
        );
    }
    let apps = world.list("Deployment", "").await.into_iter();
    let apps = apps.filter(|app| {
        namespaces
            .iter()
            .any(|namespace| app["metadata"]["namespace"] == **namespace)
    });
    all.extend(apps.map(|app| with_kind("Deployment", app)));
    all.iter()
        .map(|object| with_sorted_conditions(world.with_scenario_namespaces(object)))
        .collect()
}

/// Applies the transformation of the scenario to the installed objects.
async fn transform(world: &World, scenario: &FaultScenario) {
    for kind in INSTALLED_KINDS {
        for object in world.list(kind, "managed-by=sail-operator").await {
            let object = with_kind(kind, object);
            let at = ObjectPath::from_object(&object);
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
