//! `cargo xtask picture`: runs `mainstay demo` and writes its recording to `docs/images/demo.svg`, and takes
//! a screenshot of a rehearsal's report, `docs/images/rehearsal.png`, with its text in `rehearsal.txt`.
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
use mainstay_testkit::browser::{Browser, View};
use mainstay_testkit::{report_text, repository_root};

use crate::build::Profile;

/// Width of the recorded terminal.
const COLUMNS: usize = 100;

/// The report, below the repository's root.
const REPORT: &str = "target/upgrade.html";

/// Arguments of the rehearsal; its report is [`REPORT`].
const REHEARSAL: &[&str] = &[
    "rehearse",
    "--to",
    "v1.29.1",
    "--fail-on",
    "never",
    "--snapshot",
    "docs/examples/cluster.yaml",
    "--readiness",
    "docs/examples/readiness.yaml",
    "--report",
    REPORT,
];

/// Window of the screenshot.
const REPORT_VIEW: View = View {
    width: 1100,
    height: 900,
    dark: false,
    printed: false,
};

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
    take_screenshot(&binary)
}

/// Rehearses an upgrade of `docs/examples/cluster.yaml` and takes a screenshot of the report.
fn take_screenshot(binary: &Path) -> anyhow::Result<()> {
    let root = repository_root();
    let page = root.join(REPORT);
    fs::create_dir_all(page.parent().context("a path in target")?)?;
    let status = Command::new(binary)
        .args(REHEARSAL)
        .current_dir(&root)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "the rehearsal failed");
    let mut browser = Browser::start()?;
    browser.open(&page, REPORT_VIEW)?;
    browser.evaluate(&remove_sections())?;
    let path = root.join("docs/images/rehearsal.png");
    fs::write(&path, browser.screenshot_of_content()?.png)?;
    println!("{}", path.display());
    let path = root.join("docs/images/rehearsal.txt");
    fs::write(&path, report_text::shown(&fs::read_to_string(&page)?))?;
    println!("{}", path.display());
    Ok(())
}

/// Returns a script that removes the sections that do not fit into the README.
fn remove_sections() -> String {
    let sections = report_text::LEFT_OUT.map(|id| format!("#{id}"));
    format!(
        "document.querySelectorAll('{}').forEach(it => it.remove())",
        sections.join(", ")
    )
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
