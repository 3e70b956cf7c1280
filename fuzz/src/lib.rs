//! Support for the fuzz targets: runs a target on a fixed set of inputs instead of handing control to
//! libFuzzer.
//!
//! A libFuzzer run is not reproducible, even with a seed: coverage depends on the random keys of hash maps,
//! and the number of executions on the machine's speed. CI therefore executes the stored inputs and a fixed
//! number of mutations of them, drawn from a fixed seed.

mod mutate;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mutate::Mutator;

/// Longest mutated input, as in libFuzzer runs.
const MAX_LEN: usize = 4096;

/// Maximum duration of one execution.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The input being executed, for the report of a failure.
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Number of executions started so far.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A replay as requested by `cargo xtask fuzz` in environment variables.
struct Replay {
    /// Directory of the stored inputs.
    inputs: PathBuf,
    seed: u64,
    /// Number of mutated inputs.
    executions: u64,
    /// File that receives the input of a failed execution.
    finding: PathBuf,
}

impl Replay {
    fn from_env() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        Some(Self {
            inputs: std::env::var_os("MAINSTAY_FUZZ_INPUTS")?.into(),
            seed: number("MAINSTAY_FUZZ_SEED")?,
            executions: number("MAINSTAY_FUZZ_EXECUTIONS")?,
            finding: std::env::var_os("MAINSTAY_FUZZ_FINDING")?.into(),
        })
    }

    fn run(self, check: fn(&[u8])) {
        let inputs = self.stored_inputs();
        save_input_on_failure(self.finding);
        for input in &inputs {
            execute(check, input.clone());
        }
        let mut mutator = Mutator::new(&inputs, self.seed, MAX_LEN);
        for _ in 0..self.executions {
            execute(check, mutator.next_input());
        }
        eprintln!("stat::number_of_executed_units: {}", STARTED.load(Ordering::Relaxed));
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

/// Executes the fixed inputs and exits, if the environment requests it; otherwise returns and leaves the work
/// to libFuzzer.
pub fn replay_if_requested(check: fn(&[u8])) {
    if let Some(replay) = Replay::from_env() {
        replay.run(check);
        std::process::exit(0);
    }
}

/// Returns the longest prefix of `bytes` that is UTF-8, for targets that take text.
#[must_use]
pub fn utf8_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn execute(check: fn(&[u8]), input: Vec<u8>) {
    CURRENT.lock().expect("no other thread panics with it").clone_from(&input);
    STARTED.fetch_add(1, Ordering::Relaxed);
    check(&input);
}

/// Saves the current input if an execution panics or takes too long.
fn save_input_on_failure(finding: PathBuf) {
    let save = move || {
        let input = CURRENT.lock().map(|input| input.clone()).unwrap_or_default();
        let _ = fs::write(&finding, input);
    };
    let save_and_abort = save.clone();
    // libFuzzer's own hook, which aborts the process, runs afterwards.
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        save();
        abort(info);
    }));
    std::thread::spawn(move || {
        loop {
            let before = STARTED.load(Ordering::Relaxed);
            // Polled: a hanging execution reports nothing.
            std::thread::sleep(EXECUTION_TIMEOUT);
            if STARTED.load(Ordering::Relaxed) == before {
                save_and_abort();
                eprintln!("ERROR: execution {before} took longer than {EXECUTION_TIMEOUT:?}");
                std::process::abort();
            }
        }
    });
}
