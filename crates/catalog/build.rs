//! Hands `resources/charts.pack` to the crate, or nothing if no charts were fetched yet.

#![allow(clippy::disallowed_methods, reason = "a build script is nothing but rim")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| io::Error::other("run by cargo only"))
    };
    let resources = directory("CARGO_MANIFEST_DIR")?.join("../../resources");
    let pack = resources.join("charts.pack");
    watch(if pack.exists() { &pack } else { &resources });
    let bytes = if pack.exists() {
        fs::read(&pack)?
    } else {
        Vec::new()
    };
    fs::write(directory("OUT_DIR")?.join("charts.pack"), bytes)
}

/// The directory is in git, so there is always something to watch; once packed, the pack alone tells of changes.
fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
