//! Tests that need the namespace: takes trials, runs them one after another inside it, gives an exit code. Talks to the terminal as libtest does.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it stands in for libtest"
)]

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::isolation;
use crate::peer::built_peer;

/// A trial under way; it fails by a panic.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One test.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Its name, by which it can be asked for.
    pub name: &'static str,
    /// Begins it.
    pub begin: fn() -> Running,
}

/// Runs the trials whose names contain one of the program's arguments (all without arguments), inside a namespace of their own.
/// A missing peer is an error, not a pass.
#[must_use]
pub fn main(peers: &[&str], trials: &[Trial]) -> ExitCode {
    main_inside(isolation::enter, peers, trials)
}

/// The same with the machine's users and networks for pods. Without root nothing is measured, which is an error, not a pass.
#[must_use]
pub fn main_as_root(peers: &[&str], trials: &[Trial]) -> ExitCode {
    main_inside(isolation::enter_as_root, peers, trials)
}

fn main_inside(
    enter: fn() -> Result<(), isolation::IsolationError>,
    peers: &[&str],
    trials: &[Trial],
) -> ExitCode {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let chosen: Vec<Trial> = trials
        .iter()
        .copied()
        .filter(|trial| wanted.is_empty() || wanted.iter().any(|part| trial.name.contains(part.as_str())))
        .collect();
    if std::env::args().any(|argument| argument == "--list") {
        for trial in &chosen {
            println!("{}: test", trial.name);
        }
        return ExitCode::SUCCESS;
    }
    match prepare(enter, peers).and_then(|()| run(&chosen)) {
        Ok(failed) => conclude(chosen.len(), failed),
        Err(error) if matches!(error.downcast_ref(), Some(isolation::IsolationError::NeedsRoot)) => {
            for trial in &chosen {
                println!("test {} ... not measured: needs root", trial.name);
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

type Problem = Box<dyn std::error::Error>;

fn prepare(enter: fn() -> Result<(), isolation::IsolationError>, peers: &[&str]) -> Result<(), Problem> {
    for peer in peers {
        built_peer(peer)?;
    }
    Ok(enter()?)
}

fn run(trials: &[Trial]) -> Result<usize, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    println!("\nrunning {} tests", trials.len());
    let mut failed = 0;
    for trial in trials {
        let local = LocalSet::new();
        let passed = runtime.block_on(local.run_until(judge(trial)))?;
        failed += usize::from(!passed);
    }
    Ok(failed)
}

/// The first process of a pid namespace ignores signals that it does not handle: without this, Ctrl-C would do nothing.
async fn judge(trial: &Trial) -> Result<bool, Problem> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let begin = Instant::now();
    let mut task = tokio::task::spawn_local((trial.begin)());
    let outcome = tokio::select! {
        outcome = &mut task => outcome,
        _ = interrupt.recv() => return Err("interrupted".into()),
        _ = terminate.recv() => return Err("terminated".into()),
    };
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!(
        "test {} ... {word} ({:.1} s)",
        trial.name,
        begin.elapsed().as_secs_f64()
    );
    Ok(outcome.is_ok())
}

fn conclude(all: usize, failed: usize) -> ExitCode {
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

/// An error with its sources.
pub fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
