//! All inputs, on as many threads as pay: takes the list, gives what became of each, in its order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mainstay_inject::{Mode, Options, Reason, run};

use super::content::{self, Content};
use super::inputs::Input;
use super::output::Plan;
use super::stage::Stage;
use super::treat::{Treated, treat};
use crate::remote::Progress;

/// Fewer inputs than this are not worth a second thread.
const FEW: usize = 8;

/// Past this number threads wait for the disk, not for each other.
const MOST_THREADS: usize = 4;

/// Treats every input.
pub(super) fn treat_all(inputs: &[Input], options: &Options, plan: &Plan, stage: &Stage) -> Vec<Treated> {
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
            done.push((number, treat(input, options, plan, stage)));
        }
        done
    };
    let threads = if inputs.len() < FEW { 1 } else { cores() };
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
    all.into_iter().map(|(_, treated)| treated).collect()
}

/// How many threads may share one input: few inputs leave cores idle.
pub(super) fn threads_per_input(inputs: usize) -> usize {
    if inputs < FEW { cores() } else { 1 }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, |it| it.get().min(MOST_THREADS))
}

fn take<'a>(inputs: &'a [Input], next: &AtomicUsize) -> Option<(usize, &'a Input)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    inputs.get(number).map(|input| (number, input))
}

/// The coordinator's namespace, for profiles that name it: as was asked for, or that of a coordinator among the inputs.
/// Long streams are not searched: that would mean to read them twice.
pub(super) fn coordinator_namespace(inputs: &[Input], options: &Options) -> Option<String> {
    let wanted = options.profile.coordinator_host.contains("{namespace}") && options.mode == Mode::Inject;
    let given = options.coordinator_namespace.clone();
    if wanted {
        given.or_else(|| inputs.iter().find_map(|input| coordinator_in(input, options)))
    } else {
        given
    }
}

/// Errors show when the input is treated.
fn coordinator_in(input: &Input, options: &Options) -> Option<String> {
    let Ok(Content::Short(text)) = content::open(input) else {
        return None;
    };
    if !super::krm::holds(&text, b"coordinator") {
        return None;
    }
    let outcome = run(&text, options).ok()?;
    let coordinator = outcome
        .reports
        .into_iter()
        .find(|report| report.reason == Reason::Coordinator)?;
    coordinator.namespace
}
