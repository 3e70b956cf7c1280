//! Pinned cargo tools, installed once into the user's cache directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::build::cargo;

/// A tool from the crates registry.
pub(crate) struct Tool {
    /// Name of the package and of its binary.
    pub(crate) name: &'static str,
    /// Pinned, so that every machine runs the same code.
    pub(crate) version: &'static str,
    /// Options of `cargo install`.
    pub(crate) options: &'static [&'static str],
}

impl Tool {
    /// Returns the path of the binary; installs it first if it is missing.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let root = mainstay_testkit::cache_home()?.join(format!("tools/{}-{}", self.name, self.version));
        let binary = root.join("bin").join(self.name);
        if works(&binary) {
            return Ok(binary);
        }
        println!("$ cargo install {} --version {}", self.name, self.version);
        // Debug builds compile in a third of the time and are fast enough here.
        let status = cargo()
            .args(["install", self.name, "--version", self.version])
            .args(["--locked", "--quiet", "--debug", "--root"])
            .arg(&root)
            .args(self.options)
            .status()
            .context("starting cargo install")?;
        if !status.success() {
            bail!("{} could not be installed", self.name);
        }
        Ok(binary)
    }
}

fn works(program: &Path) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
