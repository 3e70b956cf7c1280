//! Test harness for tests that need the isolated namespace, with output like libtest's.
//!
//! `libtest-mimic` (0.8, `run(arguments, trials)`) is not used: these suites need one long-lived runtime per
//! lane (test cases of a lane share a cluster that lives on it and is shut down in order), and SIGINT and
//! SIGTERM handled by the first process of a pid namespace. `libtest-mimic` owns its worker threads and has
//! no hooks for their start and end, so only its argument parsing and printing could be used.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the suite prints like libtest"
)]

use std::cell::RefCell;
use std::future::Future;
use std::panic::{self, PanicHookInfo};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mainstay_gostd::error::chain;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::cases::SAMPLE;
use crate::isolation;
use crate::peer::built_peer;

/// A running test case. It fails by a panic.
pub type TestFuture = Pin<Box<dyn Future<Output = ()>>>;

/// A test case.
#[derive(Clone, Copy, Debug)]
pub struct TestCase {
    /// Name, matched by filters.
    pub name: &'static str,
    /// Starts the test case.
    pub start: fn() -> TestFuture,
}

/// Makes an array of test cases from pairs of a name and a future.
#[macro_export]
macro_rules! test_cases {
    ($($name:literal => $run:expr),+ $(,)?) => {
        [$($crate::suite::TestCase { name: $name, start: || ::std::boxed::Box::pin($run) }),+]
    };
}

/// Returns all test cases, or every N-th of each group if [`SAMPLE`] is N. CI runs a sample of the suites
/// whose test cases also run on the simulator; proofs run all test cases.
#[must_use]
pub fn sample(groups: &[&[TestCase]]) -> Vec<TestCase> {
    let interval = std::env::var(SAMPLE).ok().and_then(|text| text.parse().ok());
    take_every(interval.unwrap_or(1), groups)
}

fn take_every(interval: usize, groups: &[&[TestCase]]) -> Vec<TestCase> {
    let sampled = |group: &&[TestCase]| group.iter().copied().step_by(interval.max(1)).collect::<Vec<_>>();
    groups.iter().flat_map(sampled).collect()
}

/// Runs test cases inside an isolated namespace: those whose names contain one of the program's arguments
/// (all without arguments), except those whose names contain an argument of `--skip`. A missing peer is an
/// error.
#[must_use]
pub fn main(peers: &[&str], cases: &[TestCase]) -> ExitCode {
    main_parallel(1, peers, cases)
}

/// Like [`main`], with `lanes` threads that run test cases concurrently. Thread-local state is shared by
/// the test cases of one lane.
#[must_use]
pub fn main_parallel(lanes: usize, peers: &[&str], cases: &[TestCase]) -> ExitCode {
    main_inside(isolation::enter, lanes, peers, cases)
}

/// Like [`main`] with the machine's users and with pod networks. Requires root; without it, the run fails.
#[must_use]
pub fn main_as_root(peers: &[&str], cases: &[TestCase]) -> ExitCode {
    main_inside(isolation::enter_as_root, 1, peers, cases)
}

fn main_inside(
    enter: fn() -> Result<(), isolation::IsolationError>,
    lanes: usize,
    peers: &[&str],
    cases: &[TestCase],
) -> ExitCode {
    let filter = NameFilter::from_arguments(std::env::args().skip(1));
    let chosen = cases.iter().copied().filter(|case| filter.includes(case));
    let chosen: Vec<TestCase> = chosen.collect();
    if std::env::args().any(|argument| argument == "--list") {
        for case in &chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    match prepare(enter, peers).and_then(|()| run(lanes, &chosen)) {
        Ok(failures) => print_summary(chosen.len(), &failures),
        Err(error) if matches!(error.downcast_ref(), Some(isolation::IsolationError::NeedsRoot)) => {
            for case in &chosen {
                println!("test {} ... not measured: needs root", case.name);
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Filters by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct NameFilter {
    words: Vec<String>,
    skipped: Vec<String>,
}

impl NameFilter {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut filter = Self::default();
        while let Some(argument) = arguments.next() {
            if argument == "--skip" {
                filter.skipped.extend(arguments.next());
            } else if !argument.starts_with('-') {
                filter.words.push(argument);
            }
        }
        filter
    }

    fn includes(&self, case: &TestCase) -> bool {
        let is_named = |words: &[String]| words.iter().any(|word| case.name.contains(word.as_str()));
        (self.words.is_empty() || is_named(&self.words)) && !is_named(&self.skipped)
    }
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

fn prepare(enter: fn() -> Result<(), isolation::IsolationError>, peers: &[&str]) -> Result<(), Problem> {
    for peer in peers {
        built_peer(peer)?;
    }
    Ok(enter()?)
}

/// A failed test case.
struct Failure {
    name: &'static str,
    reason: String,
}

fn run(lanes: usize, cases: &[TestCase]) -> Result<Vec<Failure>, Problem> {
    println!("\nrunning {} tests", cases.len());
    capture_panics();
    let taken = AtomicUsize::new(0);
    let next = || cases.get(taken.fetch_add(1, Ordering::Relaxed));
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(|| run_lane(next))).collect();
        let mut failures = Vec::new();
        for lane in lanes {
            match lane.join() {
                Ok(failed) => failures.append(&mut failed?),
                Err(panic) => panic::resume_unwind(panic),
            }
        }
        Ok(failures)
    })
}

fn run_lane<'a>(next: impl Fn() -> Option<&'a TestCase>) -> Result<Vec<Failure>, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    PANIC_MESSAGES.set(Some(String::new()));
    let mut failures = Vec::new();
    while let Some(case) = next() {
        let local = LocalSet::new();
        failures.extend(runtime.block_on(local.run_until(run_case(case)))?);
    }
    Ok(failures)
}

