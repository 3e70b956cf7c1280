//! Copies `resources/charts.pack` to the build directory, or an empty file if no charts were fetched yet.

#![allow(clippy::disallowed_methods, reason = "a build script reads and writes files")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| io::Error::other("this build script must be run by cargo"))
    };
    let resources = directory("CARGO_MANIFEST_DIR")?.join("../../resources");
    let pack = resources.join("charts.pack");
    // Without a pack, Cargo checks the directory instead: it is in git and always exists.
    rerun_if_changed(if pack.exists() { &pack } else { &resources });
    let bytes = if pack.exists() {
        fs::read(&pack)?
    } else {
        Vec::new()
    };
    fs::write(directory("OUT_DIR")?.join("charts.pack"), bytes)
}

/// Instructs Cargo to rerun this script when `path` changes.
fn rerun_if_changed(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
