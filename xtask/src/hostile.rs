//! `cargo xtask hostile`: runs the binary on hostile charts, archives and values. Each must fail with the
//! expected message, within the limits on time and memory.

pub(crate) mod archive;
mod cases;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::bail;

use crate::build::Profile;
use crate::measure::{Cost, measured};

/// Limits per case: CPU time, which other load does not affect, and wall time for cases that block.
const MAX_CPU: Duration = Duration::from_secs(1);
const MAX_WALL: Duration = Duration::from_secs(5);
const MAX_MEMORY_KIB: i64 = 256 * 1024;

/// One hostile input.
pub(crate) struct Hostile {
    name: &'static str,
    /// Files to create; the chart is the directory `chart` unless `arguments` name another.
    files: Vec<(String, Vec<u8>)>,
    /// Everything after `template x`.
    arguments: &'static [&'static str],
    /// Part of the expected error message.
    expected: &'static str,
}

/// Result of one case.
pub(crate) struct CaseResult {
    name: &'static str,
    cost: Option<Cost>,
    /// The violated expectation, if any.
    pub(crate) problem: Option<String>,
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cost = self.cost.map_or_else(
            || "no cost".into(),
            |cost| {
                format!(
                    "{:>6.0} ms {:>5} MiB",
                    cost.cpu.as_secs_f64() * 1e3,
                    cost.peak_kib / 1024
                )
            },
        );
        write!(
            f,
            "{:<34} {cost}  {}",
            self.name,
            self.problem.as_deref().unwrap_or("rejected")
        )
    }
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only cases whose name contains this text
    #[arg(long, default_value = "")]
    only: String,
}

/// Runs and prints all cases; fails if one has a problem.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let results = run_all(&arguments.only)?;
    for result in &results {
        println!("{result}");
    }
    let failed = results.iter().filter(|result| result.problem.is_some()).count();
    println!("{} passed, {failed} failed", results.len() - failed);
    if failed > 0 {
        bail!("{failed} hostile inputs were not rejected as expected");
    }
    Ok(())
}

/// Runs every case whose name contains `only`.
pub(crate) fn run_all(only: &str) -> anyhow::Result<Vec<CaseResult>> {
    let mainstay = crate::build::mainstay_binary(Profile::Release)?
        .display()
        .to_string();
    let cases = cases::all()?;
    let wanted = cases.iter().filter(|case| case.name.contains(only));
    wanted.map(|case| run_case(case, &mainstay)).collect()
}

/// Returns the highest costs of all cases.
pub(crate) fn worst(results: &[CaseResult]) -> String {
    let costs = || results.iter().filter_map(|result| result.cost);
    let time = costs().map(|cost| cost.cpu).max().unwrap_or_default();
    let memory = costs().map(|cost| cost.peak_kib).max().unwrap_or_default();
    format!(
        "at most {:.0} ms and {} MiB",
        time.as_secs_f64() * 1e3,
        memory / 1024
    )
}

fn run_case(case: &Hostile, mainstay: &str) -> anyhow::Result<CaseResult> {
    let scratch = tempfile::tempdir()?;
    for (name, content) in &case.files {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(scratch.path()))?;
        fs::write(path, content)?;
    }
    let arguments: Vec<String> = case
        .arguments
        .iter()
        .map(|word| resolve_path(word, scratch.path()))
        .collect();
    let mut command = vec![mainstay, "template", "x"];
    command.extend(arguments.iter().map(String::as_str));
    let (output, cost) = measured(&command, Some(MAX_WALL * 2), scratch.path())?;
    Ok(CaseResult {
        name: case.name,
        problem: find_problem(case, &output, cost),
        cost,
    })
}

/// Replaces `@name` with the path of a file of the case.
fn resolve_path(word: &str, scratch: &Path) -> String {
    word.strip_prefix('@').map_or_else(
        || word.to_owned(),
        |name| scratch.join(name).display().to_string(),
    )
}

fn find_problem(case: &Hostile, output: &Output, cost: Option<Cost>) -> Option<String> {
    let Some(cost) = cost else {
        return Some("not measured".into());
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => return Some("accepted".into()),
        Some(1 | 2) => {}
        code => {
            return Some(format!(
                "exited with {code:?} instead of an error: {}",
                head(&stderr)
            ));
        }
    }
    if !stderr.contains(case.expected) {
        return Some(format!(
            "printed {1:?} instead of {0:?}",
            case.expected,
            head(&stderr)
        ));
    }
    if !output.stdout.is_empty() {
        return Some("wrote output before the error".into());
    }
    if cost.cpu > MAX_CPU || cost.wall > MAX_WALL {
        return Some(format!(
            "took {:.1?} of CPU time, {:.1?} of wall time",
            cost.cpu, cost.wall
        ));
    }
    (cost.peak_kib > MAX_MEMORY_KIB).then(|| format!("took {} MiB", cost.peak_kib / 1024))
}

fn head(text: &str) -> String {
    text.chars().take(300).collect()
}
