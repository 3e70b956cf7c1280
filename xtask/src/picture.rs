//! `cargo xtask picture`: runs `mainstay demo` and writes its recording to `docs/images/demo.svg`.
//!
//! The lines are stacked in one tall group that moves up whenever a line is printed, so the image is animated
//! in a browser without scripts.

mod svg;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;

use crate::build::Profile;

/// Width of the recorded terminal.
const COLUMNS: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Record this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// A printed line and the time since the start.
pub(crate) struct Line {
    time: Duration,
    text: String,
}

/// Records the demo.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => crate::build::mainstay_binary(Profile::Release)?,
    };
    let lines = record(&binary)?;
    let path = repository_root().join("docs/images/demo.svg");
    fs::create_dir_all(path.parent().context("a path in docs")?)?;
    fs::write(&path, svg::animate(&lines, COLUMNS))?;
    println!("{} lines in {}", lines.len(), path.display());
    Ok(())
}

fn record(binary: &Path) -> anyhow::Result<Vec<Line>> {
    let begin = Instant::now();
    let mut child = Command::new(binary)
        .args(["demo", "--color", "always"])
        .env("COLUMNS", COLUMNS.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| binary.display().to_string())?;
    let output = BufReader::new(child.stdout.take().context("no output")?);
    let mut lines = Vec::new();
    for text in output.lines() {
        lines.push(Line {
            time: begin.elapsed(),
            text: text?,
        });
    }
    ensure!(child.wait()?.success(), "the demo failed");
    Ok(lines)
}
