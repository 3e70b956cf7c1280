//! The files of a release that the rows check.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use crate::build::{Profile, mainstay_binary};
use crate::dist::{self, Binaries, Entry, Target};

/// The machine that runs the proof.
pub(super) const TARGET: Target = Target::X86;

/// The files of a release in a temporary directory.
pub(super) struct Release {
    pub(super) files: Vec<Entry>,
    directory: tempfile::TempDir,
    /// Packs the same binaries once more.
    again: Box<dyn Fn() -> anyhow::Result<Vec<Entry>>>,
}

impl Release {
    /// Packs a placeholder with the pages and scripts of the development build: formats do not depend on the
    /// content of the binary, and an unoptimized one is too large to compress quickly.
    pub(super) fn of_development() -> anyhow::Result<Self> {
        let runnable = mainstay_binary(Profile::Dev)?;
        let pack = move || {
            let binaries = Binaries {
                target: TARGET,
                mainstay: b"#!/bin/sh\nexit 1\n".to_vec(),
                operator: b"#!/bin/sh\nexit 1\n".to_vec(),
            };
            dist::files(&[binaries], &runnable)
        };
        Self::write(Box::new(pack))
    }

    /// Builds the published files.
    pub(super) fn published() -> anyhow::Result<Self> {
        let build = build_directory();
        Self::write(Box::new(move || dist::release(&[TARGET], &build)))
    }

    fn write(again: Box<dyn Fn() -> anyhow::Result<Vec<Entry>>>) -> anyhow::Result<Self> {
        let files = again()?;
        let directory = tempfile::tempdir()?;
        dist::write(directory.path(), &files)?;
        Ok(Self {
            files,
            directory,
            again,
        })
    }

    /// Packs the same binaries once more.
    pub(super) fn again(&self) -> anyhow::Result<Vec<Entry>> {
        (self.again)()
    }

    /// Returns the directory of the files.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Unpacks a compressed archive into a new directory.
    pub(super) fn unpack(&self, name: &str) -> anyhow::Result<tempfile::TempDir> {
        let target = tempfile::tempdir()?;
        let mut command = Command::new("tar");
        command
            .arg("-xzf")
            .arg(self.path(name))
            .arg("-C")
            .arg(target.path());
        run(&mut command)?;
        Ok(target)
    }
}

/// Returns the directory of the release build, which `cargo xtask dist` uses, too.
pub(super) fn build_directory() -> PathBuf {
    let named = std::env::var_os("MAINSTAY_DIST_BUILD").map(PathBuf::from);
    named.unwrap_or_else(|| dist::target_directory().join("dist/build"))
}

/// Runs a command; a failure carries its output.
pub(super) fn run(command: &mut Command) -> anyhow::Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}
