//! Building and finding our own binary: takes a profile's name, gives the path cargo itself names.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

/// The release build of `mainstay`, made up to date first.
pub(crate) fn release_binary() -> anyhow::Result<PathBuf> {
    let output = cargo()
        .args([
            "build",
            "--release",
            "--package",
            "mainstay",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    if !output.status.success() {
        bail!("the release build of mainstay failed");
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(executable)
        .next_back()
        .context("cargo named no executable")
}

fn executable(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_ours = message.pointer("/target/name")? == "mainstay";
    let path = message.get("executable")?.as_str()?;
    is_ours.then(|| PathBuf::from(path))
}

/// The cargo that runs this task, as if called from a shell: what it tells a program it runs about that program's package, build scripts
/// would take for news, and half of all dependencies would be built again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let told = |beginning: &str| name.to_str().is_some_and(|name| name.starts_with(beginning));
        if told("CARGO_PKG_") || told("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs cargo with `arguments` in the workspace, its output on the terminal.
pub(crate) fn run_cargo(arguments: &[&str]) -> anyhow::Result<()> {
    println!("$ cargo {}", arguments.join(" "));
    let status = cargo()
        .args(arguments)
        .current_dir(repository_root())
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
