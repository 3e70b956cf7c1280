//! Runs a target on a fixed set of inputs.
//!
//! A libFuzzer run is not reproducible, even with a seed: coverage depends on the random keys of hash maps,
//! and the number of executions on the machine's speed. CI therefore executes the stored inputs and a fixed
//! number of mutations of them, drawn from a fixed seed.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::mutate::Mutator;

/// Maximum length of a mutated input in bytes, as in libFuzzer runs.
const MAX_LEN: usize = 4096;

/// Maximum duration of one execution.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Input of the current execution, for the report of a failure.
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Number of executions started so far.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A run of one target on fixed inputs.
pub struct Replay {
    /// Directory of the stored inputs.
    pub inputs: PathBuf,
    /// Seed of the mutations.
    pub seed: u64,
    /// Number of mutated inputs.
    pub executions: u64,
    /// File that receives the input of a failed execution.
    pub finding: PathBuf,
}

impl Replay {
    /// Executes all inputs and returns their number. If an execution fails, saves its input and panics. If an
    /// execution exceeds the timeout, saves its input and aborts the process.
    pub fn run(self, check: fn(&[u8])) -> u64 {
        let inputs = self.stored_inputs();
        save_input_on_failure(self.finding);
        for input in &inputs {
            execute(check, input);
        }
        let mut mutator = Mutator::new(&inputs, self.seed, MAX_LEN);
        for _ in 0..self.executions {
            execute(check, &mutator.next_input());
        }
        STARTED.load(Ordering::Relaxed)
    }

    /// Reads the stored inputs in the order of their names.
    fn stored_inputs(&self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(&self.inputs).expect("the directory of inputs can be listed");
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let read = |path: &PathBuf| fs::read(path).expect("an input can be read");
        paths.iter().map(read).collect()
    }
}

fn execute(check: fn(&[u8]), input: &[u8]) {
    *CURRENT.lock().expect("no thread panics while locked") = input.to_vec();
    STARTED.fetch_add(1, Ordering::Relaxed);
    check(input);
}

/// Saves the current input if an execution panics or takes too long.
fn save_input_on_failure(finding: PathBuf) {
    let save = move || {
        let input = CURRENT.lock().map(|input| input.clone()).unwrap_or_default();
        let _ = fs::write(&finding, input);
    };
    let save_and_abort = save.clone();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        save();
        report(info);
    }));
    std::thread::spawn(move || {
        loop {
            let before = STARTED.load(Ordering::Relaxed);
            // Polled: a hanging execution cannot report its state.
            std::thread::sleep(EXECUTION_TIMEOUT);
            if STARTED.load(Ordering::Relaxed) == before {
                save_and_abort();
                eprintln!("ERROR: execution {before} took longer than {EXECUTION_TIMEOUT:?}");
                std::process::abort();
            }
        }
    });
}
