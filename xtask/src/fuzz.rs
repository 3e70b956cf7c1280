//! `cargo xtask fuzz`: runs every fuzz target, either on a fixed set of inputs, or with libFuzzer and
//! coverage feedback for some time from a new seed.

mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use mainstay_fuzz::{Replay, TARGETS};
use mainstay_testkit::repository_root;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Duration per target in seconds
    #[arg(long, default_value_t = 60, conflicts_with = "fixed")]
    seconds: u64,

    /// Run the fixed inputs of CI instead of exploring
    #[arg(long)]
    fixed: bool,

    /// Explore from this seed instead of a new one
    #[arg(long, conflicts_with = "fixed")]
    seed: Option<u32>,
}

/// Arguments of the process that executes the fixed inputs of one target.
#[derive(clap::Args)]
pub(crate) struct ReplayArguments {
    target: String,
    /// Directory of the stored inputs.
    inputs: PathBuf,
    /// File that receives the input of a failed execution.
    finding: PathBuf,
}

/// The seed of the mutations that CI executes.
const FIXED_SEED: u32 = 16;

/// Number of mutated inputs that CI executes per target.
const FIXED_EXECUTIONS: u64 = 10_000;

/// The inputs that a run executes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effort {
    /// The stored inputs and a fixed number of mutations from a fixed seed: the same inputs in every run.
    Fixed,
    /// Inputs that libFuzzer derives from coverage, for some time.
    Explore {
        /// Duration per target.
        seconds: u64,
        /// The seed of libFuzzer's mutations.
        seed: u32,
    },
}

impl Effort {
    /// Explores from a new seed.
    pub(crate) fn explore(seconds: u64) -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // libFuzzer chooses its own seed if the seed is zero.
        let seed = elapsed.subsec_nanos().max(1);
        Self::Explore { seconds, seed }
    }
}

impl std::fmt::Display for Effort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed => write!(
                f,
                "stored inputs and {FIXED_EXECUTIONS} mutations from seed {FIXED_SEED}"
            ),
            Self::Explore { seconds, seed } => write!(f, "{seconds} s from seed {seed}"),
        }
    }
}

/// The result of one target.
pub(crate) struct Run {
    /// Name of the target.
    pub(crate) target: String,
    /// Number of executions, or the finding.
    pub(crate) figure: String,
    /// Whether the run ended without a finding.
    pub(crate) passed: bool,
}

/// Compiler flags for libFuzzer's coverage feedback. All of them are stable. Sanitizers are not used: they
/// are unstable and find few defects in safe Rust.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Copt-level=3";

/// Runs every target and prints the results; fails on a finding.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let effort = match (arguments.fixed, arguments.seed) {
        (true, _) => Effort::Fixed,
        (false, None) => Effort::explore(arguments.seconds),
        (false, Some(seed)) => Effort::Explore {
            seconds: arguments.seconds,
            seed,
        },
    };
    println!("{effort}");
    let runs = fuzz_targets(|_| true, effort)?;
    for run in &runs {
        println!("{:<18} {}", run.target, run.figure);
    }
    let failed = runs.iter().filter(|run| !run.passed).count();
    println!("{} passed, {failed} failed", runs.len() - failed);
    if failed > 0 {
        bail!("{failed} targets have findings");
    }
    Ok(())
}

/// Runs the targets that `wanted` selects.
pub(crate) fn fuzz_targets(wanted: impl Fn(&str) -> bool, effort: Effort) -> anyhow::Result<Vec<Run>> {
    let targets = || TARGETS.iter().filter(|target| wanted(target.name));
    match effort {
        Effort::Fixed => targets().map(|target| run_fixed(target.name)).collect(),
        Effort::Explore { seconds, seed } => {
            let binaries = build(&repository_root().join("fuzz"))?;
            let limits = [format!("-max_total_time={seconds}"), format!("-seed={seed}")];
            targets()
                .map(|target| explore(&binaries, target.name, &limits))
                .collect()
        }
    }
}

