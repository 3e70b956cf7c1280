//! The operator's Helm chart as an archive with the entries of `helm package`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use mainstay_testkit::repository_root;

use super::package::{Entry, gzip, tar};

/// The chart's directory in the repository.
pub(super) const SOURCE: &str = "deploy/chart";

/// Returns the archive.
pub(super) fn package() -> anyhow::Result<Vec<u8>> {
    let mut entries = Vec::new();
    collect(&repository_root().join(SOURCE), "mainstay", &mut entries)?;
    gzip(&tar(&entries)?)
}

/// Adds all files below `directory`, with paths that start with `prefix`.
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
