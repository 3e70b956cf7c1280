//! `cargo xtask dist`: builds the static binary that is shipped, and checks that it is static.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use mainstay_testkit::repository_root;

use crate::build::{Profile, run_cargo};

/// The target of the static binary.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Builds the binary and prints its path and size.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let binary = static_binary()?;
    let size = fs::metadata(&binary)?.len();
    println!(
        "dist: {} ({:.1} MiB, static)",
        binary.display(),
        size as f64 / f64::from(1 << 20)
    );
    Ok(())
}

/// Builds the static binary and returns its path.
pub(crate) fn static_binary() -> anyhow::Result<PathBuf> {
    install_target()?;
    run_cargo(&[
        "build",
        "--locked",
        "--profile",
        Profile::Dist.name(),
        "--target",
        TARGET,
        "--package",
        "mainstay",
    ])?;
    let binary = target_directory().join(TARGET).join("dist/mainstay");
    ensure!(is_static(&binary)?, "{} is not static", binary.display());
    Ok(binary)
}

fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository_root().join("target"), PathBuf::from)
}

fn install_target() -> anyhow::Result<()> {
    let status = Command::new("rustup")
        .args(["target", "add", TARGET])
        .current_dir(repository_root())
        .status()
        .context("starting rustup; without rustup, install the standard library of the musl target")?;
    if !status.success() {
        bail!("rustup cannot install the target {TARGET}");
    }
    Ok(())
}

/// A static ELF file requests no program interpreter.
fn is_static(binary: &Path) -> anyhow::Result<bool> {
    let bytes = fs::read(binary).with_context(|| binary.display().to_string())?;
    Ok(interpreters(&bytes).context("not a 64-bit ELF file")? == 0)
}

/// Returns the number of `PT_INTERP` program headers of a 64-bit little-endian ELF file.
fn interpreters(bytes: &[u8]) -> Option<usize> {
    const PT_INTERP: u32 = 3;
    bytes.strip_prefix(b"\x7fELF\x02\x01")?;
    let offset = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(bytes.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(bytes.get(56..58)?.try_into().ok()?));
    let kind = |index: usize| {
        let start = offset + index * size;
        Some(u32::from_le_bytes(bytes.get(start..start + 4)?.try_into().ok()?))
    };
    Some(
        (0..count)
            .filter_map(kind)
            .filter(|kind| *kind == PT_INTERP)
            .count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_executable_is_recognised() {
        let own = std::env::current_exe().unwrap();
        assert!(!is_static(&own).unwrap());
    }

    #[test]
    fn other_files_are_no_executables() {
        assert_eq!(interpreters(b"#!/bin/sh\n"), None);
    }
}
