//! `cargo xtask advisories` and the license check of `cargo xtask test`, with a pinned cargo-deny.

use std::process::Command;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build::run_cargo;
use crate::tool::Tool;

const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &[],
};

/// Checks licenses, sources and banned crates.
pub(crate) fn check_offline() -> anyhow::Result<()> {
    check(&["--offline"], &["bans", "licenses", "sources"])
}

/// Checks everything, including the `RustSec` database, which is downloaded.
pub(crate) fn check_advisories() -> anyhow::Result<()> {
    check(&[], &["advisories", "bans", "licenses", "sources"])
}

fn check(options: &[&str], checks: &[&str]) -> anyhow::Result<()> {
    let tool = CARGO_DENY.path()?;
    // cargo-deny also reads the dependencies of other platforms, which no build has downloaded.
    run_cargo(&["fetch", "--locked"])?;
    println!("$ cargo deny check {}", checks.join(" "));
    let status = Command::new(tool)
        .args(options)
        .args(["check", "--hide-inclusion-graph"])
        .args(checks)
        .current_dir(repository_root())
        .status()
        .context("starting cargo-deny")?;
    if !status.success() {
        bail!("cargo deny reported problems");
    }
    Ok(())
}
