//! `cargo xtask dist`: builds what is released into `target/dist/files`. Equal sources produce equal bytes.
//!
//! | module | content |
//! |---|---|
//! | `package` | tar, gzip and digests with fixed times and order |
//! | `image` | the operator's image as an archive |
//! | `debian` | the Debian package |
//! | `indexes` | a Homebrew formula and a krew manifest |
//! | `sbom` | the bill of materials |

mod debian;
mod image;
mod indexes;
mod package;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use mainstay_testkit::repository_root;

use self::image::Image;
use self::package::{Entry, gzip, sha256, tar};
use crate::build::{Profile, run_cargo};

/// The target of the static binary.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The architecture in the terms of Go and Debian.
const ARCHITECTURE: &str = "amd64";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The image's name after it has been loaded: the default of the chart.
const IMAGE: &str = "localhost/mainstay";

/// Excludes the simulator from the operator's image.
const OPERATOR_FEATURES: &[&str] = &["--no-default-features"];

/// Builds all files and prints their sizes and digests.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let files = files()?;
    let directory = target_directory().join("dist/files");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    for file in &files {
        fs::write(directory.join(&file.path), &file.content)?;
        let size = file.content.len() as f64 / f64::from(1 << 20);
        println!("{:>8.2} MiB  {}  {}", size, sha256(&file.content), file.path);
    }
    println!("dist: {}", directory.display());
    Ok(())
}

fn files() -> anyhow::Result<Vec<Entry>> {
    let operator = fs::read(static_binary(OPERATOR_FEATURES)?)?;
    let path = static_binary(&[])?;
    let binary = fs::read(&path)?;
    let bill = serde_json::to_vec_pretty(&sbom::bill(TARGET, &[])?)?;
    let manual = manual_pages(&path)?;
    let completions = completions(&path)?;
    let image = Image {
        binary: &operator,
        version: VERSION,
        architecture: ARCHITECTURE,
        reference: &format!("{IMAGE}:{VERSION}"),
    };
    let archive = Entry::file(archive_name(), archive(&binary, &bill, &manual, &completions)?);
    let archive_digest = sha256(&archive.content);
    let debian = debian::package(
        VERSION,
        ARCHITECTURE,
        &system_files(&binary, &manual, &completions)?,
    )?;
    let mut files = vec![
        archive,
        Entry::file(format!("mainstay_{VERSION}_{ARCHITECTURE}.deb"), debian),
        Entry::file(
            format!("mainstay-{VERSION}-image-{ARCHITECTURE}.tar"),
            image.archive()?,
        ),
        Entry::file(format!("mainstay-{VERSION}.tgz"), chart()?),
        Entry::file("mainstay.cdx.json", bill),
        Entry::file(
            "mainstay.rb",
            indexes::homebrew(VERSION, &archive_name(), &archive_digest),
        ),
        Entry::file(
            "mainstay.krew.yaml",
            indexes::krew(VERSION, &archive_name(), &archive_digest),
        ),
    ];
    files.push(Entry::file("SHA256SUMS", checksums(&files)));
    Ok(files)
}

fn archive_name() -> String {
    format!("mainstay-{VERSION}-{TARGET}.tar.gz")
}

fn checksums(files: &[Entry]) -> String {
    let line = |file: &Entry| format!("{}  {}\n", sha256(&file.content), file.path);
    files.iter().map(line).collect()
}

/// Returns the archive for a manual installation.
fn archive(binary: &[u8], bill: &[u8], manual: &[Entry], completions: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let root = repository_root();
    let mut entries = vec![
        Entry::executable("mainstay", binary),
        Entry::file("LICENSE", fs::read(root.join("LICENSE"))?),
        Entry::file("README.md", fs::read(root.join("README.md"))?),
        Entry::file("mainstay.cdx.json", bill),
    ];
    let below = |directory: &str, file: &Entry| {
        Entry::file(format!("{directory}/{}", file.path), file.content.clone())
    };
    entries.extend(manual.iter().map(|page| below("man/man1", page)));
    entries.extend(completions.iter().map(|script| below("completions", script)));
    gzip(&tar(&entries)?)
}

/// Returns the files of the Debian package at their places in the file system.
fn system_files(binary: &[u8], manual: &[Entry], completions: &[Entry]) -> anyhow::Result<Vec<Entry>> {
    let license = fs::read(repository_root().join("LICENSE"))?;
    let mut entries = vec![
        Entry::executable("usr/bin/mainstay", binary),
        Entry::file("usr/share/doc/mainstay/copyright", license),
    ];
    for page in manual {
        let path = format!("usr/share/man/man1/{}.gz", page.path);
        entries.push(Entry::file(path, gzip(&page.content)?));
    }
    for script in completions {
        let directory = match script.path.as_str() {
            "mainstay.bash" => "usr/share/bash-completion/completions/mainstay",
            "_mainstay" => "usr/share/zsh/vendor-completions/_mainstay",
            _ => "usr/share/fish/vendor_completions.d/mainstay.fish",
        };
        entries.push(Entry::file(directory, script.content.clone()));
    }
    Ok(entries)
}

/// Returns the Helm chart as `helm package` would lay it out.
fn chart() -> anyhow::Result<Vec<u8>> {
    let mut entries = Vec::new();
    collect(&repository_root().join("deploy/chart"), "mainstay", &mut entries)?;
    gzip(&tar(&entries)?)
}

fn collect(directory: &Path, prefix: &str, entries: &mut Vec<Entry>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let inside = format!("{prefix}/{name}");
        if path.is_dir() {
            collect(&path, &inside, entries)?;
        } else {
            entries.push(Entry::file(inside, fs::read(&path)?));
        }
    }
    Ok(())
}

fn manual_pages(mainstay: &Path) -> anyhow::Result<Vec<Entry>> {
    let scratch = tempfile::tempdir()?;
    let status = Command::new(mainstay).arg("man").arg(scratch.path()).status()?;
    ensure!(status.success(), "mainstay man failed");
    let mut pages = Vec::new();
    for entry in fs::read_dir(scratch.path())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.push(Entry::file(name, fs::read(entry.path())?));
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(!pages.is_empty(), "mainstay man wrote nothing");
    Ok(pages)
}

fn completions(mainstay: &Path) -> anyhow::Result<Vec<Entry>> {
    let shells = [
        ("bash", "mainstay.bash"),
        ("zsh", "_mainstay"),
        ("fish", "mainstay.fish"),
    ];
    let script = |(shell, name): (&str, &str)| {
        let output = Command::new(mainstay).args(["completion", shell]).output()?;
        ensure!(output.status.success(), "mainstay completion {shell} failed");
        Ok(Entry::file(name, output.stdout))
    };
    shells.into_iter().map(script).collect()
}

/// Builds the static binary and returns its path.
fn static_binary(features: &[&str]) -> anyhow::Result<PathBuf> {
    install_target()?;
    let arguments = [
        "build",
        "--locked",
        "--profile",
        Profile::Dist.name(),
        "--target",
        TARGET,
        "--package",
        "mainstay",
    ];
    run_cargo(&[&arguments, features].concat())?;
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
