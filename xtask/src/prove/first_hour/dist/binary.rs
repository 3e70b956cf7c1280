//! The published binary itself.

#![allow(clippy::indexing_slicing, reason = "a missing key of a JSON value is null")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;

use super::release::{Release, TARGET, run};
use crate::dist::{self, Build, OPERATOR_FEATURES};

/// Number of starts of the binary. The median of the durations is reported.
const STARTS: usize = 21;

pub(super) fn is_static(release: &Release) -> anyhow::Result<(String, bool)> {
    let directory = release.unpack(&dist::archive_name(TARGET))?;
    let binary = directory.path().join("mainstay");
    let output = run(Command::new("file").arg("--brief").arg(&binary))?;
    let text = String::from_utf8(output.stdout)?.trim().to_owned();
    let is_stripped = text.contains("stripped") && !text.contains("not stripped");
    let holds = text.contains("static") && is_stripped && dist::is_static(&binary)?;
    Ok((text, holds))
}

/// Checks that a clean build of a copy of the sources in another directory produces equal binaries.
pub(super) fn is_reproducible(release: &Release) -> anyhow::Result<(String, bool)> {
    let scratch = tempfile::tempdir()?;
    let (root, directory) = (scratch.path().join("sources"), scratch.path().join("build"));
    copy_sources(&root)?;
    let build = Build {
        target: TARGET,
        root: &root,
        directory: &directory,
    };
    let operator = fs::read(build.binary(OPERATOR_FEATURES)?)?;
    let mainstay = fs::read(build.binary(&[])?)?;
    let unpacked = release.unpack(&dist::archive_name(TARGET))?;
    let first = [
        image_binary(release)?,
        fs::read(unpacked.path().join("mainstay"))?,
    ];
    let equal = first
        .iter()
        .zip([operator, mainstay])
        .filter(|(one, other)| *one == other);
    let equal = equal.count();
    Ok((format!("{equal} of 2 binaries"), equal == 2))
}

/// Copies tracked files and the fetched charts.
fn copy_sources(target: &Path) -> anyhow::Result<()> {
    let root = repository_root();
    let output = run(Command::new("git").args(["ls-files"]).current_dir(&root))?;
    let files = String::from_utf8(output.stdout)?;
    for file in files.lines().filter(|file| root.join(file).is_file()) {
        let copy = target.join(file);
        fs::create_dir_all(copy.parent().context("a file without a directory")?)?;
        fs::copy(root.join(file), copy)?;
    }
    let resources = target.join("resources");
    fs::create_dir_all(&resources)?;
    fs::copy(root.join("resources/charts.pack"), resources.join("charts.pack"))?;
    Ok(())
}

/// Returns the binary inside the image's archive.
fn image_binary(release: &Release) -> anyhow::Result<Vec<u8>> {
    let scratch = tempfile::tempdir()?;
    unpack_image(release, scratch.path())?;
    Ok(fs::read(scratch.path().join("mainstay"))?)
}

/// Unpacks the only layer of the image.
pub(super) fn unpack_image(release: &Release, target: &Path) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(release.path(&dist::image_name(TARGET)));
    run(unpack.arg("-C").arg(scratch.path()))?;
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.path().join("manifest.json"))?)?;
    let layer = manifest[0]["Layers"][0].as_str().context("no layer")?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(scratch.path().join(layer));
    run(unpack.arg("-C").arg(target))?;
    Ok(())
}

pub(super) fn start_up(release: &Release) -> anyhow::Result<(String, bool)> {
    let directory = release.unpack(&dist::archive_name(TARGET))?;
    let binary = directory.path().join("mainstay");
    let mut durations = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        run(Command::new(&binary).arg("--version"))?;
        durations.push(start.elapsed());
    }
    durations.sort();
    let median = durations.get(STARTS / 2).context("not started")?.as_secs_f64() * 1e3;
    let size = |path: &Path| Ok::<_, std::io::Error>(fs::metadata(path)?.len() as f64 / f64::from(1 << 20));
    let scratch = tempfile::tempdir()?;
    unpack_image(release, scratch.path())?;
    let (mainstay, operator) = (size(&binary)?, size(&scratch.path().join("mainstay"))?);
    ensure!(mainstay > operator, "the operator's build is not smaller");
    let figure = format!("{median:.1} ms, {mainstay:.1} MiB, in the image {operator:.1} MiB");
    Ok((figure, median < 50.0 && mainstay < 60.0))
}
