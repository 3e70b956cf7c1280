//! `cargo xtask hostile`: runs the binary on hostile charts, archives, values, manifests and profiles. Each
//! must fail with the expected message, within the limits on time and memory.

pub(crate) mod archive;
mod cases;
mod commands;
mod documents;
mod functions;
mod inputs;
mod manifests;
mod remote;

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
/// Limit on CPU time for keys, certificates and password hashes: a chart may need several, and each takes up
/// to half a second by design.
const MAX_KEY_CPU: Duration = Duration::from_secs(5);
/// Approximate factor by which an unoptimized build takes longer. It requires the same memory.
const UNOPTIMISED: u32 = 12;
const MAX_MEMORY_KIB: i64 = 256 * 1024;
/// Maximum size of the messages, in bytes: those of schema violations and of `fail` are long.
const MAX_MESSAGE: usize = 64 << 20;

/// One hostile input.
pub(crate) struct Hostile {
    name: String,
    /// Files to create; the chart is the directory `chart` unless `arguments` name another.
    files: Vec<(String, Vec<u8>)>,
    /// Named pipes to create.
    pipes: Vec<&'static str>,
    /// Symbolic links to create, with their targets.
    links: Vec<(&'static str, &'static str)>,
    /// The subcommand, before `arguments`.
    command: &'static [&'static str],
    /// Everything after the subcommand. `@name` is the path of a file of the case, `@server` the address of
    /// `server`.
    arguments: Vec<String>,
    /// Responses of a web server.
    server: Option<remote::Respond>,
    expected: Expected,
    max_cpu: Duration,
}

/// Expected outcome of a case, in addition to the limits on time and memory.
#[derive(Clone, Copy)]
enum Expected {
    /// With an error that contains this text.
    Error(&'static str),
    /// With an error or without one.
    Either,
    /// Without an error.
    Success,
}

impl Hostile {
    fn new(
        name: impl Into<String>,
        files: Vec<(String, Vec<u8>)>,
        arguments: &[&str],
        expected: &'static str,
    ) -> Self {
        Self {
            name: name.into(),
            files,
            pipes: Vec::new(),
            links: Vec::new(),
            command: &["template", "x"],
            arguments: arguments.iter().map(ToString::to_string).collect(),
            server: None,
            expected: Expected::Error(expected),
            max_cpu: MAX_CPU,
        }
    }

    /// Allows the CPU time of keys and password hashes.
    fn with_keys(self) -> Self {
        Self {
            max_cpu: MAX_KEY_CPU,
            ..self
        }
    }

    /// Accepts errors and success, so that only the cost is checked.
    fn or_accepted(self) -> Self {
        Self {
            expected: Expected::Either,
            ..self
        }
    }

    fn accepted(self) -> Self {
        Self {
            expected: Expected::Success,
            ..self
        }
    }
}

/// Result of one case.
pub(crate) struct CaseResult {
    name: String,
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
            "{:<46} {cost}  {}",
            self.name,
            self.problem.as_deref().unwrap_or("as expected")
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
    let results = run_all(&arguments.only, Profile::Release)?;
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

/// Part of the names of the cases with `IstioOperator` files and profiles.
pub(crate) const MANIFESTS: &str = manifests::PREFIX;

/// Runs every case whose name contains `only`.
pub(crate) fn run_all(only: &str, profile: Profile) -> anyhow::Result<Vec<CaseResult>> {
    run_sample(only, 1, profile)
}

/// Runs every `step`-th case whose name contains `only`.
pub(crate) fn run_sample(only: &str, step: usize, profile: Profile) -> anyhow::Result<Vec<CaseResult>> {
    let mut cases = cases::all()?;
    cases.retain(|case| case.name.contains(only));
    run_cases(profile, cases.iter().step_by(step))
}

fn run_cases<'a>(
    profile: Profile,
    cases: impl Iterator<Item = &'a Hostile>,
) -> anyhow::Result<Vec<CaseResult>> {
    let mainstay = crate::build::mainstay_binary(profile)?.display().to_string();
    let slowness = if let Profile::Dev = profile {
        UNOPTIMISED
    } else {
        1
    };
    cases.map(|case| run_case(case, &mainstay, slowness)).collect()
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

/// Runs a case; `slowness` multiplies the limits on time.
fn run_case(case: &Hostile, mainstay: &str, slowness: u32) -> anyhow::Result<CaseResult> {
    let scratch = tempfile::tempdir()?;
    for (name, content) in &case.files {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(scratch.path()))?;
        fs::write(path, content)?;
    }
    for name in &case.pipes {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(scratch.path()))?;
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU)?;
    }
    for (name, target) in &case.links {
        std::os::unix::fs::symlink(target, scratch.path().join(name))?;
    }
    let server = case.server.map(remote::start).transpose()?;
    let words = case.command.iter().copied();
    let words = words.chain(case.arguments.iter().map(String::as_str));
    let resolved: Vec<String> = words
        .map(|word| resolve(word, scratch.path(), server.as_deref()))
        .collect();
    let mut command = vec![mainstay];
    command.extend(resolved.iter().map(String::as_str));
    let (output, cost) = measured(&command, Some(MAX_WALL * slowness * 2), scratch.path())?;
    Ok(CaseResult {
        name: case.name.clone(),
        problem: find_problem(case, &output, cost, slowness),
        cost,
    })
}

/// Replaces `@name` with the path of a file of the case, also after `=`, and `@server` with its address.
fn resolve(word: &str, scratch: &Path, server: Option<&str>) -> String {
    let Some((before, name)) = word.split_once('@') else {
        return word.to_owned();
    };
    match server {
        Some(address) if name == "server" => format!("{before}{address}"),
        _ => format!("{before}{}", scratch.join(name).display()),
    }
}

fn find_problem(case: &Hostile, output: &Output, cost: Option<Cost>, slowness: u32) -> Option<String> {
    let Some(cost) = cost else {
        return Some("not measured".into());
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    match (output.status.code(), case.expected) {
        (Some(0), Expected::Error(_)) => return Some("accepted".into()),
        (Some(1 | 2), Expected::Success) => return Some(format!("rejected: {}", head(&stderr))),
        (Some(0..=2), _) => {}
        (code, _) => {
            return Some(format!(
                "exited with {code:?} instead of an error: {}",
                head(&stderr)
            ));
        }
    }
    if let Expected::Error(expected) = case.expected
        && !stderr.contains(expected)
    {
        return Some(format!("printed {:?} instead of {expected:?}", head(&stderr)));
    }
    if !output.status.success() && !output.stdout.is_empty() {
        return Some("wrote output before the error".into());
    }
    if stderr.len() > MAX_MESSAGE {
        return Some(format!("printed {} bytes of messages", stderr.len()));
    }
    if cost.cpu > case.max_cpu * slowness || cost.wall > MAX_WALL * slowness {
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
