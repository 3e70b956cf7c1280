//! Reads charts from a directory. Rejects links and charts that exceed the limits.
//!
//! ```text
//! <directory>/<version>/<flavour>/charts/<chart>/…    layout of `resources/` and the user's catalog
//! <directory>/<version>/charts/<chart>/…              layout of the Sail Operator's image, for both flavours
//! ```
#![allow(clippy::disallowed_methods, reason = "I/O module: reads directories")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::derive::Files;
use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::version::Version;

/// Maximum size of a chart in bytes, as in Helm archives.
const MAX_BYTES: u64 = 100 << 20;
/// Maximum number of files of a chart.
const MAX_FILES: usize = 10_000;

/// A directory of versions.
#[derive(Clone, Debug)]
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Returns the versions with at least one chart. Empty if the directory does not exist.
    pub(crate) fn versions(&self) -> Result<Vec<Version>, CatalogError> {
        let named = names(&self.0)?
            .into_iter()
            .filter_map(|name| name.parse::<Version>().ok());
        let mut versions: Vec<Version> = named.filter(|version| self.has_charts(version)).collect();
        versions.sort();
        versions.dedup();
        Ok(versions)
    }

    fn has_charts(&self, version: &Version) -> bool {
        Flavour::ALL
            .iter()
            .any(|flavour| self.top(version, *flavour).join("charts").is_dir())
    }

    /// Returns the directory that contains `charts` and `profiles` of a flavour.
    fn top(&self, version: &Version, flavour: Flavour) -> PathBuf {
        let plain = self.0.join(version.to_string());
        let own = if plain.is_dir() {
            plain
        } else {
            self.0.join(version.name())
        };
        let flavoured = own.join(flavour.name());
        if flavoured.is_dir() { flavoured } else { own }
    }

    /// Returns the names of the entries of `kind` (`charts` or `profiles`), sorted.
    pub(crate) fn list(
        &self,
        version: &Version,
        flavour: Flavour,
        kind: &str,
    ) -> Result<Vec<String>, CatalogError> {
        names(&self.top(version, flavour).join(kind))
    }

    /// Returns all files below `path` of a flavour.
    pub(crate) fn files(
        &self,
        version: &Version,
        flavour: Flavour,
        path: &str,
    ) -> Result<Files, CatalogError> {
        read_files(&self.top(version, flavour).join(path))
    }
}

/// Returns the names in a directory, sorted. Empty if the directory does not exist.
fn names(directory: &Path) -> Result<Vec<String>, CatalogError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| read_error(directory, source))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| read_error(directory, source))?;
        names.extend(
            entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| !name.starts_with('.')),
        );
    }
    names.sort();
    Ok(names)
}

/// Returns all files below `top` by relative path.
fn read_files(top: &Path) -> Result<Files, CatalogError> {
    let mut files = Files::new();
    let mut remaining = MAX_BYTES;
    let mut pending = vec![String::new()];
    while let Some(directory) = pending.pop() {
        let path = top.join(&directory);
        for entry in fs::read_dir(&path).map_err(|source| read_error(&path, source))? {
            let entry = entry.map_err(|source| read_error(&path, source))?;
            let metadata = entry
                .metadata()
                .map_err(|source| read_error(&entry.path(), source))?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| CatalogError::Rejected {
                    path: entry.path(),
                    reason: "the file name is not UTF-8",
                })?;
            let name = if directory.is_empty() {
                name
            } else {
                format!("{directory}/{name}")
            };
            let rejected = |reason| CatalogError::Rejected {
                path: entry.path(),
                reason,
            };
            if metadata.is_dir() {
                pending.push(name);
            } else if !metadata.is_file() {
                return Err(rejected("it is neither a file nor a directory"));
            } else {
                remaining = remaining
                    .checked_sub(metadata.len())
                    .ok_or_else(|| rejected("the chart is larger than 100 MiB"))?;
                files.insert(
                    name,
                    fs::read(entry.path()).map_err(|source| read_error(&entry.path(), source))?,
                );
            }
            if files.len() + pending.len() > MAX_FILES {
                return Err(rejected("the chart has more than 10000 files"));
            }
        }
    }
    Ok(files)
}

fn read_error(path: &Path, source: std::io::Error) -> CatalogError {
    CatalogError::Read {
        path: path.to_owned(),
        source,
    }
}