/// Runs a test case and prints its result. SIGINT and SIGTERM are handled, because the first process of a
/// pid namespace ignores signals without a handler.
async fn run_case(case: &TestCase) -> Result<Option<Failure>, Problem> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let begin = Instant::now();
    let mut task = tokio::task::spawn_local((case.start)());
    let outcome = tokio::select! {
        outcome = &mut task => outcome,
        _ = interrupt.recv() => return Err("interrupted".into()),
        _ = terminate.recv() => return Err("terminated".into()),
    };
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!(
        "test {} ... {word} ({:.1} s)",
        case.name,
        begin.elapsed().as_secs_f64()
    );
    let reason = PANIC_MESSAGES.replace(Some(String::new())).unwrap_or_default();
    if outcome.is_ok() {
        return Ok(None);
    }
    println!("{reason}");
    let name = case.name;
    Ok(Some(Failure { name, reason }))
}

thread_local! {
    /// Panic messages of the current test case. `None` on threads that are not lanes.
    static PANIC_MESSAGES: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook. Panics in a lane are stored and printed after the result line of their test case,
/// without a backtrace, so that they are not interleaved with output of other lanes. Panics in other
/// threads are printed immediately.
fn capture_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_lane = PANIC_MESSAGES.with_borrow_mut(|words| {
            let lane = words.as_mut();
            lane.map(|words| words.push_str(&panic_message(panic))).is_some()
        });
        if !is_lane {
            usual(panic);
        }
    }));
}

fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    let message = message.replace('\n', "\n    ");
    match panic.location() {
        Some(location) => format!("    {location}: {message}\n"),
        None => format!("    {message}\n"),
    }
}

/// Prints the result of the suite and repeats the panic messages of failed test cases.
fn print_summary(all: usize, failures: &[Failure]) -> ExitCode {
    if !failures.is_empty() {
        println!("\nfailures:");
    }
    for Failure { name, reason } in failures {
        println!("  {name}\n{reason}");
    }
    let failed = failures.len();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {failed} failed\n",
        all - failed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_cases_of_every_group() {
        let case = |name| TestCase {
            name,
            start: || Box::pin(async {}),
        };
        let (tags, updates) = (["a", "b", "c", "d"].map(case), ["e"].map(case));
        let names = |interval| {
            let cases = take_every(interval, &[&tags, &updates]);
            cases.iter().map(|case| case.name).collect::<String>()
        };
        assert_eq!(names(1), "abcde");
        assert_eq!(names(3), "ade");
        assert_eq!(names(0), "abcde");
    }

    #[test]
    fn test_cases_are_selected_by_parts_of_their_names() {
        let check = |arguments: &str, expected: &str| {
            let filter = NameFilter::from_arguments(arguments.split_whitespace().map(str::to_owned));
            let cases = ["tag::moves", "tag::stays", "update::moves"].map(|name| TestCase {
                name,
                start: || Box::pin(async {}),
            });
            let chosen = cases.iter().filter(|case| filter.includes(case));
            let chosen: Vec<&str> = chosen.map(|case| case.name).collect();
            assert_eq!(chosen.join(" "), expected, "{arguments:?}");
        };
        check("", "tag::moves tag::stays update::moves");
        check("--show-output tag", "tag::moves tag::stays");
        check("stays update", "tag::stays update::moves");
        check("--skip moves", "tag::stays");
        check("tag --skip stays", "tag::moves");
        check("tag --skip tag", "");
    }
}
