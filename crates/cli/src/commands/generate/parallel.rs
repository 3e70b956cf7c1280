//! Processes all inputs in parallel, in the order of the list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mainstay_inject::{Mode, Options, Reason, run};

use super::content::{self, Content};
use super::inputs::Input;
use super::output::Plan;
use super::process::{Processed, process};
use super::transaction::Transaction;
use crate::ui::Progress;

/// Minimum number of inputs for several threads.
const MIN_PARALLEL_INPUTS: usize = 8;

/// Maximum number of threads; more would wait for the disk.
const MAX_THREADS: usize = 4;

/// Processes every input.
pub(super) fn process_all(
    inputs: &[Input],
    options: &Options,
    plan: &Plan,
    transaction: &Transaction,
) -> Vec<Processed> {
    let (next, progress) = (AtomicUsize::new(0), Progress::on_terminal());
    let work = || {
        let mut done = Vec::new();
        while let Some((number, input)) = take(inputs, &next) {
            if let Some(progress) = &progress {
                progress.step(&format!(
                    "input {} of {}: {}",
                    number + 1,
                    inputs.len(),
                    input.name
                ));
            }
            done.push((number, process(input, options, plan, transaction)));
        }
        done
    };
    let threads = if inputs.len() < MIN_PARALLEL_INPUTS {
        1
    } else {
        cores()
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, processed)| processed).collect()
}

/// Returns the number of threads per input.
pub(super) fn threads_per_input(inputs: usize) -> usize {
    if inputs < MIN_PARALLEL_INPUTS { cores() } else { 1 }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, |it| it.get().min(MAX_THREADS))
}

fn take<'a>(inputs: &'a [Input], next: &AtomicUsize) -> Option<(usize, &'a Input)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    inputs.get(number).map(|input| (number, input))
}

/// Returns the coordinator's namespace if the profile uses it: as requested, or that of a coordinator in the
/// inputs. Long streams are not searched, because they can be read only once.
pub(super) fn coordinator_namespace(inputs: &[Input], options: &Options) -> Option<String> {
    let wanted = options.profile.coordinator_host.contains("{namespace}") && options.mode == Mode::Inject;
    let given = options.coordinator_namespace.clone();
    if wanted {
        given.or_else(|| inputs.iter().find_map(|input| coordinator_in(input, options)))
    } else {
        given
    }
}

/// Returns the namespace of a coordinator in an input. Errors are ignored here, because they are reported
/// when the input is processed.
fn coordinator_in(input: &Input, options: &Options) -> Option<String> {
    let Ok(Content::Short(text)) = content::open(input) else {
        return None;
    };
    if !super::krm::contains(&text, b"coordinator") {
        return None;
    }
    let outcome = run(&text, options).ok()?;
    let coordinator = outcome
        .reports
        .into_iter()
        .find(|report| report.reason == Reason::Coordinator)?;
    coordinator.namespace
}
