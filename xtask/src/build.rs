//! Runs cargo and builds the `mainstay` binary.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

/// A cargo profile.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// The build that the tests share.
    Dev,
    /// Optimized, but fast to build.
    Release,
    /// The build that is shipped and measured.
    Dist,
}

impl Profile {
    /// Returns the profile of a proof of correctness.
    pub(crate) fn for_proof(quick: bool) -> Self {
        if quick { Self::Dev } else { Self::Release }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// Builds `mainstay` and returns its path. The binary that is measured is the static one of a release.
pub(crate) fn mainstay_binary(profile: Profile) -> anyhow::Result<PathBuf> {
    match profile {
        // With the features of the whole workspace, so that nothing is built twice.
        Profile::Dev => Ok(crate::programs::build()?.mainstay),
        Profile::Release => executable(&["build", "--release", "--package", "mainstay"], "mainstay"),
        Profile::Dist => crate::dist::binary(),
    }
}

/// Builds an example of the workspace that starts or feeds measured programs. Its own profile does not
/// matter, and with the features of the whole workspace nothing is built twice.
pub(crate) fn example(name: &str) -> anyhow::Result<PathBuf> {
    executable(&["build", "--workspace", "--example", name], name)
}

/// Builds with these arguments of cargo and returns the path of the executable of the target `name`.
pub(crate) fn executable(arguments: &[&str], name: &str) -> anyhow::Result<PathBuf> {
    println!("$ cargo {}", arguments.join(" "));
    let output = cargo()
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(repository_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(|message| built(message, name))
        .next_back()
        .context("cargo reported no executable")
}

fn built(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_wanted = message.pointer("/target/name")? == name;
    let path = message.get("executable")?.as_str()?;
    is_wanted.then(|| PathBuf::from(path))
}

/// Returns a command for the cargo that runs this task. It never changes a lock file, and lacks the variables
/// that describe the xtask package: build scripts track them, and half of all dependencies would be rebuilt.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("--locked");
    for (name, _) in std::env::vars_os() {
        let has_prefix = |prefix: &str| name.to_str().is_some_and(|name| name.starts_with(prefix));
        if has_prefix("CARGO_PKG_") || has_prefix("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs cargo with `arguments` in the workspace; its output goes to the terminal.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_never_changes_a_lock_file() {
        let command = cargo();
        assert_eq!(command.get_args().next(), Some("--locked".as_ref()));
    }
}
