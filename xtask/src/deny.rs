//! `cargo xtask advisories` and the license check of `cargo xtask test`, with a pinned cargo-deny.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build::{cargo, run_cargo};

/// Checks licenses, sources and banned crates.
pub(crate) fn check_offline() -> anyhow::Result<()> {
    check(&["--offline"], &["bans", "licenses", "sources"])
}

/// Checks everything, including the `RustSec` database, which is downloaded.
pub(crate) fn check_advisories() -> anyhow::Result<()> {
    check(&[], &["advisories", "bans", "licenses", "sources"])
}

fn check(options: &[&str], checks: &[&str]) -> anyhow::Result<()> {
    let tool = cargo_deny()?;
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

/// Pinned, so that every machine checks with the same rules.
const CARGO_DENY: &str = "0.20.2";

/// Returns the pinned cargo-deny, installed once into the user's cache directory.
fn cargo_deny() -> anyhow::Result<PathBuf> {
    let root = mainstay_testkit::cache_home()?.join(format!("tools/cargo-deny-{CARGO_DENY}"));
    let binary = root.join("bin/cargo-deny");
    if works(&binary) {
        return Ok(binary);
    }
    println!("$ cargo install cargo-deny --version {CARGO_DENY}");
    // A debug build checks this workspace in seconds and compiles in a third of the time.
    let status = cargo()
        .args([
            "install",
            "cargo-deny",
            "--version",
            CARGO_DENY,
            "--locked",
            "--quiet",
            "--debug",
            "--root",
        ])
        .arg(&root)
        .status()
        .context("starting cargo install")?;
    if !status.success() {
        bail!("cargo-deny could not be installed");
    }
    Ok(binary)
}

fn works(program: &PathBuf) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
