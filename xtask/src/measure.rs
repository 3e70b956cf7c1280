//! Measures time and peak memory of one command. `getrusage` reports the peak over all children, so each
//! command gets its own parent process.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

/// Cost of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Wall time.
    pub(crate) wall: Duration,
    /// CPU time of all threads, which other load does not affect.
    pub(crate) cpu: Duration,
    /// Peak resident memory, in KiB.
    pub(crate) peak_kib: i64,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File to write the cost to
    report: PathBuf,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command with inherited stdin and stdout and writes its cost.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (program, rest) = arguments.command.split_first().context("a command")?;
    let begin = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .status()
        .with_context(|| program.clone())?;
    let wall = begin.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cost = Cost {
        wall,
        cpu: duration(usage.user_time()) + duration(usage.system_time()),
        peak_kib: usage.max_rss(),
    };
    std::fs::write(&arguments.report, serde_json::to_vec(&cost)?)?;
    std::process::exit(status.code().unwrap_or(255));
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000)
}

/// Runs `command` and measures it; a `limit` adds a process, so benchmarks set none.
pub(crate) fn measured(
    command: &[&str],
    limit: Option<Duration>,
    scratch: &Path,
) -> anyhow::Result<(Output, Option<Cost>)> {
    let report = scratch.join("cost.json");
    let _ = std::fs::remove_file(&report);
    let limit = limit.map(|limit| format!("{}s", limit.as_secs_f64()));
    let timeout = limit.iter().flat_map(|limit| ["timeout", "--signal=KILL", limit]);
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .arg(&report)
        .arg("--")
        .args(timeout)
        .args(command)
        .stdin(Stdio::null())
        .output()?;
    let cost = std::fs::read(&report)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok((output, cost))
}

/// Runs `command` with its output discarded and returns its cost; fails if the command fails.
pub(crate) fn cost_of(command: &[&str], scratch: &Path) -> anyhow::Result<Cost> {
    let report = scratch.join("cost.json");
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .arg(&report)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{} failed: {stderr}", command.join(" "));
    Ok(serde_json::from_slice(&std::fs::read(&report)?)?)
}
