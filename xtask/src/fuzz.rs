//! `cargo xtask fuzz`: takes seconds, builds every target of `fuzz/` with coverage feedback on the stable
//! toolchain and runs each for that long, from inputs the tree already holds.

mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// One target's run.
pub(crate) struct Run {
    /// Its name.
    pub(crate) target: String,
    /// Executions, as libFuzzer counts them.
    pub(crate) figure: String,
    /// Whether it ended without a finding.
    pub(crate) survived: bool,
}

/// What libFuzzer's feedback needs of the compiler. All of it is stable; the sanitizers are not, and safe
/// Rust has little use for them.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Copt-level=3";

/// Fuzzes and prints; fails on a finding.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runs = fuzz_some(|_| true, arguments.seconds, 0)?;
    for run in &runs {
        println!("{:<18} {}", run.target, run.figure);
    }
    let failed = runs.iter().filter(|run| !run.survived).count();
    println!("{} passed, {failed} failed", runs.len() - failed);
    if failed > 0 {
        bail!("{failed} targets found something");
    }
    Ok(())
}

/// Builds every target and runs those that are `wanted`. Chance starts from `seed`; 0 draws a new one, so
/// that each long run explores elsewhere.
pub(crate) fn fuzz_some(wanted: impl Fn(&str) -> bool, seconds: u64, seed: u32) -> anyhow::Result<Vec<Run>> {
    let directory = repository_root().join("fuzz");
    let binaries = build(&directory)?;
    targets(&directory)?
        .iter()
        .filter(|target| wanted(target))
        .map(|target| fuzz(&binaries.join(target), target, seconds, seed))
        .collect()
}

fn targets(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory.join("targets")).context("fuzz/targets")? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
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

fn fuzz(binary: &Path, target: &str, seconds: u64, seed: u32) -> anyhow::Result<Run> {
    let corpus = repository_root().join("target/fuzz/corpus").join(target);
    let artifacts = repository_root().join("target/fuzz/artifacts").join(target);
    plant(target, &corpus)?;
    fs::create_dir_all(&artifacts)?;
    let output = Command::new(binary)
        .args([
            format!("-max_total_time={seconds}"),
            format!("-seed={seed}"),
            format!("-artifact_prefix={}/", artifacts.display()),
        ])
        .args([
            "-timeout=5",
            "-rss_limit_mb=1024",
            "-max_len=4096",
            "-print_final_stats=1",
        ])
        .arg(&corpus)
        .output()
        .with_context(|| binary.display().to_string())?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let executions = log
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let survived = output.status.success();
    let figure = match executions {
        Some(count) if survived => format!("{} executions", count.trim()),
        _ => finding(&log),
    };
    Ok(Run {
        target: target.into(),
        figure,
        survived,
    })
}

fn plant(target: &str, corpus: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(corpus)?;
    for (number, seed) in seeds::seeds(target, &repository_root())?.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}

fn finding(log: &str) -> String {
    let telling =
        |line: &&str| line.contains("panicked at") || line.contains("ERROR:") || line.contains("Test unit");
    log.lines()
        .filter(telling)
        .take(3)
        .collect::<Vec<_>>()
        .join(" | ")
}
