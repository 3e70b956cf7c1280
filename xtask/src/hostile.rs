//! `cargo xtask hostile`: takes charts, archives and values made to hurt, runs the real binary on each, gives a verdict:
//! it must refuse with the expected words, quickly and in little memory.

pub(crate) mod archive;
mod cases;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::bail;

use crate::measure::{Cost, measured};

/// What each case may cost: time on processors, which neighbours do not change, and on the clock, against those that only wait.
const TIME: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(5);
const MEMORY_KIB: i64 = 256 * 1024;

/// One hostile input.
pub(crate) struct Hostile {
    name: &'static str,
    /// Files to lay out; the chart is the folder `chart` unless `arguments` name something else.
    files: Vec<(String, Vec<u8>)>,
    /// Everything after `template x`.
    arguments: &'static [&'static str],
    /// A part of the error the user must see.
    expected: &'static str,
}

/// What became of one case.
pub(crate) struct Verdict {
    name: &'static str,
    cost: Option<Cost>,
    /// What was wrong, if anything.
    pub(crate) complaint: Option<String>,
}

impl fmt::Display for Verdict {
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
            self.complaint.as_deref().unwrap_or("refused")
        )
    }
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only cases whose name contains this text
    #[arg(long, default_value = "")]
    only: String,
}

/// Judges and prints; fails on a complaint.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let verdicts = judge_all(&arguments.only)?;
    for verdict in &verdicts {
        println!("{verdict}");
    }
    let failed = verdicts
        .iter()
        .filter(|verdict| verdict.complaint.is_some())
        .count();
    println!("{} passed, {failed} failed", verdicts.len() - failed);
    if failed > 0 {
        bail!("{failed} hostile inputs were not refused as they must be");
    }
    Ok(())
}

/// Runs every case whose name contains `only` against the release build.
pub(crate) fn judge_all(only: &str) -> anyhow::Result<Vec<Verdict>> {
    let mainstay = crate::build::release_binary()?.display().to_string();
    let cases = cases::all()?;
    let wanted = cases.iter().filter(|case| case.name.contains(only));
    wanted.map(|case| judge(case, &mainstay)).collect()
}

/// The dearest case of each kind, for the report.
pub(crate) fn worst(verdicts: &[Verdict]) -> String {
    let costs = || verdicts.iter().filter_map(|verdict| verdict.cost);
    let time = costs().map(|cost| cost.cpu).max().unwrap_or_default();
    let memory = costs().map(|cost| cost.peak_kib).max().unwrap_or_default();
    format!(
        "at most {:.0} ms and {} MiB",
        time.as_secs_f64() * 1e3,
        memory / 1024
    )
}

fn judge(case: &Hostile, mainstay: &str) -> anyhow::Result<Verdict> {
    let scratch = tempfile::tempdir()?;
    for (name, content) in &case.files {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(scratch.path()))?;
        fs::write(path, content)?;
    }
    let arguments: Vec<String> = case
        .arguments
        .iter()
        .map(|word| placed(word, scratch.path()))
        .collect();
    let mut command = vec![mainstay, "template", "x"];
    command.extend(arguments.iter().map(String::as_str));
    let (output, cost) = measured(&command, Some(WAIT * 2), scratch.path())?;
    Ok(Verdict {
        name: case.name,
        complaint: complaint(case, &output, cost),
        cost,
    })
}

/// `@name` is a file of the case.
fn placed(word: &str, scratch: &Path) -> String {
    word.strip_prefix('@').map_or_else(
        || word.to_owned(),
        |name| scratch.join(name).display().to_string(),
    )
}

fn complaint(case: &Hostile, output: &Output, cost: Option<Cost>) -> Option<String> {
    let Some(cost) = cost else {
        return Some("it could not be measured".into());
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => return Some("it was accepted".into()),
        Some(1 | 2) => {}
        code => {
            return Some(format!(
                "it ended with {code:?} instead of an error: {}",
                head(&said)
            ));
        }
    }
    if !said.contains(case.expected) {
        return Some(format!(
            "it did not say {:?} but {:?}",
            case.expected,
            head(&said)
        ));
    }
    if !output.stdout.is_empty() {
        return Some("something was written before the error".into());
    }
    if cost.cpu > TIME || cost.wall > WAIT {
        return Some(format!(
            "it took {:.1?}, {:.1?} by the clock",
            cost.cpu, cost.wall
        ));
    }
    (cost.peak_kib > MEMORY_KIB).then(|| format!("it took {} MiB", cost.peak_kib / 1024))
}

fn head(text: &str) -> String {
    text.chars().take(300).collect()
}