/// Executes the fixed inputs of one target in this process and prints their number.
pub(crate) fn replay(arguments: ReplayArguments) -> anyhow::Result<()> {
    let target = TARGETS
        .iter()
        .find(|target| target.name == arguments.target)
        .with_context(|| format!("there is no fuzz target {}", arguments.target))?;
    let replay = Replay {
        inputs: arguments.inputs,
        seed: FIXED_SEED.into(),
        executions: FIXED_EXECUTIONS,
        finding: arguments.finding,
    };
    eprintln!("{EXECUTED} {}", replay.run(target.check));
    Ok(())
}

fn build(directory: &Path) -> anyhow::Result<PathBuf> {
    let target = repository_root().join("target/fuzz");
    // A target triple keeps the flags away from build scripts and procedural macros.
    let triple = host()?;
    let status = crate::build::cargo()
        .args(["build", "--release", "--quiet", "--target", &triple])
        .current_dir(directory)
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("the fuzz targets do not build");
    }
    Ok(target.join(triple).join("release"))
}

fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("starting rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Executes the stored inputs and the fixed mutations in a separate process, because a finding may abort it.
fn run_fixed(target: &str) -> anyhow::Result<Run> {
    let artifacts = artifacts(target)?;
    let inputs = repository_root().join("target/fuzz/fixed").join(target);
    if inputs.exists() {
        fs::remove_dir_all(&inputs)?;
    }
    write_inputs(target, &inputs)?;
    let output = Command::new(std::env::current_exe()?)
        .args(["fuzz-replay", target])
        .arg(inputs)
        .arg(artifacts.join(format!("fixed-{FIXED_SEED}")))
        .output()
        .context("starting xtask")?;
    Ok(outcome(target, &output, &artifacts))
}

/// Runs libFuzzer with the corpus of earlier runs.
fn explore(binaries: &Path, target: &str, limits: &[String]) -> anyhow::Result<Run> {
    let artifacts = artifacts(target)?;
    let corpus = repository_root().join("target/fuzz/corpus").join(target);
    write_inputs(target, &corpus)?;
    let binary = binaries.join(target);
    let output = Command::new(&binary)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([
            "-timeout=5",
            "-rss_limit_mb=1024",
            "-max_len=4096",
            "-print_final_stats=1",
        ])
        .args(limits)
        .arg(&corpus)
        .output()
        .with_context(|| binary.display().to_string())?;
    Ok(outcome(target, &output, &artifacts))
}

fn artifacts(target: &str) -> anyhow::Result<PathBuf> {
    let directory = repository_root().join("target/fuzz/artifacts").join(target);
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Prefix of libFuzzer's line with the number of executions.
const EXECUTED: &str = "stat::number_of_executed_units:";

fn outcome(target: &str, output: &Output, artifacts: &Path) -> Run {
    let log = String::from_utf8_lossy(&output.stderr);
    let executions = log.lines().find_map(|line| line.strip_prefix(EXECUTED));
    let passed = output.status.success();
    let figure = match executions {
        Some(count) if passed => format!("{} executions", count.trim()),
        _ => format!(
            "{}; after the fix, store the input of {} in fuzz/cases/{target}",
            finding(&log),
            artifacts.display()
        ),
    };
    Run {
        target: target.into(),
        figure,
        passed,
    }
}

/// Writes the seeds of `target` and the stored cases of `fuzz/cases` into `directory`.
fn write_inputs(target: &str, directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    let root = repository_root();
    let mut seeds = seeds::seeds(target, &root)?;
    // The order of directory entries differs between machines.
    seeds.sort();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("seed-{number:05}")), seed)?;
    }
    let cases = root.join("fuzz/cases").join(target);
    for entry in fs::read_dir(&cases).with_context(|| cases.display().to_string())? {
        let entry = entry?;
        let name = format!("case-{}", entry.file_name().to_string_lossy());
        fs::copy(entry.path(), directory.join(name))?;
    }
    Ok(())
}

fn finding(log: &str) -> String {
    let relevant =
        |line: &&str| line.contains("panicked at") || line.contains("ERROR:") || line.contains("Test unit");
    log.lines()
        .filter(relevant)
        .take(3)
        .collect::<Vec<_>>()
        .join(" | ")
}
