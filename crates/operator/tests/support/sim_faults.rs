//! Faults of calls and watches on the simulator, and runs with each of them.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use mainstay_sim::fault::{Fault, RequestCounts, Rule, Trigger};
use mainstay_sim::status::Status;
use mainstay_testkit::Random;

use crate::final_state::panic_message;

/// Response time that is longer than the timeout of any call.
const SLOW_RESPONSE_TIME: Duration = Duration::from_secs(90);

/// A fault at one call to one cluster.
pub struct InjectedFault {
    /// Name of the cluster; empty if there is only one.
    pub cluster: String,
    trigger: Trigger,
    fault: Fault,
    name: &'static str,
}

impl InjectedFault {
    /// Returns the rule that injects the fault into the calls of `client`.
    pub fn rule(&self, client: &str) -> Rule {
        Rule::once(client, self.trigger.clone(), self.fault.clone())
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.name, self.trigger)?;
        if self.cluster.is_empty() {
            return Ok(());
        }
        write!(f, " of cluster {:?}", self.cluster)
    }
}

/// Returns every fault at every call to `cluster` between two counts of requests.
pub fn faults_between(cluster: &str, start: RequestCounts, end: RequestCounts) -> Vec<InjectedFault> {
    let calls = (start.requests..end.requests).map(|number| (Trigger::Request(number), call_faults()));
    let watches = (start.watches..end.watches).map(|number| (Trigger::Watch(number), watch_faults()));
    let faults = calls.chain(watches).flat_map(|(trigger, kinds)| {
        kinds.into_iter().map(move |(name, fault)| InjectedFault {
            cluster: cluster.to_owned(),
            trigger: trigger.clone(),
            fault,
            name,
        })
    });
    faults.collect()
}

/// Runs a scenario with each fault and returns the problems. A panic is a problem, too.
pub fn find_problems<O>(
    faults: &[InjectedFault],
    perform: impl Fn(&InjectedFault) -> O,
    difference: impl Fn(&O) -> Option<String>,
) -> Vec<String> {
    let problem = |fault: &InjectedFault| {
        let problem = match std::panic::catch_unwind(AssertUnwindSafe(|| perform(fault))) {
            Err(panic) => Some(format!("did not complete: {}", panic_message(&*panic))),
            Ok(outcome) => difference(&outcome),
        };
        problem.map(|problem| format!("{fault}: {problem}"))
    };
    faults.iter().filter_map(problem).collect()
}

/// Prints the number of runs that ended as without faults; panics with the first problems, if any.
pub fn assert_no_problems(scenario: &str, calls: u64, runs: usize, problems: &[String]) {
    println!(
        "matrix {scenario}: {calls} calls, {runs} runs, {} as without faults",
        runs - problems.len()
    );
    let shown: Vec<&String> = problems.iter().take(12).collect();
    assert!(
        problems.is_empty(),
        "{} of {runs} runs: {shown:#?}",
        problems.len()
    );
}

fn call_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("crash before", Fault::CrashBefore),
        ("crash after", Fault::CrashAfter),
        ("request lost", Fault::LoseRequest),
        ("response lost", Fault::LoseResponse),
        ("409", Fault::conflict()),
        ("429", Fault::throttled(2)),
        ("500", Fault::internal()),
        ("503", Fault::unavailable()),
        ("504", Fault::timeout()),
        ("timeout", Fault::Slow(SLOW_RESPONSE_TIME)),
        (
            "executed, then 500",
            Fault::RejectAfter(Status::internal("injected fault")),
        ),
    ]
}

fn watch_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("watch dropped at once", Fault::DropWatch(0)),
        ("watch dropped after 2", Fault::DropWatch(2)),
        ("watch expired after 1", Fault::ExpireWatch(1)),
        ("event 0 missed", Fault::SkipEvent(0)),
        ("event 2 missed", Fault::SkipEvent(2)),
        ("event 1 twice", Fault::RepeatEvent(1)),
    ]
}

/// Reduces the faults to a random sample of those whose description contains `MAINSTAY_FAULT`. The size is
/// the number in `MAINSTAY_MATRIX`, or `default` if it is not set; `whole` keeps all.
pub fn sample<T: std::fmt::Display>(faults: &mut Vec<T>, default: usize, seed: u64) {
    if let Ok(chosen) = std::env::var("MAINSTAY_FAULT") {
        faults.retain(|fault| fault.to_string().contains(&chosen));
    }
    let count = match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => return,
        Some(text) => text.parse().unwrap(),
        None => default,
    };
    let mut random = Random::new(seed);
    for at in (1..faults.len()).rev() {
        faults.swap(at, random.below(at + 1));
    }
    faults.truncate(count);
}
