//! `cargo xtask advisories` and the license check of `cargo xtask test`, with a pinned cargo-deny.

use std::fs;
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

/// Name of the variable with the path of a git clone of the `RustSec` database, for machines that cannot
/// download it.
const DATABASE: &str = "MAINSTAY_ADVISORY_DATABASE";

/// Directory in which cargo-deny expects the database: its name and a hash of its address.
const DATABASE_DIRECTORY: &str = "advisory-db-3157b0e258782691";

/// Checks everything, including the `RustSec` database, which is downloaded unless [`DATABASE`] names a
/// clone. Returns the date of the database.
pub(crate) fn check_advisories() -> anyhow::Result<String> {
    let checks = ["advisories", "bans", "licenses", "sources"];
    let Some(clone) = std::env::var_os(DATABASE) else {
        check(&[], &checks)?;
        return Ok("today".to_owned());
    };
    let scratch = tempfile::tempdir()?;
    let database = scratch.path().join(DATABASE_DIRECTORY);
    git(Command::new("git")
        .args(["clone", "--quiet"])
        .arg(clone)
        .arg(&database))?;
    // The time of the last download: cargo-deny rejects a database without it.
    fs::write(database.join(".git/FETCH_HEAD"), "")?;
    let config = scratch.path().join("deny.toml");
    let rules = fs::read_to_string(repository_root().join("deny.toml"))?;
    let location = format!("[advisories]\ndb-path = '{}'\n", scratch.path().display());
    fs::write(&config, rules.replacen("[advisories]\n", &location, 1))?;
    let config = config.to_str().context("the directory's name is not UTF-8")?;
    check(&["--offline", "--config", config], &checks)?;
    let arguments = ["log", "-1", "--format=%cs"];
    let date = git(Command::new("git").arg("-C").arg(&database).args(arguments))?;
    Ok(date.trim().to_owned())
}

fn git(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().context("starting git")?;
    if !output.status.success() {
        bail!("git failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
